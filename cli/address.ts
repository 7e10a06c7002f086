/** Ids by any prefix that names one thing only. */
import { DurableError } from '../lib/errors.js';
import type { Storage } from '../lib/git/storage.js';
import { listTasks } from '../lib/ledger/ledger.js';

/** Errors: 'not-found', 'ambiguous' with the candidates. */
export function findTask(storage: Storage, prefix: string): string {
  return pick('task', prefix, listTasks(storage));
}

/** An exact id wins over those it is a prefix of. */
export function pick(what: string, prefix: string, ids: readonly string[]): string {
  const found = [...new Set(ids)].filter((id) => prefix !== '' && id.startsWith(prefix));
  const only = found.find((id) => id === prefix) ?? found[0];
  if (only === undefined) throw new DurableError('not-found', { what, id: prefix });
  if (found.length > 1 && only !== prefix)
    throw new DurableError('ambiguous', { what, id: prefix, candidates: found });
  return only;
}
