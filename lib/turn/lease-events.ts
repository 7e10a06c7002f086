/** What the ledger says of a lease: that it was acquired, over whom and by which proof. */
import type { EventDraft } from '../event.js';
import type { Held } from '../lease/hold.js';

export function acquiredDraft(held: Held): EventDraft {
  const { record, takenOver } = held;
  return {
    type: 'lease.acquired',
    turn: record.turn,
    holder: record.holder,
    ttlMs: record.ttlMs,
    takenOver: takenOver === null ? null : { epoch: takenOver.epoch, proof: takenOver.proof.slice(0, 200) },
  };
}
