/** One of many by its id or a prefix of it: an exact id wins over those it is a prefix of. */
import { DurableError } from '../errors.js';

/** Errors: 'not-found', 'ambiguous' with the candidates. */
export function pickOne<T>(what: string, prefix: string, all: readonly T[], idOf: (one: T) => string): T {
  const found = all.filter((one) => prefix !== '' && idOf(one).startsWith(prefix));
  const only = found.find((one) => idOf(one) === prefix) ?? found[0];
  if (only === undefined) throw new DurableError('not-found', { what, id: prefix });
  if (found.length > 1 && idOf(only) !== prefix)
    throw new DurableError('ambiguous', { what, id: prefix, candidates: found.map(idOf) });
  return only;
}
