/**
 * Which turns are interrupted: open in the ledger, and nobody alive holds them.
 *
 * By the ledger: the newest turn of a task is open or interrupted. By the lease: its record of that workspace names this
 * turn and a live holder, or it does not. "Interrupted" is said when an event says so, or when the holder is proven dead
 * on this host; a holder of another host or pid namespace is not judged from here (PROTOCOL.md 2), and a repair that is under
 * way does not make the turn less interrupted.
 *
 * Belonging: a turn is this work tree's when its workspace id is, or when that id's lease record names this work tree (a
 * workspace that was initialised again has a new id and still shows the old one's turn). So is, in doubt, one of a work
 * tree that this one was copied from and that does not stand any more where it was: a repository that was moved by
 * copying, or a copy on another machine. Nothing tells the two apart, so it is named, and repaired only when it is asked
 * for by its id; its holder counts as dead unless it is alive on this host.
 */
import { DurableError, hasCode } from '../errors.js';
import type { HolderRecord } from '../event.js';
import type { Storage } from '../git/storage.js';
import { leaseOf, seenLease, type LeaseRecord } from '../lease/record.js';
import { ownWorkspace } from '../lease/take.js';
import { copiedFrom, standsAt, workspaceId } from '../lease/workspace.js';
import { Ledger, listTasks } from '../ledger/ledger.js';
import { starterOf } from '../ledger/starter.js';
import type { TaskState, TurnState } from '../ledger/state.js';
import type { InterruptedTurn } from './document.js';

export interface OpenTurn {
  readonly ledger: Ledger;
  readonly state: TaskState;
  readonly turn: TurnState;
  /** The lease record of the turn's workspace as it is now; null when there is none here. */
  readonly record: LeaseRecord | null;
  /** null: its holder is alive, or cannot be judged from here. */
  readonly detectedBy: InterruptedTurn['detectedBy'] | null;
  /** It is a turn of the work tree that was opened. */
  readonly isOfHere: boolean;
  /** Where it was begun, when this work tree is a copy of that one or that one, moved; '' where nobody knows; else null. */
  readonly origin: string | null;
}

/** What one reading of every ledger tells. */
export interface FoundTurns {
  /** Without an end; oldest first. */
  readonly open: readonly OpenTurn[];
  /** By task: a ledger of a newer format is for a newer program, and hides no other; see `refuseNewer`. */
  readonly newer: ReadonlyMap<string, DurableError<'version-unsupported'>>;
}

/** Turns of this work tree or, with `all`, of every one. */
export async function findTurns(storage: Storage, all: boolean): Promise<FoundTurns> {
  const here = workspaceId(storage, { create: false });
  const open: OpenTurn[] = [];
  const newer = new Map<string, DurableError<'version-unsupported'>>();
  for (const task of listTasks(storage)) {
    try {
      const found = await turnIn(storage, Ledger.open(storage, task), here);
      if (found !== null && (all || found.isOfHere)) open.push(found);
    } catch (error) {
      if (!hasCode(error, 'version-unsupported')) throw error;
      newer.set(task, error);
    }
  }
  open.sort((a, b) => (a.turn.started.event.at < b.turn.started.event.at ? -1 : 1));
  return { open, newer };
}

/** Those of this work tree that were interrupted. */
export async function interruptedHere(storage: Storage): Promise<OpenTurn[]> {
  return (await findTurns(storage, false)).open.filter(isInterrupted);
}

export const isInterrupted = ({ detectedBy }: OpenTurn): boolean => detectedBy !== null;

/** The newest turn of a task when it has no end; null when it has, when there is none, and in a ledger of a newer program. */
export async function openTurnIn(storage: Storage, ledger: Ledger): Promise<OpenTurn | null> {
  try {
    return await turnIn(storage, ledger, workspaceId(storage, { create: false }));
  } catch (error) {
    if (hasCode(error, 'version-unsupported')) return null;
    throw error;
  }
}

async function turnIn(storage: Storage, ledger: Ledger, here: string | null): Promise<OpenTurn | null> {
  const { state } = await ledger.readable();
  const { turn } = state;
  if (turn === null || turn.state === 'finished' || turn.state === 'recovered') return null;
  const { workspace } = turn.started.event;
  const current = workspace === null ? null : await seenLease(storage, leaseOf(workspace));
  const record = current?.record ?? null;
  const isOwn = workspace === here || record?.workTree === storage.layout.workTree;
  const origin = isOwn || workspace === null ? null : originOf(storage, leaseOf(workspace), record);
  const isOver = origin !== null && storage.identity.judge(holderOf(turn, record)).verdict !== 'alive';
  const detectedBy = detected(storage, turn, record) ?? (isOver ? 'recover' : null);
  return { ledger, state, turn, record, detectedBy, isOfHere: isOwn || origin !== null, origin };
}

