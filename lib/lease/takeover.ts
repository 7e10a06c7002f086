/**
 * Taking a lease from a holder that is over, in the order of PROTOCOL.md 11.
 *
 *   1. proof of death; or, with `force`, the recorded processes ended and their death awaited; or a challenge
 *   2. compare-and-swap of the lease against the record that was judged
 *   3. the stages of all older epochs revoked
 *   4. older writers ended (found processes), write tickets of older epochs awaited or broken
 *   5. only then the caller gets its `Held`, and may read the work tree
 *
 * A taker that dies anywhere is taken over the same way: every step covers all older epochs and is idempotent. When a
 * step after the swap fails, the lease is handed back: it names the dead holder again, under the new epoch.
 * Caveat: one rename of the older epoch may still land between 2 and 3. That is harmless, nothing was read yet (18).
 */
import type { Storage } from '../git/storage.js';
import { challengeMs, hostChallenge, outlasted, type Challenge } from './challenge.js';
import type { Held } from './hold.js';
import { judgeHolding } from './life.js';
import { endHolder, NOTHING_SETTLED, type Settled } from './older.js';
import { leaseOf, leaseRef, readLease, type CurrentLease } from './record.js';
import { heldBy, unprovenBy } from './refusal.js';
import { ownWorkspace, takeFrom, type LeaseRequest } from './take.js';

export interface TakeOverRequest extends LeaseRequest {
  /** A person said so: a live holder's recorded processes are ended first. */
  readonly force?: boolean;
  /** Wait out a holder whose death cannot be proven; without it (and without `force`) that is 'lease-unproven'. */
  readonly challenge?: Challenge;
}

/**
 * The lease, whoever held it, once that holder is over. Recovery's door; `acquire` is the one for starting.
 * Errors: 'lease-held' (a live holder without `force`, or one that cannot be ended), 'lease-unproven', 'ref-locked',
 * the disk's. `recordBehind(error)` is the record that stood in the way.
 */
export async function takeOver(storage: Storage, request: TakeOverRequest): Promise<Held> {
  const lease = leaseOf(ownWorkspace(storage));
  const done: Settled[] = [];
  for (;;) {
    const current = await readLease(storage, lease);
    const proof = await proofOf(storage, current, request, done);
    if (proof === 'look again') continue;
    const settled = done.reduce(joined, NOTHING_SETTLED);
    const held = await takeFrom(storage, { lease, current, request, proof, settled });
    if (held !== null) return held;
  }
}

const joined = (one: Settled, other: Settled): Settled => ({
  ended: [...one.ended, ...other.ended],
  foreign: [...one.foreign, ...other.foreign],
});

/** Why the recorded holder is over; null where the lease is free; 'look again' when the record moved meanwhile. */
async function proofOf(
  storage: Storage,
  current: CurrentLease | null,
  request: TakeOverRequest,
  done: Settled[],
): Promise<string | null> {
  if (current === null) return null;
  const { record } = current;
  // An agent that is asked to end may let go of its lease on the way out; its other processes may be there still.
  if (record.state === 'free')
    return done.every(({ ended }) => ended.length === 0) ? null : 'it let go when its processes were ended';
  const { verdict, why } = judgeHolding(storage, record);
  if (verdict === 'dead') return why;
  if (verdict === 'alive') {
    if (request.force !== true) throw heldBy(storage, record, why);
    done.push(await endHolder(storage, record));
    // The keeper may have renewed until it was ended: the record to swap against is read again.
    return 'look again';
  }
  const clock = request.challenge ?? (request.force === true ? hostChallenge(storage.host) : null);
  if (clock === null) throw unprovenBy(storage, record, why);
  const stood = await outlasted(storage, current, leaseRef(record.lease), clock);
  return stood
    ? `its record stood unchanged for ${String(challengeMs(record.ttlMs))} ms (${why})`
    : 'look again';
}
