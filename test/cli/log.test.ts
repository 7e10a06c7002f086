import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { rmSync, writeFileSync } from 'node:fs';
import test from 'ava';
import type { EventDraft } from '../../lib/event.js';
import { openStorage } from '../../lib/git/storage.js';
import { systemHost } from '../../lib/host.js';
import { Ledger, openTask } from '../../lib/ledger/ledger.js';
import { events } from '../helpers/events.js';
import { durable, PROGRAM } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const by = { lease: null, agent: 'tester', workspace: null } as const;

const observed = (what: string): EventDraft => ({
  type: 'git.observed',
  what,
  ref: null,
  before: null,
  after: null,
  process: null,
});

/** Ledgers as any program of this library makes them. */
async function ledgers(place: Scratch, tasks: Readonly<Record<string, readonly string[]>>): Promise<void> {
  const storage = await openStorage(place.dir, { ...systemHost(), env: place.env });
  for (const [task, whats] of Object.entries(tasks)) {
    await openTask(storage, { task, objective: `objective of ${task}`, ...by });
    for (const what of whats) await Ledger.open(storage, task).append(() => [observed(what)], by);
  }
  await storage.close();
}

type Line = Readonly<Record<string, unknown>>;
const lines = (text: string): Line[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);

test('log --json is one event a line, oldest first, common fields first and then its own', async (t) => {
  const place = scratch(t);
  await ledgers(place, { alpha: ['one', 'two'] });
  const ran = durable(place, ['log', '--json']);
  t.deepEqual([ran.code, ran.stderr], [0, '']);
  const events = lines(ran.stdout);
  t.deepEqual(
    events.map((event) => event['seq']),
    [1, 2, 3],
  );
  t.deepEqual(Object.keys(events[2] ?? {}), [
    ...['seq', 'type', 'at', 'task', 'turn', 'agent', 'epoch', 'chain', 'commit'],
    ...['what', 'ref', 'before', 'after', 'process'],
  ]);
  t.is(events[2]?.['commit'], place.git('rev-parse', 'refs/durable/tasks/alpha'));
  t.is(events[2]?.['what'], 'two');
});

test('without a task log tells of all tasks by time, with a prefix of one only of that', async (t) => {
  const place = scratch(t);
  await ledgers(place, { alpha: ['one'], beta: ['two'] });
  const all = lines(durable(place, ['log', '--json']).stdout);
  t.deepEqual(
    all.map((event) => [event['task'], event['seq']]),
    [
      ['alpha', 1],
      ['alpha', 2],
      ['beta', 1],
      ['beta', 2],
    ],
  );
  const beta = lines(durable(place, ['log', '--json', 'be']).stdout);
  t.deepEqual(new Set(beta.map((event) => event['task'])), new Set(['beta']));
});

test('log -n N gives the last N, still oldest first; --type only those of the type', async (t) => {
  const place = scratch(t);
  await ledgers(place, { alpha: ['one', 'two', 'three'] });
  const last = lines(durable(place, ['log', '--json', '-n', '2']).stdout);
  t.deepEqual(
    last.map((event) => event['what']),
    ['two', 'three'],
  );
  const opened = lines(durable(place, ['log', '--json', '--type', 'task.opened']).stdout);
  t.deepEqual(
    opened.map((event) => event['objective']),
    ['objective of alpha'],
  );
  t.is(durable(place, ['log', '-n', '0', '--json']).stdout, '');
});

test('log --turn gives exactly the events of that turn, by its id or the beginning of it', (t) => {
  const place = scratch(t);
  for (const text of ['one', 'two']) t.is(durable(place, ['run', '--objective', text, '--', 'true']).code, 0);
  const all = events(place);
  const starts = all.filter(({ type }) => type === 'turn.started');
  t.deepEqual(
    starts.map(({ objective }) => objective),
    ['one', 'two'],
  );
  for (const { turn } of starts) {
    const id = String(turn);
    const wanted = all.filter((event) => event['turn'] === id);
    t.true(wanted.length > 3);
    t.deepEqual(events(place, '--turn', id), wanted);
    t.deepEqual(events(place, '--turn', id.slice(0, 10)), wanted);
    t.deepEqual(events(place, '--turn', id, '-n', '2'), wanted.slice(-2));
  }
});

