/**
 * What an id names, for `show`: an event (by its commit, its number, or TASK/NUMBER), a task, turn, call, approval,
 * checkpoint, transaction or conflict, by any prefix. An exact id wins over those it is a prefix of; a prefix that
 * names several things is refused with all of them.
 */
import { DurableError } from '../lib/errors.js';
import type { Recorded } from '../lib/event.js';
import type { Storage } from '../lib/git/storage.js';
import { findEvents, type Found, type FoundAs } from '../lib/ledger/find.js';
import { findTask } from './address.js';

export interface Located {
  readonly kind: Exclude<FoundAs, 'commit' | 'seq'> | 'event';
  readonly id: string;
  readonly task: string;
  /** The event that it is, or that it begins with. */
  readonly recorded: Recorded;
}

const MOST_CANDIDATES = 20;

/** Errors: 'not-found', 'ambiguous' with the candidates. `onDamage` is told of ledgers that could not be read whole. */
export async function locate(
  storage: Storage,
  word: string,
  onDamage: (error: Error) => void,
): Promise<Located> {
  const numbered = /^([a-z0-9-]+)\/(\d{1,15})$/.exec(word);
  const [prefix, task] = numbered === null ? [word, null] : [numbered[2] ?? '', numbered[1] ?? ''];
  const only = task === null ? {} : { task: findTask(storage, task) };
  const found = await findEvents(storage, prefix, { ...only, onDamage });
  const wanted = numbered === null ? found : found.filter(({ as }) => as === 'seq');
  const exact = wanted.filter(({ id }) => id === prefix);
  return one(word, exact.length > 0 ? exact : wanted);
}

function one(word: string, found: readonly Found[]): Located {
  const [first, ...others] = found;
  if (first === undefined) throw new DurableError('not-found', { what: 'thing recorded as', id: word });
  if (others.length === 0) return located(first);
  const candidates = found.slice(0, MOST_CANDIDATES).map(nameOf);
  if (others.length >= MOST_CANDIDATES) candidates.push(`and ${String(found.length - MOST_CANDIDATES)} more`);
  throw new DurableError('ambiguous', { what: 'thing', id: word, candidates });
}

function located({ as, id, task, recorded }: Found): Located {
  if (as === 'commit' || as === 'seq') return { kind: 'event', id: recorded.commit, task, recorded };
  return { kind: as, id, task, recorded };
}

function nameOf({ as, id, task, recorded }: Found): string {
  return as === 'commit' || as === 'seq' ? `event ${task}/${String(recorded.event.seq)}` : `${as} ${id}`;
}
