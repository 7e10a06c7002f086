/**
 * Which turn is meant, and its state as its own last event left it, newest of its task or not. Reads only.
 */
import { DurableError, hasCode } from '../errors.js';
import { isOf, type Recorded } from '../event.js';
import type { Storage } from '../git/storage.js';
import { leaseOf, readLease } from '../lease/record.js';
import { Ledger, listTasks } from '../ledger/ledger.js';
import { loadState } from '../ledger/load.js';
import type { TurnState } from '../ledger/state.js';
import { pickOne } from './pick.js';

/** A turn as its last event left it, whatever came after it in its task. */
export interface TurnRecord {
  readonly ledger: Ledger;
  readonly turn: TurnState;
}

/**
 * By its id or a prefix; without one the newest finished turn of the work tree. Errors: 'not-found', 'ambiguous',
 * 'ledger-damaged'.
 */
export async function findTurn(
  storage: Storage,
  wanted: string | null,
  workspace: string | null,
): Promise<TurnRecord> {
  if (wanted !== null) return turnNamed(storage, wanted);
  const last = workspace === null ? null : await readLease(storage, leaseOf(workspace));
  const task = last?.record.task ?? null;
  if (task !== null && listTasks(storage).includes(task)) {
    const ledger = Ledger.open(storage, task);
    const { turn } = (await ledger.readable()).state;
    if (turn?.state === 'finished' && turn.started.event.workspace === workspace) return { ledger, turn };
  }
  return newestFinished(storage, workspace);
}

async function turnNamed(storage: Storage, prefix: string): Promise<TurnRecord> {
  const found: { started: Recorded<'turn.started'>; ledger: Ledger; until: string | null }[] = [];
  for (const task of listTasks(storage)) {
    const ledger = Ledger.open(storage, task);
    let until: string | null = null;
    for await (const started of ledger.turnStarts()) {
      if (started.event.turn?.startsWith(prefix) === true) found.push({ started, ledger, until });
      until = started.commit;
    }
  }
  const { started, ledger, until } = pickOne('turn', prefix, found, (one) => one.started.event.turn ?? '');
  return recordOf(storage, ledger, { started, until });
}

/** `until`: the first event of the next turn. */
async function recordOf(
  storage: Storage,
  ledger: Ledger,
  { started, until }: { readonly started: Recorded<'turn.started'>; readonly until: string | null },
): Promise<TurnRecord> {
  const head = until === null ? null : await before(ledger, started.commit, until);
  const { turn } =
    head === null ? (await ledger.readable()).state : await loadState(storage, ledger.task, head);
  if (turn === null || turn.id !== started.event.turn)
    throw new RangeError('a turn that began is in no state');
  return { ledger, turn };
}

async function before(ledger: Ledger, from: string, until: string): Promise<string> {
  let last = from;
  for await (const { commit } of ledger.forwards({ after: from, to: until }))
    if (commit !== until) last = commit;
  return last;
}

async function newestFinished(storage: Storage, workspace: string | null): Promise<TurnRecord> {
  let newest: { finished: Recorded<'turn.finished'>; ledger: Ledger } | null = null;
  for (const task of listTasks(storage)) {
    const ledger = Ledger.open(storage, task);
    const finished = await lastFinished(ledger, workspace);
    if (finished !== null && (newest === null || finished.event.at > newest.finished.event.at))
      newest = { finished, ledger };
  }
  if (newest === null)
    throw new DurableError('not-found', { what: 'finished turn of this work tree', id: '' });
  const { finished, ledger } = newest;
  const { turn } = await loadState(storage, ledger.task, finished.commit);
  if (turn === null) throw new RangeError('a turn that ended is in no state');
  return { ledger, turn };
}

async function lastFinished(
  ledger: Ledger,
  workspace: string | null,
): Promise<Recorded<'turn.finished'> | null> {
  try {
    for await (const recorded of ledger.backwards())
      if (isOf(recorded, 'turn.finished') && recorded.event.workspace === workspace) return recorded;
  } catch (error) {
    // Another task's damage hides no turn of this one; `verify` tells it.
    if (!hasCode(error, 'ledger-damaged')) throw error;
  }
  return null;
}
