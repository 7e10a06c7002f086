/**
 * Ending a transaction that was killed half way, by the process that goes on with its turn: back to its before-images, or
 * forward to its after-images, from its manifest alone.
 *
 * Only paths that hold the other image move; what somebody else has put there since stays and is a conflict, since it would
 * be overwritten unseen. Killed in between, the transaction is still prepared and is ended the same way.
 */
import type { TransactionState } from '../ledger/state.js';
import { conflict } from './apply.js';
import { recordConflict, withConflict } from './conflict.js';
import { manifestOf } from './settle.js';
import { look } from './revision.js';
import { applyEntries, type TransactionContext } from './transaction.js';
import { matches, sameImage } from './verdict.js';
import { quantity } from '../quantity.js';

/**
 * Errors: 'conflict' when a path holds neither of its images (both sides are recorded, the other paths have moved), 'lease-lost',
 * 'stage-revoked', 'object-missing', the disk's.
 */
export async function endHalfDone(
  context: TransactionContext,
  transaction: TransactionState,
  direction: 'back' | 'forward',
): Promise<void> {
  const { storage, ledger, held, agent, workspace } = context;
  const { entries, folders } = await manifestOf(context, transaction);
  const seen = entries
    .filter(({ before, after }) => !sameImage(before, after))
    .map(({ path, before, after, permissions }) => ({
      move:
        direction === 'back'
          ? { path, from: after, to: before, permissions }
          : { path, from: before, to: after },
      ...look(storage, path),
    }));
  const moves = seen.filter(({ move, found }) => matches(found, move.from)).map(({ move }) => move);
  const prune = direction === 'back' ? folders : [];
  if (moves.length > 0) await applyEntries(context, moves, { purpose: 'repair', isKept: true, prune });
  const clashes = seen
    .filter(({ move, found }) => !matches(found, move.from) && !matches(found, move.to))
    .map(({ move: { path, from, to }, found, bytes }) => {
      const [base, mine] = direction === 'back' ? [to, from] : [from, to];
      return { move: { path, from: base, to: mine }, found, bytes, late: false };
    });
  const { id, prepared } = transaction;
  const reason = `taken back before it is done again: ${quantity(moves.length, 'path')}`;
  const ends = { turn: prepared.event.turn, transaction: id, by: 'recovery' } as const;
  const isWhole = direction === 'forward' && clashes.length === 0;
  await ledger.append(
    () => [
      isWhole
        ? { type: 'transaction.committed', ...ends }
        : { type: 'transaction.rolled-back', ...ends, reason: clashes.length === 0 ? reason : MIXED },
    ],
    { lease: held.token, agent, workspace },
  );
  const ids: string[] = [];
  for (const clash of clashes) ids.push(await recordConflict(context, { clash, why: 'changed-since-read' }));
  const [first] = clashes;
  if (first !== undefined) throw withConflict(conflict(first), ids[0] ?? '');
}

const MIXED = 'somebody else changed a path of it: its other paths have moved, that one stays';
