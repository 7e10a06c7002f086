/**
 * Chance from a seed: the same seed gives the same drill on every machine.
 *
 * Numbers come from SHA-256 of the seed and a counter; `split` gives an independent stream for a named part, so that
 * one part's drawing more numbers does not change what the others draw.
 */
import { createHash } from 'node:crypto';

export class Chance {
  readonly #seed: string;
  #count = 0;

  constructor(seed: string) {
    this.#seed = seed;
  }

  split(name: string): Chance {
    return new Chance(`${this.#seed}/${name}`);
  }

  /** A whole number from 0 to `limit - 1`. */
  below(limit: number): number {
    this.#count += 1;
    const bytes = createHash('sha256')
      .update(`${this.#seed}#${String(this.#count)}`)
      .digest();
    return bytes.readUIntBE(0, 6) % limit;
  }

  /** True in `part` of `whole` cases. */
  often(part: number, whole: number): boolean {
    return this.below(whole) < part;
  }

  pick<T>(list: readonly T[]): T {
    const item = list[this.below(list.length)];
    if (item === undefined) throw new RangeError('nothing to pick from');
    return item;
  }

  shuffled<T>(list: readonly T[]): T[] {
    const rest = [...list];
    const order: T[] = [];
    while (rest.length > 0) order.push(...rest.splice(this.below(rest.length), 1));
    return order;
  }
}
