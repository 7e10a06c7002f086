/**
 * Epochs along a ledger (PROTOCOL.md 3 and 37): within one lease id they never go down, each begins with
 * `lease.acquired`, and each has one holder.
 */
import type { Event } from '../event.js';

export interface EpochFinding {
  readonly code: 'epoch-went-down' | 'epoch-not-acquired' | 'epoch-shared';
  readonly detail: string;
}

interface Current {
  readonly epoch: number;
  readonly runtime: string | null;
}

export class EpochCheck {
  readonly #current = new Map<string, Current>();

  add(event: Event): EpochFinding[] {
    const { lease, epoch } = event;
    if (lease === null || epoch === null) return [];
    const before = this.#current.get(lease);
    const runtime = 'holder' in event ? event.holder.runtime : null;
    const named = `epoch ${String(epoch)} of ${lease}`;
    if (before !== undefined && epoch < before.epoch) {
      return [{ code: 'epoch-went-down', detail: `${named} comes after epoch ${String(before.epoch)}` }];
    }
    if (before?.epoch !== epoch) {
      this.#current.set(lease, { epoch, runtime });
      return event.type === 'lease.acquired'
        ? []
        : [{ code: 'epoch-not-acquired', detail: `${named} begins with ${event.type}` }];
    }
    if (runtime === null || before.runtime === null || runtime === before.runtime) return [];
    return [{ code: 'epoch-shared', detail: `${named} has two holders, ${before.runtime} and ${runtime}` }];
  }
}
