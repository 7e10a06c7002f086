import test from 'ava';
import { findEvents } from '../../lib/ledger/find.js';
import { Ledger, listTasks, openTask } from '../../lib/ledger/ledger.js';
import { importLedger } from '../helpers/ledger-import.js';
import {
  anyone,
  newTask,
  observed,
  openRepository,
  openTurn,
  proposal,
  request,
  startOf,
  finish,
} from '../helpers/turn.js';

const numbers = async (
  events: AsyncIterable<{ readonly event: { readonly seq: number } }>,
): Promise<number[]> => {
  const seqs: number[] = [];
  for await (const { event } of events) seqs.push(event.seq);
  return seqs;
};

const upTo = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, n) => from + n);

test('events stream forwards and backwards, from and to any commit, and by type', async (t) => {
  const { storage } = await newTask(t);
  const { task, events } = await importLedger(storage, { task: 'long', events: 500 });
  const ledger = Ledger.open(storage, task);
  t.deepEqual(await numbers(ledger.forwards()), upTo(1, events));
  t.deepEqual(await numbers(ledger.backwards()), upTo(1, events).reverse());
  const all = [];
  for await (const recorded of ledger.forwards()) all.push(recorded);
  const after = all[99]?.commit ?? '';
  const to = all[149]?.commit ?? '';
  t.deepEqual(await numbers(ledger.forwards({ after })), upTo(101, events));
  t.deepEqual(await numbers(ledger.forwards({ after, to })), upTo(101, 150));
  t.deepEqual(await numbers(ledger.backwards({ after, to })), upTo(101, 150).reverse());
  t.deepEqual(await numbers(ledger.forwards({ after: to, to })), []);
  t.deepEqual(await numbers(ledger.forwards({ type: 'task.opened' })), [1]);
});

// Serial: it looks at all children of this process.
test.serial('a reader that stops early ends the git process it started', async (t) => {
  const { scratch, storage } = await newTask(t);
  const { task } = await importLedger(storage, { task: 'long', events: 3000 });
  for await (const { event } of Ledger.open(storage, task).backwards()) {
    if (event.seq > 0) break;
  }
  const running = scratch.run('sh', ['-c', `ps -o args= --ppid ${String(process.pid)} | grep [r]ev-list`]);
  t.is(running.stdout, '');
});

test('an empty task has no events, no head and no state but the initial one', async (t) => {
  const { storage } = await newTask(t);
  const none = Ledger.open(storage, 'nothing-yet');
  t.deepEqual(await numbers(none.forwards()), []);
  t.is(await none.head(), null);
  t.is((await none.state()).opened, null);
  t.throws(() => Ledger.open(storage, 'Not An Id'), { code: 'usage' } as never);
});

test('turns are found by hopping from start to start, newest first', async (t) => {
  const { storage } = await newTask(t);
  const { task } = await importLedger(storage, { task: 'long', events: 400 });
  const seqs = await numbers(Ledger.open(storage, task).turnStarts());
  t.is(seqs.length, 9);
  t.deepEqual(
    seqs,
    [...seqs].sort((a, b) => b - a),
  );
  t.is(seqs.at(-1), 3);
});

test('what another process appended is seen at the next look, a little or a lot of it', async (t) => {
  const { scratch, ledger } = await newTask(t);
  const other = Ledger.open(await openRepository(t, scratch), ledger.task);
  t.is((await ledger.head())?.seq, 1);
  await other.append(() => [observed('one')], anyone);
  t.is((await ledger.head())?.seq, 2);
  await other.append(() => Array.from({ length: 150 }, (_, n) => observed(String(n))), anyone);
  t.is((await ledger.head())?.seq, 152);
  t.is((await ledger.event((await ledger.head())?.commit ?? '')).event.seq, 152);
});

test('any id prefix finds the event that brought the thing into being', async (t) => {
  const { storage, ledger, append } = await openTurn(t);
  const [call, asked] = await append(proposal('inv-abc', 0), request('app-xyz', 'inv-abc'));
  const found = async (prefix: string) =>
    (await findEvents(storage, prefix)).map(
      ({ as, id, recorded }) => `${as} ${id} ${String(recorded.event.seq)}`,
    );
  t.deepEqual(await found('inv-a'), ['invocation inv-abc 4']);
  t.deepEqual(await found('app-'), ['approval app-xyz 5']);
  t.deepEqual(await found('turn-1'), ['turn turn-1 3']);
  t.deepEqual(await found(ledger.task.slice(0, 12)), [`task ${ledger.task} 1`]);
  t.deepEqual(await found(call?.commit.slice(0, 12) ?? ''), [`commit ${call?.commit ?? ''} 4`]);
  // A commit may begin with a 5 as well.
  t.true((await found(String(asked?.event.seq))).includes('seq 5 5'));
  t.deepEqual(await found('zzzz-nothing'), []);
  t.deepEqual(await found(''), []);
  t.deepEqual(await findEvents(storage, 'inv-a', { task: 'other' }), []);
});

test('tasks are listed by id, and a clone that fetched the refs reads them', async (t) => {
  const { scratch, storage, ledger, held, append } = await openTurn(t);
  await openTask(storage, { task: 'a-second', objective: 'x', agent: 'test', workspace: null });
  await append(finish(), startOf('turn-2', held), finish());
  t.deepEqual(listTasks(storage), ['a-second', ledger.task].sort());
  scratch.git('init', '-q', '../clone');
  scratch.git('-C', '../clone', 'fetch', '-q', scratch.dir, '+refs/durable/tasks/*:refs/durable/tasks/*');
  const clone = await openRepository(t, { ...scratch, dir: `${scratch.top}/clone` });
  const there = Ledger.open(clone, ledger.task);
  t.is((await there.state()).turn?.id, 'turn-2');
  t.like(await there.verify(), { ok: true, events: 6 });
});
