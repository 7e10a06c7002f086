/**
 * Setting a torn newest event aside, so that a ledger goes on after a power cut.
 *
 * Done only when the event's bytes are nowhere (neither in the object store nor in the journal), no other living
 * process could have written it (every ticket's owner is proven dead, of another boot, or this process), and the event
 * before it is known without guessing (torn.ts). Steps, each safe to die after:
 *
 *   1. what is left of the object goes to `<common git dir>/durable/torn/<id>` (kept: it is evidence, and fsck is clean)
 *   2. one compare-and-swap moves the ledger from the torn event to a `git.observed` that follows the one before it and
 *      names both: the record and the repair are one ref move
 *
 * A ref that holds no object id (torn, emptied), or that somebody moved to what is no event of its task, is mended by the
 * second step alone, from the newest event of the task that is here.
 */
import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { hasCode, isDurableError } from '../errors.js';
import { FORMAT_VERSION, type Event } from '../event.js';
import { namesIn } from '../git/disk.js';
import { commitBody, treeBody } from '../git/objects-format.js';
import type { Storage } from '../git/storage.js';
import { readTicket } from '../git/tickets.js';
import { loadState } from './load.js';
import { encodeEvent, validated } from './message.js';
import type { TaskState } from './state.js';
import { eventBefore, isForeign, readTip, tornPath } from './torn.js';

export interface RepairOf {
  readonly task: string;
  readonly ref: string;
  readonly agent: string;
  /** Whether a damaged or misplaced ref is mended too: somebody asked for it. An append sets a torn event aside only. */
  readonly isAsked: boolean;
}

export interface Repaired {
  readonly torn: string | null;
  readonly before: string;
  /** The `git.observed` that is the newest event now. */
  readonly observed: string;
}

/** Null when there is nothing to repair, or it is not safe. Errors: those of the disk and of `refs.update`. */
export async function repairTip(storage: Storage, of: RepairOf): Promise<Repaired | null> {
  const { commit: torn, damage } = await readTip(storage, of.task, of.ref);
  if (torn === null || otherLiving(storage)) return null;
  if (damage !== null && !of.isAsked) return null;
  if (damage !== null) return followed(storage, { ...of, torn: null, before: torn, what: REF_REWRITTEN });
  const isElsewhere = await isForeign(storage, of.task, torn);
  if (isElsewhere ? !of.isAsked : !(await isGone(storage, torn))) return null;
  const before = await eventBefore(storage, of.task, torn, null);
  if (before === null) return null;
  return followed(storage, { ...of, torn, before, what: isElsewhere ? REF_ELSEWHERE : TORN });
}

const TORN = 'a torn newest event was set aside';
const REF_REWRITTEN = "the ledger's ref held no object id: it is at the newest event that is here again";
const REF_ELSEWHERE =
  "the ledger's ref was at no event of its task: it is at the newest event that is here again";

interface Following extends RepairOf {
  /** What the ref says; null when it is no object id. */
  readonly torn: string | null;
  readonly before: string;
  readonly what: string;
}

/** One more event after `before`, which says what was done, and the ref at it. */
async function followed(storage: Storage, of: Following): Promise<Repaired | null> {
  const { ref, torn, before } = of;
  const state = await loadState(storage, of.task, before).catch(unreadable);
  if (state === null) return null;
  if (torn !== null && of.what === TORN) setAside(storage, torn);
  await storage.objects.write('tree', treeBody([]));
  const observed = await storage.objects.write('commit', observation(storage, state, of));
  const isMoved =
    torn === null
      ? storage.refs.mend(ref, observed)
      : (await storage.refs.update({ move: { ref, from: torn, to: observed } })).moved;
  return isMoved ? { torn, before, observed } : null;
}

/** Nowhere, or only in pieces; an object of another kind or text is damage of another sort, and stays for a person. */
async function isGone(storage: Storage, oid: string): Promise<boolean> {
  try {
    return (await storage.objects.read(oid)) === undefined;
  } catch (error) {
    if (hasCode(error, 'object-damaged')) return true;
    throw error;
  }
}

/** PROTOCOL.md 2: whoever is not proven dead may have written it, and may still. */
function otherLiving(storage: Storage): boolean {
  const dir = join(storage.layout.shared, 'tickets');
  const self = storage.identity.self();
  return namesIn(dir).some((name) => {
    const ticket = readTicket(join(dir, name));
    if (ticket === null || ticket === 'foreign') return false;
    if (ticket.pid === self.pid && ticket.start === self.start) return false;
    return storage.identity.judge(ticket).verdict !== 'dead';
  });
}

function setAside(storage: Storage, torn: string): void {
  const { commonDir } = storage.layout;
  const loose = join(commonDir, 'objects', torn.slice(0, 2), torn.slice(2));
  const journal = join(storage.layout.shared, 'journal', torn);
  const aside = tornPath(storage, torn);
  const left = [loose, journal].find((path) => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0);
  if (left !== undefined) {
    storage.disk.makeDir('ledger.torn', dirname(aside));
    storage.disk.rename('ledger.torn', left, aside);
    storage.disk.syncDir('ledger.torn', dirname(aside));
  }
  for (const path of [loose, journal]) storage.disk.unlink('ledger.torn', path);
}

function observation(storage: Storage, state: TaskState, of: Following): Buffer {
  const at = storage.host.now();
  const event: Event = validated(
    'git.observed',
    {
      v: FORMAT_VERSION,
      type: 'git.observed',
      seq: (state.head?.seq ?? 0) + 1,
      at: at.toISOString(),
      task: of.task,
      workspace: null,
      turn: state.turn?.state === 'open' ? state.turn.id : null,
      turnStart: state.turnStart,
      agent: of.agent,
      lease: null,
      epoch: null,
      key: null,
      what: of.what,
      ref: of.ref,
      before: of.torn,
      after: state.head?.commit ?? null,
      process: null,
    },
    null,
  );
  const { message } = encodeEvent(event, state.head?.chain ?? '');
  const parents = state.head === null ? [] : [state.head.commit];
  return commitBody({ tree: storage.objects.hash('tree', treeBody([])), parents, message, at });
}

function unreadable(error: unknown): null {
  if (isDurableError(error)) return null;
  throw error;
}
