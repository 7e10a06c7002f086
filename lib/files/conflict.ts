/**
 * Conflicts: somebody else's bytes where ours were to go. Nothing is chosen, both sides are kept.
 *
 * Recording: the blobs of base, theirs and mine go among the contents first, then `conflict.detected` names them. Of an image
 * whose bytes nobody has, `mine` is recorded as 'unknown'; `base` keeps its id all the same. While a conflict is not settled
 * its path is written neither by a call that names it nor by a transaction of a turn (`refuseConflicting`); every other path is
 * free. A command whose effect cannot be told beforehand cannot be held to that.
 */
import { DurableError } from '../errors.js';
import type { EventOf } from '../event.js';
import type { Storage } from '../git/storage.js';
import { freshId } from '../host.js';
import { isUnsettled } from '../ledger/carried.js';
import { Ledger, listTasks } from '../ledger/ledger.js';
import type { ConflictState } from '../ledger/state.js';
import type { Clash } from './apply.js';
import { isAtOrBelow } from './diff.js';

export interface ConflictContext {
  readonly storage: Storage;
  readonly ledger: Ledger;
  readonly agent: string;
  readonly workspace: string | null;
  readonly turn: string | null;
}

export interface FoundConflict {
  /** `move.from` is what was expected there, `move.to` what was to come. */
  readonly clash: Clash;
  /** Bytes of an image that are not among the objects yet, where the caller has them. */
  readonly bytesOf?: (oid: string) => Uint8Array | undefined;
  readonly isMineUnknown?: boolean;
  readonly why: EventOf<'conflict.detected'>['why'];
}

/** Returns the conflict's id. */
export async function recordConflict(context: ConflictContext, conflict: FoundConflict): Promise<string> {
  const { storage, ledger, agent, workspace, turn } = context;
  const { clash, why, isMineUnknown = false } = conflict;
  const { path, from: base, to } = clash.move;
  const payload = new Map<string, string>();
  const keep = async (name: string, image: Clash['found']): Promise<boolean> => {
    if (image === null || typeof image === 'string') return true;
    const known = clash.found === image ? clash.bytes : null;
    const bytes = known ?? clash.blobs?.get(image.oid) ?? conflict.bytesOf?.(image.oid) ?? null;
    if (bytes !== null) payload.set(name, await storage.objects.write('blob', bytes));
    else if ((await storage.objects.read(image.oid)) !== undefined) payload.set(name, image.oid);
    return payload.has(name);
  };
  await keep('base', base);
  await keep('theirs', clash.found);
  const mine = !isMineUnknown && (await keep('mine', to)) ? to : 'unknown';
  const id = freshId(storage.host);
  await ledger.contents.commitTree({ payload, message: `conflict ${id}` });
  await ledger.append(
    () => [{ type: 'conflict.detected', turn, conflict: id, path, base, theirs: clash.found, mine, why }],
    { lease: null, agent, workspace },
  );
  return id;
}

/** The same refusal, naming the conflict that was recorded. */
export function withConflict(error: DurableError<'conflict'>, conflict: string): DurableError<'conflict'> {
  return new DurableError('conflict', { ...error.fields, conflict }, error);
}

export interface OpenConflict {
  readonly ledger: Ledger;
  readonly conflict: ConflictState;
}

/** Throws 'conflict-open' when one of these paths, a folder above or anything below it has a conflict that is not settled. */
export async function refuseConflicting(
  context: Pick<ConflictContext, 'storage' | 'ledger' | 'workspace'>,
  paths: readonly string[],
): Promise<void> {
  if (paths.length === 0) return;
  const places = new Set(paths);
  for (const { conflict } of await openConflicts(context)) {
    const at = conflict.detected.event.path;
    const path = isAtOrBelow(at, places) ? at : paths.find((one) => isAtOrBelow(one, new Set([at])));
    if (path !== undefined) throw new DurableError('conflict-open', { path, conflict: conflict.id });
  }
}

/** Of this work tree, in whichever task. */
async function openConflicts({
  storage,
  ledger,
  workspace,
}: Pick<ConflictContext, 'storage' | 'ledger' | 'workspace'>): Promise<OpenConflict[]> {
  const found: OpenConflict[] = [];
  for (const one of [ledger, ...(await othersWithConflicts(storage, ledger))]) {
    const { state } = await one.readable();
    for (const conflict of state.conflicts.values()) {
      const isHere = conflict.detected.event.workspace === workspace;
      if (isHere && isUnsettled(state, conflict)) found.push({ ledger: one, conflict });
    }
  }
  return found;
}

const others = new WeakMap<Ledger, Promise<readonly Ledger[]>>();

/**
 * Other tasks with an open conflict, looked for once a ledger object: who records a conflict in this work tree holds its lease,
 * so while a turn holds it no other task gets one. Closing them is seen at once.
 */
function othersWithConflicts(storage: Storage, ledger: Ledger): Promise<readonly Ledger[]> {
  const known = others.get(ledger) ?? searchOthers(storage, ledger);
  others.set(ledger, known);
  return known;
}

async function searchOthers(storage: Storage, ledger: Ledger): Promise<Ledger[]> {
  const ledgers: Ledger[] = [];
  if (!(await isAnyRecorded(storage))) return ledgers;
  for (const task of listTasks(storage).filter((one) => one !== ledger.task)) {
    const other = Ledger.open(storage, task);
    const { state } = await other.readable();
    if ([...state.conflicts.values()].some((conflict) => isUnsettled(state, conflict))) ledgers.push(other);
  }
  return ledgers;
}

/** One git over all ledgers, by the subjects: most repositories never had a conflict. */
async function isAnyRecorded(storage: Storage): Promise<boolean> {
  const search = ['rev-list', '--max-count=1', '--grep=^conflict\\.detected: ', '--glob=refs/durable/tasks'];
  const { code, stdout } = await storage.git.run(search);
  // A damaged ledger stops the search: then each is read.
  return code !== 0 || stdout.length > 0;
}
