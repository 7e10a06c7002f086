/**
 * Ending transactions that nobody ended: what recovery appends beside `turn.recovered`.
 *
 * Rolled back and rolled forward turns settle theirs that way. Where bytes were kept, and for one that an operation outside the
 * turn left (a restore that was killed), a transaction is committed when
 * each of its paths holds its after-image, and rolled back otherwise, with the number of paths that do as the reason. An
 * earlier repair's own transaction that was cut short has been replaced by this one's.
 */
import type { EventDraft } from '../event.js';
import { look } from '../files/revision.js';
import { matches } from '../files/verdict.js';
import type { TaskState, TransactionState, TurnState } from '../ledger/state.js';
import type { RepairAction } from './document.js';
import { manifestOf, type RecoveryContext } from './touched.js';

export async function settlements(
  context: RecoveryContext,
  state: TaskState,
  action: RepairAction,
): Promise<EventDraft[]> {
  const drafts: EventDraft[] = [];
  for (const transaction of state.transactions.values()) {
    if (transaction.state !== 'prepared') continue;
    const isOfTurn = transaction.prepared.event.turn === state.turn?.id;
    drafts.push(await settlement(context, transaction, isOfTurn ? action : 'keep'));
  }
  return drafts;
}

/** A transaction by which a repair, since the turn last went on, has begun to change the tree. */
export function isRepair({ prepared }: TransactionState, { recovered }: TurnState): boolean {
  return prepared.event.purpose === 'repair' && prepared.event.seq > (recovered?.event.seq ?? 0);
}

async function settlement(
  context: RecoveryContext,
  transaction: TransactionState,
  action: RepairAction,
): Promise<EventDraft> {
  const { id, prepared } = transaction;
  const { turn } = prepared.event;
  const committed = { type: 'transaction.committed', turn, transaction: id, by: 'recovery' } as const;
  const back = { type: 'transaction.rolled-back', turn, transaction: id, by: 'recovery' } as const;
  if (prepared.event.purpose === 'repair') return { ...back, reason: 'replaced by a later repair' };
  if (action === 'roll-forward') return committed;
  if (action === 'roll-back') return { ...back, reason: 'the turn was rolled back' };
  const { entries } = await manifestOf(context, transaction);
  const done = entries.filter(({ path, after }) => matches(look(context.storage, path).found, after)).length;
  if (done === entries.length) return committed;
  return {
    ...back,
    reason: `kept as found: ${String(done)} of ${String(entries.length)} paths were written`,
  };
}
