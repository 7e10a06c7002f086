/** Events as `log` and `show` give them: one document an event, streams of several tasks as one. */
import type { DurableError } from '../lib/errors.js';
import { hasCode } from '../lib/errors.js';
import type { Recorded } from '../lib/event.js';
import { Ledger } from '../lib/ledger/ledger.js';
import type { Storage } from '../lib/git/storage.js';

/** Fields of every event that a document does not repeat: they are in the ledger's line. */
const LEFT_OUT = new Set(['v', 'workspace', 'turnStart', 'lease', 'key']);

/** The common fields first, then the event's own. The names are a contract. */
export function eventDocument({ event, chain, commit }: Recorded): Readonly<Record<string, unknown>> {
  const { seq, type, at, task, turn, agent, epoch, ...more } = event;
  const own = Object.fromEntries(Object.entries(more).filter(([name]) => !LEFT_OUT.has(name)));
  return { seq, type, at, task, turn, agent, epoch, chain, commit, ...own };
}

export interface Merged {
  readonly oldestFirst: boolean;
  /** Told of a ledger that cannot be read to its end; what can be read is given all the same. */
  readonly onDamage: (error: DurableError<'ledger-damaged'>) => void;
}

/** The events of several tasks by time; within a task in their own order, whatever the clocks said. */
export async function* mergedEvents(
  storage: Storage,
  tasks: readonly string[],
  options: Merged,
): AsyncGenerator<Recorded, void> {
  const streams = tasks.map((task) => {
    const ledger = Ledger.open(storage, task);
    return readable(options.oldestFirst ? ledger.forwards() : ledger.backwards(), options.onDamage);
  });
  const heads = new Map<AsyncGenerator<Recorded, void>, Recorded>();
  try {
    for (const stream of streams) await advance(stream, heads);
    for (
      let next = first(heads, options.oldestFirst);
      next !== null;
      next = first(heads, options.oldestFirst)
    ) {
      const [stream, recorded] = next;
      yield recorded;
      await advance(stream, heads);
    }
  } finally {
    for (const stream of streams) await stream.return();
  }
}

type Heads = Map<AsyncGenerator<Recorded, void>, Recorded>;

async function advance(stream: AsyncGenerator<Recorded, void>, heads: Heads): Promise<void> {
  const next = await stream.next();
  if (next.done === true) heads.delete(stream);
  else heads.set(stream, next.value);
}

function first(heads: Heads, oldestFirst: boolean): [AsyncGenerator<Recorded, void>, Recorded] | null {
  let found: [AsyncGenerator<Recorded, void>, Recorded] | null = null;
  for (const entry of heads) {
    const at = entry[1].event.at;
    if (found === null || (oldestFirst ? at < found[1].event.at : at > found[1].event.at)) found = entry;
  }
  return found;
}

async function* readable(
  stream: AsyncGenerator<Recorded, void>,
  onDamage: Merged['onDamage'],
): AsyncGenerator<Recorded, void> {
  try {
    yield* stream;
  } catch (error) {
    if (!hasCode(error, 'ledger-damaged')) throw error;
    onDamage(error);
  }
}
