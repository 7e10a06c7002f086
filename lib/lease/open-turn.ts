/**
 * What a lease record leaves behind: the turn of its holder that the ledger does not show as ended.
 */
import { Ledger } from '../ledger/ledger.js';
import type { TaskState, TransactionState, TurnState } from '../ledger/state.js';
import type { Storage } from '../git/storage.js';
import type { LeaseRecord } from './record.js';

export interface OpenTurn {
  readonly task: string;
  readonly turn: string;
  readonly objective: string;
}

/**
 * The turn that has to be recovered before another one starts: the one that a dead recovery was about, else the
 * holder's own; else the restore that it was at, by its transaction's id; null when all are closed, or were never started.
 */
export async function openTurnOf(storage: Storage, record: LeaseRecord): Promise<OpenTurn | null> {
  for (const { task, turn } of turnsOf(record)) {
    const state = await turnState(storage, task);
    if (state?.id === turn && (state.state === 'open' || state.state === 'interrupted'))
      return { task, turn, objective: state.started.event.objective };
  }
  const cut = await cutRestoreOf(storage, record);
  if (cut === null) return null;
  return { task: cut.state.task, turn: cut.transaction.id, objective: record.objective };
}

export interface Cut {
  readonly ledger: Ledger;
  readonly state: TaskState;
  readonly transaction: TransactionState;
}

/** The restore outside turns that the holder of this record prepared, or was to repair, and that nobody has ended. */
export async function cutRestoreOf(
  storage: Storage,
  { kind, task, turn }: Pick<LeaseRecord, 'kind' | 'task' | 'turn'>,
): Promise<Cut | null> {
  if (kind !== 'operation' || task === null || turn !== null) return null;
  const ledger = Ledger.open(storage, task);
  const { state } = await ledger.readable();
  const transaction = [...state.transactions.values()].find(
    ({ state: phase, prepared: { event } }) =>
      phase === 'prepared' && event.turn === null && event.purpose === 'restore',
  );
  return transaction === undefined ? null : { ledger, state, transaction };
}

/** True when the ledger shows the end of the holder's turn: it died between that and letting go. */
export async function isFinished(storage: Storage, record: LeaseRecord): Promise<boolean> {
  if (record.task === null || record.kind !== 'turn') return false;
  const state = await turnState(storage, record.task);
  return state?.id === record.turn && state.state === 'finished';
}

/** The newest turn of a task; null when the task has none, or does not exist. */
export async function turnState(storage: Storage, task: string): Promise<TurnState | null> {
  // Torn by a power cut, the newest event hides the end of a turn at most: then it is recovered once more.
  return (await Ledger.open(storage, task).readable()).state.turn;
}

function turnsOf(record: LeaseRecord): { readonly task: string; readonly turn: string }[] {
  const own = record.task === null || record.turn === null ? [] : [{ task: record.task, turn: record.turn }];
  return record.recovering === null ? own : [record.recovering, ...own];
}
