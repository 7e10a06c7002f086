/** Sums over records of usage: what no record says is null, which is not zero. */
import type { EventOf } from '../event.js';

export interface Used {
  /** Names as they were recorded, sorted. */
  readonly models: readonly string[];
  /** Sums over the records that say it; null when none does. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly cacheTokens: number | null;
  /** US dollars, to a billionth. */
  readonly costUsd: number | null;
  /** As recorded with the usage. Milliseconds. */
  readonly wallMs: number | null;
}

const SUMS = ['inputTokens', 'outputTokens', 'cacheTokens', 'costUsd', 'wallMs'] as const;

export class UsageSums {
  readonly #models = new Set<string>();
  readonly #sums = new Map<(typeof SUMS)[number], number>();

  add(event: EventOf<'usage.recorded'>): void {
    if (event.model !== null) this.#models.add(event.model);
    for (const name of SUMS) {
      const value = event[name];
      if (value === null) continue;
      // Dollars are summed in whole billionths: 0.1 and 0.2 make 0.3.
      const exact = name === 'costUsd' ? Math.round(value * BILLION) : value;
      // A record of before such numbers were refused makes no sum that JSON has no word for.
      this.#sums.set(name, Math.min(Number.MAX_VALUE, (this.#sums.get(name) ?? 0) + exact));
    }
  }

  used(): Used {
    const sum = (name: (typeof SUMS)[number]): number | null => this.#sums.get(name) ?? null;
    const billionths = sum('costUsd');
    return {
      models: [...this.#models].sort(),
      inputTokens: sum('inputTokens'),
      outputTokens: sum('outputTokens'),
      cacheTokens: sum('cacheTokens'),
      costUsd: billionths === null ? null : billionths / BILLION,
      wallMs: sum('wallMs'),
    };
  }
}

const BILLION = 1e9;