test('an unknown type, an unknown task and a count that is none are wrong usage', async (t) => {
  const place = scratch(t);
  await ledgers(place, { alpha: [] });
  for (const words of [['--type', 'task.open'], ['gamma'], ['-n', 'few'], ['-n', '-1'], ['--turn', 'none']]) {
    const ran = durable(place, ['log', ...words]);
    t.deepEqual([ran.code, ran.stdout], [2, ''], words.join(' '));
    t.regex(ran.stderr, /^git-durable: [^\n]+\n$/);
  }
});

test('an event whose text would steer a terminal is shown as text', async (t) => {
  const place = scratch(t);
  await ledgers(place, { alpha: ['\u001b[2Jgone'] });
  const ran = durable(place, ['log']);
  t.is(ran.code, 0);
  t.false(ran.stdout.includes('\u001b'));
});

test('a damaged newest event is named, those before it are shown, and the code is 1', async (t) => {
  const place = scratch(t);
  await ledgers(place, { alpha: ['one', 'two'] });
  const tip = place.git('rev-parse', 'refs/durable/tasks/alpha');
  rmSync(join(place.dir, '.git/durable/journal', tip), { force: true });
  const loose = join(place.dir, '.git/objects', tip.slice(0, 2), tip.slice(2));
  rmSync(loose);
  writeFileSync(loose, 'torn');
  const ran = durable(place, ['log', '--json']);
  t.is(ran.code, 1);
  t.deepEqual(
    lines(ran.stdout).map((event) => event['seq']),
    [1, 2],
  );
  t.regex(ran.stderr, new RegExp(`^git-durable: the ledger of task alpha is damaged at ${tip}`));
});

test('log ends early and quietly when its reader has what it wants', async (t) => {
  const place = scratch(t);
  await ledgers(place, { alpha: ['one', 'two'] });
  const child = spawn(process.execPath, [PROGRAM, 'log'], {
    cwd: place.dir,
    env: place.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.destroy();
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number];
  t.deepEqual([code, said], [0, '']);
});

test('show finds an event by its commit, its number and TASK/NUMBER, and a task by a prefix', async (t) => {
  const place = scratch(t);
  await ledgers(place, { alpha: ['one'], beta: ['two', 'three'] });
  const tip = place.git('rev-parse', 'refs/durable/tasks/beta');
  for (const word of [tip, tip.slice(0, 12), '3', 'beta/3']) {
    const shown = JSON.parse(durable(place, ['show', word, '--json']).stdout) as Line;
    t.deepEqual([shown['kind'], shown['commit'], shown['what']], ['event', tip, 'three'], word);
  }
  const task = JSON.parse(durable(place, ['show', 'alp', '--json']).stdout) as Line;
  t.deepEqual([task['kind'], task['id'], task['objective']], ['task', 'alpha', 'objective of alpha']);
});

test('a prefix of several things is refused with the candidates, one of nothing as not found', async (t) => {
  const place = scratch(t);
  await ledgers(place, { alpha: ['one'], alpine: ['two'] });
  const several = durable(place, ['show', 'alp']);
  t.is(several.code, 2);
  t.regex(several.stderr, /task alpha, task alpine/);
  t.regex(durable(place, ['show', '2']).stderr, /event alpha\/2, event alpine\/2/);
  const none = durable(place, ['show', 'zzz']);
  t.deepEqual([none.code, none.stdout], [2, '']);
  t.regex(none.stderr, /no thing recorded as 'zzz'/);
});

test('verify --json has the fields of the contract', async (t) => {
  const place = scratch(t);
  await ledgers(place, { alpha: ['one'] });
  const ran = durable(place, ['verify', '--json']);
  t.is(ran.code, 0);
  const said = JSON.parse(ran.stdout) as { tasks: Line[] };
  t.deepEqual(Object.keys(said), ['ok', 'tasks', 'findings']);
  t.deepEqual(Object.keys(said.tasks[0] ?? {}), ['task', 'events', 'head', 'chain']);
  t.is(durable(place, ['verify', 'nothing']).code, 2);
});
