/**
 * Renewing: the same holding, a fresh nonce (PROTOCOL.md 1, 36). A local lease is not ended by a clock: after sleep a
 * renewal is the same compare-and-swap, and either moves the ref or finds the lease lost.
 */
import { DurableError } from '../errors.js';
import type { Storage } from '../git/storage.js';
import {
  readLease,
  swapLease,
  tokenOid,
  type CurrentLease,
  type LeaseRecord,
  type LeaseToken,
} from './record.js';

/** What a renewal may change beside nonce and time. */
export type Renewal = Partial<Pick<LeaseRecord, 'sessions' | 'keeper' | 'recovering' | 'state' | 'left'>>;

/** Tries are bounded by time, not by a count (PROTOCOL.md 8). */
const BUDGET_MS = 10_000;

/**
 * Moves the lease to a renewed record of the same token, and removes the superseded one's object.
 * Errors: 'lease-lost', 'ref-locked', 'out-of-space', 'io-failed'.
 */
export async function renewLease(
  storage: Storage,
  token: LeaseToken,
  changes: Renewal = {},
): Promise<CurrentLease> {
  const until = storage.host.monotonicMs() + BUDGET_MS;
  for (;;) {
    const oid = await tokenOid(storage, token);
    const current = await readLease(storage, token.lease);
    if (current?.oid !== oid) continue;
    const record = { ...current.record, ...changes, renewedAt: storage.host.now().toISOString() };
    const outcome = await swapLease(storage, oid, record);
    if (outcome.moved) {
      storage.objects.drop(oid);
      return { oid: outcome.oid, record };
    }
    if (storage.host.monotonicMs() >= until)
      throw new DurableError('ref-locked', { ref: token.ref, owner: 'other renewals', waitedMs: BUDGET_MS });
  }
}