/** Where a work tree stood that this one is a copy of, or is, moved; null when it is neither, or the original stands there. */
export function originOf(
  storage: Storage,
  lease: string,
  record: Pick<LeaseRecord, 'workTree'> | null,
): string | null {
  const workspace = copiedFrom(storage).find((id) => leaseOf(id) === lease);
  if (workspace === undefined) return null;
  if (record !== null && standsAt(storage, record.workTree, workspace)) return null;
  return record?.workTree ?? '';
}

/** Throws 'usage' for what may be another work tree's, unless its id was given. */
export function demandNamed(
  { origin, id }: { readonly origin: string | null; readonly id: string },
  wanted: string | undefined,
): void {
  if (origin === null || wanted !== undefined) return;
  throw new DurableError('usage', {
    detail: `${id} was begun in ${origin === '' ? 'another work tree' : `'${origin}'`}, and this is a copy of that, or that, moved: name it to repair it here, --turn ${id}`,
  });
}

/**
 * The turn that a person means: by id or its beginning, else the only one. An interrupted one is preferred to one whose
 * holder is alive. Errors: 'not-found', 'ambiguous', 'usage' (see `demandNamed`), 'version-unsupported'
 * (none, as far as this program can read).
 */
export async function chosenTurn(storage: Storage, wanted: string | undefined): Promise<OpenTurn> {
  const { open, newer } = await findTurns(storage, false);
  const named = wanted === undefined ? open : open.filter(({ turn }) => turn.id.startsWith(wanted));
  const exact = named.filter(({ turn }) => turn.id === wanted);
  const interrupted = named.filter(({ detectedBy }) => detectedBy !== null);
  const candidates = exact.length > 0 ? exact : interrupted.length > 0 ? interrupted : named;
  const [chosen, ...others] = candidates;
  const what = 'interrupted turn';
  if (chosen === undefined) {
    refuseNewer(newer);
    throw new DurableError(
      'not-found',
      wanted === undefined ? { what: `${what} in this work tree`, id: '' } : { what, id: wanted },
    );
  }
  if (others.length === 0) {
    demandNamed({ origin: chosen.origin, id: chosen.turn.id }, wanted);
    return chosen;
  }
  throw new DurableError('ambiguous', {
    what,
    id: wanted ?? '',
    candidates: candidates.map(({ turn }) => turn.id),
  });
}

/**
 * Throws 'version-unsupported' when a ledger is a newer program's: whether a turn of it is interrupted cannot be told, so
 * nobody may say that none is. Which work tree it is of cannot be told either, but for tasks that the caller knows to be another's.
 */
export function refuseNewer(
  newer: FoundTurns['newer'],
  isElsewhere: (task: string) => boolean = () => false,
): void {
  for (const [task, error] of newer) if (!isElsewhere(task)) throw error;
}

/**
 * Throws 'lease-held' for a turn whose holder lives though the lease of this work tree does not name it: its workspace had
 * another id, or the lease was given up beside it. A holder that the lease names is judged by the takeover.
 */
export function refuseLiveHolder(storage: Storage, { turn, record, detectedBy }: OpenTurn): void {
  if (detectedBy !== null) return;
  const isNamed = record?.state === 'held' && record.lease === leaseOf(ownWorkspace(storage));
  const { verdict, why } = storage.identity.judge(holderOf(turn, record));
  if (isNamed || verdict === 'dead') return;
  const { event } = turn.started;
  throw new DurableError('lease-held', {
    lease: event.lease ?? '',
    holder: starterOf(event, storage.host.now().getTime()),
    why,
  });
}

function detected(
  storage: Storage,
  turn: TurnState,
  record: LeaseRecord | null,
): InterruptedTurn['detectedBy'] | null {
  if (turn.state === 'interrupted' && turn.interrupted !== null) return turn.interrupted.event.detectedBy;
  if (record !== null && isRepair(turn, record)) return 'recover';
  return isDead(storage, holderOf(turn, record)) ? 'recover' : null;
}

/** A taker's record for this turn: its holder was proven dead before the record was written. */
function isRepair(turn: TurnState, record: LeaseRecord): boolean {
  return record.kind === 'operation' && record.recovering?.turn === turn.id;
}

/** While the lease is this turn's, its record knows the holder best (a keeper may have learnt the agent's pid later). */
function holderOf(turn: TurnState, record: LeaseRecord | null): HolderRecord {
  const isHeld = record?.state === 'held' && record.kind === 'turn' && record.turn === turn.id;
  return isHeld ? record.holder : turn.started.event.holder;
}

function isDead(storage: Storage, holder: HolderRecord): boolean {
  return storage.identity.judge(holder).verdict === 'dead';
}
