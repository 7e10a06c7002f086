/**
 * What one turn leaves to the next: decisions without an answer or with an unused one, and transactions without an end.
 *
 * `turn.started` names them (`carried`), so that folding a turn never reads further back than its first event.
 */
import type { Carried } from '../event.js';
import type { ApprovalState, ConflictState, TaskState } from './state.js';

/** What a new turn's first event must carry: decisions and transactions without an end, oldest first. */
export function openDecisions(state: TaskState): Carried[] {
  const approvals = [...state.approvals.values()].filter(isUnused).map((approval): Carried => ({
    kind: 'approval',
    id: approval.id,
    commit: approval.requested.commit,
    answer: approval.resolved?.commit ?? null,
  }));
  const conflicts = [...state.conflicts.values()]
    .filter((conflict) => isUnsettled(state, conflict))
    .map((conflict): Carried => ({
      kind: 'conflict',
      id: conflict.id,
      commit: conflict.detected.commit,
      answer: conflict.resolved?.commit ?? null,
    }));
  const transactions = [...state.transactions.values()]
    .filter((transaction) => transaction.state === 'prepared')
    .map((transaction): Carried => ({
      kind: 'transaction',
      id: transaction.id,
      commit: transaction.prepared.commit,
      answer: null,
    }));
  return [...approvals, ...conflicts, ...transactions];
}

/** Still to be answered, or answered and neither run nor returned (PROTOCOL.md 20). */
export function isUnused(approval: ApprovalState): boolean {
  return approval.state === 'pending' || approval.state === 'approved' || approval.state === 'rejected';
}

/** Not decided, or decided by a transaction that has not ended: taken back, it opens the conflict again. */
export function isUnsettled(
  state: Pick<TaskState, 'transactions'>,
  { state: phase, resolved }: ConflictState,
): boolean {
  const by = resolved?.event.transaction ?? null;
  return phase === 'open' || (by !== null && state.transactions.get(by)?.state === 'prepared');
}

/** Those of `all` that are named, in that order. */
export function carriedOver<T extends { readonly carried: boolean }>(
  all: ReadonlyMap<string, T>,
  ids: readonly string[],
): Map<string, T> {
  const kept = new Map<string, T>();
  for (const id of ids) {
    const item = all.get(id);
    if (item !== undefined) kept.set(id, { ...item, carried: true });
  }
  return kept;
}
