/**
 * Events by what a person types: a number, or the beginning of an id (`show`).
 *
 * An id is found at the event that brings it into being: a turn at its turn.started, an approval at its request. The
 * whole ledger is streamed, newest turn or not, but only events whose text holds the prefix are decoded.
 */
import { hasCode, type DurableError } from '../errors.js';
import type { Event, EventType, Recorded } from '../event.js';
import type { Storage } from '../git/storage.js';
import { decodeIn } from './load.js';
import { listTasks, TASKS_PREFIX } from './ledger.js';
import { rawEvents } from './stream.js';
import { readableTip } from './torn.js';

export type FoundAs =
  'commit' | 'seq' | 'task' | 'turn' | 'invocation' | 'approval' | 'conflict' | 'transaction' | 'checkpoint';

export interface Found {
  readonly task: string;
  readonly as: FoundAs;
  /** The whole id of which the prefix was given. */
  readonly id: string;
  readonly recorded: Recorded;
}

export interface FindOptions {
  /** Only in this task; default: in all. */
  readonly task?: string;
  /** Told of a ledger that cannot be read to its end, whose earlier events are searched; default: it is thrown. */
  readonly onDamage?: (error: DurableError<'ledger-damaged'>) => void;
}

/** In the order of tasks, then oldest first. Errors: 'ledger-damaged', 'version-unsupported'. */
export async function findEvents(
  storage: Storage,
  prefix: string,
  options: FindOptions = {},
): Promise<Found[]> {
  if (prefix === '') return [];
  const found: Found[] = [];
  for (const task of options.task === undefined ? listTasks(storage) : [options.task]) {
    found.push(...(await findIn(storage, { task, prefix, onDamage: options.onDamage })));
  }
  return found;
}

interface Search {
  readonly task: string;
  readonly prefix: string;
  readonly onDamage: FindOptions['onDamage'];
}

async function findIn(storage: Storage, search: Search): Promise<Found[]> {
  const { task, prefix, onDamage } = search;
  const { commit: to, damage } = await readableTip(storage, task, `${TASKS_PREFIX}${task}`);
  if (damage !== null && onDamage === undefined) throw damage;
  if (damage !== null) onDamage?.(damage);
  if (to === null) return [];
  const found: Found[] = [];
  try {
    for await (const batch of rawEvents(storage, task, { after: null, to, oldestFirst: true })) {
      for (const { commit, message } of batch) {
        if (!commit.startsWith(prefix) && !message.includes(prefix)) continue;
        found.push(...matches(task, prefix, decodeIn(task, message, commit)));
      }
    }
  } catch (error) {
    if (onDamage === undefined || !hasCode(error, 'ledger-damaged')) throw error;
    onDamage(error);
  }
  return found;
}

function matches(task: string, prefix: string, recorded: Recorded): Found[] {
  const { commit, event } = recorded;
  const found: Found[] = [];
  if (commit.startsWith(prefix)) found.push({ task, as: 'commit', id: commit, recorded });
  if (String(event.seq) === prefix) found.push({ task, as: 'seq', id: prefix, recorded });
  const made = madeBy(event.type, event);
  if (made?.id?.startsWith(prefix) === true) found.push({ task, as: made.as, id: made.id, recorded });
  return found;
}

interface Made {
  readonly as: FoundAs;
  readonly id: string | null;
}

function madeBy<T extends EventType>(type: T, event: Event<T>): Made | undefined {
  return MADE[type]?.(event);
}

const MADE: { readonly [T in EventType]?: (event: Event<T>) => Made } = {
  'task.opened': (event) => ({ as: 'task', id: event.task }),
  'turn.started': (event) => ({ as: 'turn', id: event.turn }),
  'invocation.proposed': (event) => ({ as: 'invocation', id: event.invocation }),
  'approval.requested': (event) => ({ as: 'approval', id: event.approval }),
  'conflict.detected': (event) => ({ as: 'conflict', id: event.conflict }),
  'transaction.prepared': (event) => ({ as: 'transaction', id: event.transaction }),
  'checkpoint.taken': (event) => ({ as: 'checkpoint', id: event.checkpoint }),
};
