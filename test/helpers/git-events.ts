/** Events as git alone gives them: each commit's message has its event as a line of JSON. */
import type { Scratch } from './scratch.js';

export const ledgers = (place: Scratch): string[] =>
  place.git('for-each-ref', '--format=%(refname)', 'refs/durable/tasks/').split('\n').filter(Boolean);

/** Those of each ledger, oldest first, one ledger after the other. */
export function gitEvents<T>(place: Scratch, refs: readonly string[] = ledgers(place)): T[] {
  return refs.flatMap((ref) =>
    place
      .git('log', '--reverse', '--format=%B', ref)
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as T),
  );
}
