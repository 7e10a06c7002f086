/**
 * Challenging a holder whose death cannot be proven from here: another host's, or another pid namespace's (PROTOCOL.md 34 to 36).
 *
 * The challenger counts T_C from having a record in hand, by clocks that nobody can step, the least of monotonic and
 * since boot; any change of the record restarts the count. Wall clocks are never compared. After the count it swaps
 * against that very record: a renewal in between makes the swap fail, and the count begins again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Host } from '../host.js';
import type { Storage } from '../git/storage.js';
import type { CurrentLease } from './record.js';

/** What a challenger counts and waits with; tests hand in one that does not wait. Milliseconds. */
export interface Challenge {
  readonly monotonicMs: () => number;
  readonly uptimeMs: () => number;
  readonly pause: (ms: number) => Promise<void>;
}

export function hostChallenge(host: Host): Challenge {
  return {
    monotonicMs: host.monotonicMs,
    uptimeMs: host.uptimeMs,
    pause: async (ms) => {
      await sleep(ms);
    },
  };
}

/** T_C = 1.25 TTL + 5 s (PROTOCOL.md 35). */
export const challengeMs = (ttlMs: number): number => Math.ceil(1.25 * ttlMs) + 5000;

const LOOK_MS = 1000;

/** True when the record stood unchanged for T_C; false as soon as the ref is at another one. */
export async function outlasted(
  storage: Storage,
  current: CurrentLease,
  ref: string,
  clock: Challenge,
): Promise<boolean> {
  const needed = challengeMs(current.record.ttlMs);
  const monotonic = clock.monotonicMs();
  const uptime = clock.uptimeMs();
  for (;;) {
    const passed = Math.min(clock.monotonicMs() - monotonic, clock.uptimeMs() - uptime);
    if (storage.refs.read(ref) !== current.oid) return false;
    if (passed >= needed) return true;
    await clock.pause(Math.min(LOOK_MS, needed - passed));
  }
}
