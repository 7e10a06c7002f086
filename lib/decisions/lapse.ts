/**
 * Requests that end by themselves: at a time, or because the work tree is no longer what it was when they were made.
 *
 * A request lapses while it waits for its answer, and an approval while it waits to be used; a rejection does not, since giving
 * it back starts nothing. What ends a request is the append that says so (`approval.resolved`), made by whoever comes first to
 * ask, wait, answer or use it, in the same conditional append that would else have answered or used it: a request has one end.
 * From then on no clock and no restored file revives it. Until then nothing is said to be that is not recorded: whoever only looks
 * is told of a time that has passed, which the request itself names, as an end; but of a tree that has changed, and may change
 * back, beside a request that still waits.
 *
 * Caveats: expiry is by the wall clock of whoever looks. What a checkpoint does not hold (ignored files) is no change. Between
 * the look at the tree and the start of the call stays a moment in which a change is not seen.
 */
import { hasCode } from '../errors.js';
import type { EventDraft } from '../event.js';
import { diffCheckpoints } from '../files/diff.js';
import type { Storage } from '../git/storage.js';
import type { ApprovalState } from '../ledger/state.js';

export type Lapse = 'expired' | 'invalidated';

/** The part of a request that says when it ends by itself. */
export interface Ending {
  /** Neither answered nor used from then on. Default: never. */
  readonly expiresAt?: Date | null;
  /** Neither answered nor used once the work tree differs from what it was at the request. Default: false. */
  readonly invalidOnChange?: boolean;
}

/**
 * What ends the request now; null when nothing does, or it has its end. `workTree`: whether the one here is the one to look
 * at. Errors: those of a snapshot.
 */
export async function lapseOf(
  storage: Storage,
  approval: ApprovalState,
  { workTree }: { readonly workTree: boolean },
): Promise<Lapse | null> {
  if (approval.state !== 'pending' && approval.state !== 'approved') return null;
  const { event } = approval.requested;
  if (expiresInMs(storage, approval) <= 0) return 'expired';
  if (!workTree || !event.invalidOnChange) return null;
  return (await hasChanged(storage, event.checkpoint)) ? 'invalidated' : null;
}

/**
 * Whether the request ends by itself at the latest when one with this ending would. A stricter one is taken up, and what it ends
 * with is said; one that would outlive what is asked for is not: that is asked for as another request, with its own end.
 */
export function endsWithin({ requested: { event } }: ApprovalState, ending: Ending): boolean {
  const until = ending.expiresAt?.getTime() ?? Infinity;
  const ends = event.expiresAt === null ? Infinity : Date.parse(event.expiresAt);
  return ends <= until && (event.invalidOnChange || ending.invalidOnChange !== true);
}

/** It waits for its answer, as far as is recorded and its own time goes. */
export function isWaiting({ state }: ApprovalState, lapsed: Lapse | null): boolean {
  return state === 'pending' && lapsed !== 'expired';
}

/** Milliseconds from now, by the wall clock; infinite when it does not expire. */
export function expiresInMs({ host }: Storage, { requested: { event } }: ApprovalState): number {
  return event.expiresAt === null ? Infinity : Date.parse(event.expiresAt) - host.now().getTime();
}

export function lapseDraft({ id, requested }: ApprovalState, lapse: Lapse): EventDraft {
  return {
    type: 'approval.resolved',
    turn: requested.event.turn,
    approval: id,
    decision: lapse,
    by: lapse === 'expired' ? 'the clock' : 'a change of the work tree',
    feedback: null,
    feedbackSummary: '',
  };
}

/** A checkpoint that was purged says nothing for the tree: then it counts as changed. */
async function hasChanged(storage: Storage, checkpoint: string | null): Promise<boolean> {
  if (checkpoint === null) return true;
  try {
    return (await diffCheckpoints(storage, checkpoint)).length > 0;
  } catch (error) {
    if (GONE.some((code) => hasCode(error, code))) return true;
    throw error;
  }
}

const GONE = ['not-found', 'object-missing', 'object-damaged'] as const;
