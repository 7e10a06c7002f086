/**
 * `log`: the events of a task, or of all tasks by time, oldest first. It streams, and stops when nobody reads any more.
 *
 * A ledger whose newest event is damaged is read as far as it goes; the damage is named and the code is 1.
 */
import { SCHEMAS, type Recorded } from '../../lib/event.js';
import type { Storage } from '../../lib/git/storage.js';
import { Ledger, listTasks } from '../../lib/ledger/ledger.js';
import { UsageDetail } from '../../lib/ledger/usage-detail.js';
import { UsageFolding } from '../../lib/ledger/usage.js';
import { subjectOf } from '../../lib/ledger/subject.js';
import { findTask, pick } from '../address.js';
import { usage, type Arguments } from '../arguments.js';
import { eventDocument, mergedEvents } from '../events.js';
import { EXIT } from '../exit.js';
import { LOOKING, withStorage } from '../open.js';
import type { Output } from '../output.js';
import { printCalls, printTurns, printUsage } from '../usage.js';
import type { VerbContext } from '../verb.js';

export async function run(context: VerbContext): Promise<number> {
  const isUsage = context.arguments.flag('usage');
  if (isUsage && (context.arguments.text('type') !== null || context.arguments.count('number') !== null))
    throw usage('--usage folds every event: it goes with --turn and a task, not with --type or -n');
  const by = context.arguments.text('by') ?? 'day';
  if (!isUsage && context.arguments.text('by') !== null)
    throw usage('--by goes with --usage: git durable log --usage --by turn');
  const wanted = wantedType(context.arguments);
  const limit = context.arguments.count('number');
  return withStorage(
    context,
    async (storage) => {
      const query = { tasks: wantedTasks(storage, context.arguments), type: wanted, turn: null };
      const prefix = context.arguments.text('turn');
      const turn = prefix === null ? null : await findTurn(storage, query.tasks, prefix);
      if (isUsage) return foldUsage(context, storage, { ...query, turn, limit, by });
      return print(context, storage, { ...query, turn, limit });
    },
    LOOKING,
  );
}

interface Query {
  readonly tasks: readonly string[];
  readonly type: string | null;
  readonly turn: string | null;
  /** Only the last so many; null for all. */
  readonly limit: number | null;
}

function wantedType(words: Arguments): string | null {
  const type = words.text('type');
  if (type !== null && !(type in SCHEMAS))
    throw usage(`there is no event type '${type}'; the types are ${Object.keys(SCHEMAS).join(', ')}`);
  return type;
}

function wantedTasks(storage: Storage, words: Arguments): readonly string[] {
  const prefix = words.text('task');
  return prefix === null ? listTasks(storage) : [findTask(storage, prefix)];
}

async function findTurn(storage: Storage, tasks: readonly string[], prefix: string): Promise<string> {
  const turns: string[] = [];
  for await (const { event } of mergedEvents(storage, tasks, {
    oldestFirst: true,
    onDamage: () => undefined,
  }))
    if (event.type === 'turn.started' && event.turn !== null) turns.push(event.turn);
  return pick('turn', prefix, turns);
}

async function print(context: VerbContext, storage: Storage, query: Query): Promise<number> {
  const { output } = context;
  const damage: Error[] = [];
  const onDamage = (error: Error): void => {
    if (damage.some(({ message }) => message === error.message)) return;
    damage.push(error);
    output.note(error.message);
  };
  const oldestFirst = query.limit === null;
  const last: Recorded[] = [];
  if (query.limit !== 0) {
    for await (const recorded of mergedEvents(storage, query.tasks, { oldestFirst, onDamage })) {
      if (output.closed) break;
      if (!matches(recorded, query)) continue;
      if (oldestFirst) printEvent(output, recorded, query.tasks.length > 1);
      else last.push(recorded);
      if (last.length === query.limit) break;
    }
  }
  // Backwards the reading begins below a damaged newest event.
  for (const error of oldestFirst ? [] : await newestDamage(storage, query.tasks)) onDamage(error);
  for (const recorded of last.reverse()) printEvent(output, recorded, query.tasks.length > 1);
  return damage.length > 0 ? EXIT.failed : EXIT.done;
}

async function foldUsage(
  context: VerbContext,
  storage: Storage,
  query: Query & { readonly by: string },
): Promise<number> {
  const { output } = context;
  const damage: Error[] = [];
  const onDamage = (error: Error): void => {
    damage.push(error);
    output.note(error.message);
  };
  const folding = query.by === 'day' ? new UsageFolding() : new UsageDetail();
  // A ledger after the other: the fold needs no common order, and it holds no stream open.
  for (const task of query.tasks)
    for await (const recorded of mergedEvents(storage, [task], { oldestFirst: true, onDamage }))
      if (matches(recorded, query)) folding.add(recorded.event);
  if (folding instanceof UsageFolding) printUsage(output, folding.rows());
  else if (query.by === 'turn') printTurns(output, folding.turns());
  else printCalls(output, folding.calls());
  return damage.length > 0 ? EXIT.failed : EXIT.done;
}

async function newestDamage(storage: Storage, tasks: readonly string[]): Promise<Error[]> {
  const found: Error[] = [];
  for (const task of tasks) {
    const { damage } = await Ledger.open(storage, task).readable();
    if (damage !== null) found.push(damage);
  }
  return found;
}

function matches({ event }: Recorded, query: Query): boolean {
  return (query.type ?? event.type) === event.type && (query.turn ?? event.turn) === event.turn;
}

const TASK_CHARACTERS = 6;

function printEvent(output: Output, recorded: Recorded, withTask: boolean): void {
  const { event } = recorded;
  output.result(eventDocument(recorded), () => {
    const seq = String(event.seq).padStart(4);
    const where = withTask ? `${event.task.slice(0, TASK_CHARACTERS)}  ` : '';
    const at = output.paint('dim', event.at.replace(/\.\d+Z$/, 'Z'));
    output.line(`${where}${seq}  ${at}  ${subjectOf(event)}`);
  });
}
