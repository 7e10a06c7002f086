/**
 * Conflicts that a repair met, and has decided by looking again.
 *
 * Somebody writes a path while the repair puts files back: that is recorded as a conflict, the repair is taken back, and all is
 * found anew. Then the path is foreign, kept and named in the result, or it is as it was before and gets its image: as if the
 * write had come a moment earlier, which is no conflict either. So it is settled in the append that ends the turn, also when the
 * repair that met it was killed and another one ended the work. A write that is found after the images are in place is looked
 * at by nobody again: that conflict stays open.
 */
import { holdsMine, resolvedDraft } from '../decisions/conflict.js';
import type { EventDraft } from '../event.js';
import type { Storage } from '../git/storage.js';
import type { ConflictState, TaskState, TransactionState } from '../ledger/state.js';

/** Open ones, detected since the first of these repairs had begun; `turn`: null for a restore outside turns. */
export function conflictsMet(
  state: TaskState,
  turn: string | null,
  repairs: readonly TransactionState[],
): ConflictState[] {
  const began = Math.min(...repairs.map(({ prepared }) => prepared.event.seq));
  return [...state.conflicts.values()].filter(
    ({ state: phase, detected: { event } }) => phase === 'open' && event.turn === turn && event.seq > began,
  );
}

/** Of those that are open still: what is at the path now is what was chosen. */
export function decided(
  storage: Storage,
  state: TaskState,
  met: { readonly conflicts: readonly ConflictState[]; readonly by: string },
): EventDraft[] {
  return met.conflicts
    .filter(({ id }) => state.conflicts.get(id)?.state === 'open')
    .map((conflict) =>
      resolvedDraft(conflict, holdsMine(storage, conflict) ? 'keep-mine' : 'use-latest', {
        by: met.by,
        transaction: null,
      }),
    );
}
