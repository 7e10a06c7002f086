/** A repeatable stream of random numbers (mulberry32): a failing cut is found again by its seed. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }

  /** A whole number in [0, below). */
  below(below: number): number {
    return Math.floor(this.next() * below);
  }

  pick<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.below(choices.length)] ?? choices[0];
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }
}

/** The seed of a random test: fixed unless the environment names another one. */
export function seedOf(env: Readonly<Record<string, string | undefined>>, fallback = 20260131): number {
  return Number(env['DURABLE_TEST_SEED'] ?? fallback);
}
