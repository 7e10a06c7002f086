/**
 * Acquiring: the lease of this work tree, when nobody holds it; else who does.
 *
 *   never held, free           held by the caller, epoch + 1
 *   held, holder alive         'lease-held' (a paused holder is alive: TTL alone takes nothing, PROTOCOL.md 12)
 *   held, death not provable   'lease-unproven' with the challenger's wait
 *   holder dead, but something of its operation runs: as alive (life.ts)
 *   holder dead, turn open     'recovery-needed': taking over always goes through recovery
 *   holder dead, none open     taken over at once (it died before turn.started, after turn.finished, or in an operation)
 *
 * A free record whose turn, or whose predecessor's turn, is still open in the ledger needs recovery too. The epoch is
 * given out by the compare-and-swap alone: of any number of callers one wins, the others read again and are told who.
 */
import type { Storage } from '../git/storage.js';
import type { Held } from './hold.js';
import { judgeHolding } from './life.js';
import { NOTHING_SETTLED } from './older.js';
import { openTurnOf } from './open-turn.js';
import { leaseOf, readLease, type CurrentLease } from './record.js';
import { heldBy, interruptedBy, unprovenBy } from './refusal.js';
import { ownWorkspace, takeFrom, type LeaseRequest } from './take.js';

/**
 * Errors: 'lease-held', 'lease-unproven', 'recovery-needed' (each with `recordBehind(error)`), 'ref-locked', the disk's.
 */
export async function acquire(storage: Storage, request: LeaseRequest): Promise<Held> {
  const lease = leaseOf(ownWorkspace(storage));
  for (;;) {
    const current = await readLease(storage, lease);
    const proof = current === null ? null : await refuseUnlessOver(storage, current);
    const held = await takeFrom(storage, { lease, current, request, proof, settled: NOTHING_SETTLED });
    if (held !== null) return held;
  }
}

/** Throws what `acquire` would throw now. */
export async function demandFree(storage: Storage): Promise<void> {
  const current = await readLease(storage, leaseOf(ownWorkspace(storage)));
  if (current !== null) await refuseUnlessOver(storage, current);
}

/** Returns the proof of a dead holder, null for a free record; throws what the caller has to be told else. */
async function refuseUnlessOver(storage: Storage, current: CurrentLease): Promise<string | null> {
  const { record } = current;
  const { verdict, why } = judgeHolding(storage, record);
  if (record.state === 'held' && verdict === 'alive') throw heldBy(storage, record, why);
  if (record.state === 'held' && verdict === 'unproven') throw unprovenBy(storage, record, why);
  const open = await openTurnOf(storage, record);
  if (open !== null) throw interruptedBy(record, open);
  return record.state === 'held' ? why : null;
}
