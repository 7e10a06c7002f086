/**
 * Taking back a transaction that was killed half way, by the process that goes on with its turn.
 *
 * Only paths that hold the after-image get their before-image; what somebody else has put there since stays and is a conflict,
 * since the transaction, done again, would overwrite it unseen. Killed in between, the transaction is still prepared and is taken back the same way.
 */
import type { TransactionState } from '../ledger/state.js';
import { conflict } from './apply.js';
import { recordConflict } from './conflict.js';
import { manifestOf } from './settle.js';
import { look } from './revision.js';
import { applyEntries, type TransactionContext } from './transaction.js';
import { matches, sameImage } from './verdict.js';

/**
 * Errors: 'conflict' when a path holds neither of its images (both sides are recorded, the other paths are back), 'lease-lost',
 * 'stage-revoked', 'object-missing', the disk's.
 */
export async function takeBack(context: TransactionContext, transaction: TransactionState): Promise<void> {
  const { storage, ledger, held, agent, workspace } = context;
  const { entries, folders } = await manifestOf(context, transaction);
  const seen = entries
    .filter(({ before, after }) => !sameImage(before, after))
    .map(({ path, before, after, permissions }) => ({
      move: { path, from: after, to: before, permissions },
      ...look(storage, path),
    }));
  const moves = seen.filter(({ move, found }) => matches(found, move.from)).map(({ move }) => move);
  if (moves.length > 0)
    await applyEntries(context, moves, { purpose: 'repair', isKept: true, prune: folders });
  const reason = `taken back before it is done again: ${String(moves.length)} paths`;
  const { id, prepared } = transaction;
  await ledger.append(
    () => [
      {
        type: 'transaction.rolled-back',
        turn: prepared.event.turn,
        transaction: id,
        by: 'recovery',
        reason,
      },
    ],
    { lease: held.token, agent, workspace },
  );
  const clashes = seen
    .filter(({ move, found }) => !matches(found, move.from) && !matches(found, move.to))
    .map(({ move: { path, from: mine, to: base }, found, bytes }) => {
      return { move: { path, from: base, to: mine }, found, bytes, late: false };
    });
  for (const clash of clashes)
    await recordConflict(context, { clash, mine: null, why: 'changed-since-read' });
  const [first] = clashes;
  if (first !== undefined) throw conflict(first);
}
