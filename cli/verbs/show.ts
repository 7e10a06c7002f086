/** `show ID`: one thing and the events that speak of it. Exact arguments, and all of what was typed, are read from the contents. */
import type { EventType, Kept, Recorded } from '../../lib/event.js';
import type { Storage } from '../../lib/git/storage.js';
import { Ledger } from '../../lib/ledger/ledger.js';
import { subjectOf } from '../../lib/ledger/subject.js';
import { readArguments, readText } from '../contents.js';
import { eventDocument, mergedEvents } from '../events.js';
import { EXIT } from '../exit.js';
import { locate, type Located } from '../locate.js';
import { withStorage } from '../open.js';
import type { Output } from '../output.js';
import type { VerbContext } from '../verb.js';

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  const word = context.arguments.required('id');
  return withStorage(context, async (storage) => {
    const damage = new Set<string>();
    const onDamage = (error: Error): void => {
      // Told at once: what is asked for may be the very event that cannot be read.
      if (!damage.has(error.message)) output.note(error.message);
      damage.add(error.message);
    };
    const thing = await output.progress('looking', () => locate(storage, word, onDamage));
    const about = await aboutOf(storage, thing);
    const events = await eventsOf(storage, thing, onDamage);
    const document = { kind: thing.kind, id: thing.id, task: thing.task, ...about };
    output.result(
      { ...document, ...(thing.kind === 'event' ? {} : { events: events.map(eventDocument) }) },
      () => {
        describe(output, document, thing.kind === 'event' ? [] : events);
      },
    );
    return damage.size > 0 ? EXIT.failed : EXIT.done;
  });
}

type About = Readonly<Record<string, unknown>>;

/** What there is to know besides the events: the fields of the first one, and the bytes it names. */
async function aboutOf(storage: Storage, { recorded, task }: Located): Promise<About> {
  if (recorded.event.type === 'task.opened') {
    const { state } = await Ledger.open(storage, task).readable();
    return { objective: state.objective, standing: state.standing, head: state.head };
  }
  const { contents } = Ledger.open(storage, task);
  const typed = recorded.event.type === 'steering.received' ? recorded.event : null;
  if (typed !== null && typed.content !== null)
    return { ...eventDocument(recorded), text: (await readText(contents, typed.content)) ?? typed.text };
  const exact = exactArguments(recorded);
  if (exact === null) return eventDocument(recorded);
  return { ...eventDocument(recorded), args: await readArguments(contents, exact) };
}

function exactArguments({ event }: Recorded): Kept | null {
  return event.type === 'invocation.proposed' || event.type === 'approval.requested' ? event.args : null;
}

/** Of a task only the turns' beginnings and ends, of anything else every event that names it. */
async function eventsOf(
  storage: Storage,
  thing: Located,
  onDamage: (error: Error) => void,
): Promise<Recorded[]> {
  const events: Recorded[] = [];
  for await (const recorded of mergedEvents(storage, [thing.task], { oldestFirst: true, onDamage }))
    if (speaksOf(recorded, thing)) events.push(recorded);
  return events;
}

const BOUNDARIES: readonly EventType[] = [
  'task.opened',
  'turn.started',
  'turn.finished',
  'turn.interrupted',
  'turn.recovered',
];

function speaksOf(recorded: Recorded, thing: Located): boolean {
  if (thing.kind === 'task') return BOUNDARIES.includes(recorded.event.type);
  if (thing.kind === 'event') return recorded.commit === thing.id;
  return Object.values(recorded.event).includes(thing.id);
}

function describe(output: Output, document: About, events: readonly Recorded[]): void {
  output.table(
    Object.entries(document).map(([name, value]) => [
      { text: name, style: 'dim' },
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  );
  if (events.length > 0) output.line();
  output.table(events.map(({ event }) => [String(event.seq), event.at, subjectOf(event)]));
}
