/**
 * What the killed repairs of a turn have moved: each path with its image before the first of them, and those they gave it.
 *
 * A path that still holds such an image is judged as the turn left it, not as a cut-short repair did, so that a repair in the
 * other direction moves it on instead of taking half of a roll back for the turn's own work.
 */
import type { Image } from '../event.js';
import { matches, type Found } from '../files/verdict.js';
import { isRepair } from './outcome.js';
import { manifestIn, type RecoveryContext, type Traces } from './touched.js';

export interface Displacement {
  /** As the turn left it. */
  readonly original: Image;
  /** What repairs put there, oldest first. */
  readonly written: readonly Image[];
}

export type Displaced = ReadonlyMap<string, Displacement>;

/** Errors: 'object-missing' when a manifest was purged and nobody takes up losses. */
export async function displacedBy(context: RecoveryContext, turn: Traces): Promise<Displaced> {
  const displaced = new Map<string, Displacement>();
  for (const transaction of turn.transactions.filter((one) => isRepair(one, turn))) {
    for (const { path, before, after } of (await manifestIn(context, transaction))?.entries ?? []) {
      const earlier = displaced.get(path);
      const original = earlier === undefined ? before : earlier.original;
      displaced.set(path, { original, written: [...(earlier?.written ?? []), after] });
    }
  }
  return displaced;
}

/** The displacement of a path that holds what a repair put there; undefined when it holds anything else. */
export function displacementAt(displaced: Displaced, path: string, now: Found): Displacement | undefined {
  const found = displaced.get(path);
  const isThere =
    found !== undefined &&
    !matches(now, found.original) &&
    found.written.some((image) => matches(now, image));
  return isThere ? found : undefined;
}
