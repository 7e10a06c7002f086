/**
 * What an id names: an event (by its commit, its number, or TASK/NUMBER), a task, turn, call, approval, checkpoint,
 * transaction or conflict, by any prefix. An exact id wins over those it is a prefix of; a prefix that names several
 * things is refused with all of them.
 */
import { DurableError } from '../lib/errors.js';
import type { Recorded } from '../lib/event.js';
import type { Storage } from '../lib/git/storage.js';
import { listTasks } from '../lib/ledger/ledger.js';
import { mergedEvents } from './events.js';

export type Kind =
  'task' | 'event' | 'turn' | 'invocation' | 'approval' | 'checkpoint' | 'transaction' | 'conflict';

export interface Located {
  readonly kind: Kind;
  readonly id: string;
  readonly task: string;
  /** The event that it is, or that it begins with; null for a task. */
  readonly recorded: Recorded | null;
}

const MOST_CANDIDATES = 20;

/** Errors: 'not-found', 'ambiguous' with the candidates. `onDamage` is told of ledgers that could not be read whole. */
export async function locate(
  storage: Storage,
  word: string,
  onDamage: (error: Error) => void,
): Promise<Located> {
  const tasks = listTasks(storage);
  const found: Located[] = tasks
    .filter((task) => task.startsWith(word))
    .map((task) => ({ kind: 'task', id: task, task, recorded: null }));
  const exact: Located[] = found.filter(({ id }) => id === word);
  for await (const recorded of mergedEvents(storage, tasks, { oldestFirst: true, onDamage })) {
    for (const thing of thingsOf(recorded)) if (thing.id.startsWith(word)) found.push(thing);
    if (isNumber(recorded, word)) exact.push(eventThing(recorded));
  }
  exact.push(...found.filter(({ id, kind }) => id === word && kind !== 'task'));
  return only(word, exact.length > 0 ? exact : found);
}

function only(word: string, found: readonly Located[]): Located {
  const [first, ...others] = found;
  if (first === undefined) throw new DurableError('not-found', { what: 'thing recorded as', id: word });
  if (others.length === 0) return first;
  const names = found.map(({ kind, id, task, recorded }) =>
    kind === 'event' ? `event ${task}/${String(recorded?.event.seq ?? 0)}` : `${kind} ${id}`,
  );
  const candidates = names.slice(0, MOST_CANDIDATES);
  if (names.length > candidates.length)
    candidates.push(`and ${String(names.length - candidates.length)} more`);
  throw new DurableError('ambiguous', { what: 'thing', id: word, candidates });
}

/** `12` in any task, `TASK/12` in one. */
function isNumber({ event }: Recorded, word: string): boolean {
  const match = /^(?:([a-z0-9-]+)\/)?(\d{1,15})$/.exec(word);
  return match !== null && event.task.startsWith(match[1] ?? '') && Number(match[2]) === event.seq;
}

const eventThing = (recorded: Recorded): Located => ({
  kind: 'event',
  id: recorded.commit,
  task: recorded.event.task,
  recorded,
});

function thingsOf(recorded: Recorded): Located[] {
  const named = begins(recorded);
  if (named === null) return [eventThing(recorded)];
  const [kind, id] = named;
  return [eventThing(recorded), { kind, id, task: recorded.event.task, recorded }];
}

function begins({ event }: Recorded): readonly [Kind, string] | null {
  switch (event.type) {
    case 'turn.started':
      return event.turn === null ? null : ['turn', event.turn];
    case 'invocation.proposed':
      return ['invocation', event.invocation];
    case 'approval.requested':
      return ['approval', event.approval];
    case 'checkpoint.taken':
      return ['checkpoint', event.checkpoint];
    case 'transaction.prepared':
      return ['transaction', event.transaction];
    case 'conflict.detected':
      return ['conflict', event.conflict];
    default:
      return null;
  }
}
