import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { events, last, type Line } from '../helpers/events.js';
import { processesNaming, stateOf, until } from '../helpers/processes.js';
import { durable, startDurable, type Running } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const LISTENER = fileURLToPath(new URL('../helpers/signal-listener.js', import.meta.url));

const typesOf = (lines: readonly Line[]): unknown[] => lines.map((line) => line['type']);
function report(place: Scratch, name = 'report.json'): Line {
  return JSON.parse(readFileSync(join(place.dir, name), 'utf8')) as Line;
}

const CODES: readonly (readonly [why: string, command: readonly string[], code: number, report: Line])[] = [
  ['success', ['true'], 0, { started: true, exit: 0, signal: null }],
  ['a code of its own', ['sh', '-c', 'exit 37'], 37, { started: true, exit: 37, signal: null }],
  ['not found', ['no-such-program'], 127, { started: false, exit: 127, signal: null }],
  ['not executable', ['./README'], 126, { started: false, exit: 126, signal: null }],
  ['death by SIGTERM', ['sh', '-c', 'kill -TERM $$'], 143, { started: true, exit: 143, signal: 'SIGTERM' }],
  ['death by SIGKILL', ['sh', '-c', 'kill -KILL $$'], 137, { started: true, exit: 137, signal: 'SIGKILL' }],
];

for (const [why, command, code, expected] of CODES) {
  test(`the command's end is this program's, and a finished turn stays: ${why}`, (t) => {
    const place = scratch(t);
    const ran = durable(place, ['run', '--report', 'report.json', '--', ...command]);
    t.deepEqual([ran.code, ran.signal], [code, null]);
    const { turn, ...rest } = report(place);
    t.deepEqual(rest, expected);
    const finished = last(events(place), 'turn.finished');
    t.deepEqual([finished?.['turn'], finished?.['exit']], [turn, code]);
    const status = JSON.parse(durable(place, ['status', '--json']).stdout) as Line;
    t.deepEqual([status['lease'], status['turn'], status['interrupted']], [null, null, []]);
  });
}

test('the command has the standard streams to itself', (t) => {
  const place = scratch(t);
  const ran = durable(place, ['run', '--', 'sh', '-c', 'cat; echo error >&2'], { input: 'in\0put\n' });
  t.deepEqual([ran.stdout, ran.stderr, ran.code], ['in\0put\n', 'error\n', 0]);
});

test('the words of the command arrive as they were given', (t) => {
  const place = scratch(t);
  const words = ['a b', '', "it's", '$HOME', '--json', '-n', '12.50', 'two\nlines', '*', 'é'];
  const ran = durable(place, ['run', '--', 'printf', '<%s>', ...words]);
  t.is(ran.stdout, words.map((word) => `<${word}>`).join(''));
});

test("the command starts in the caller's folder, from a sub-folder and with -C", (t) => {
  const place = scratch(t);
  const folder = join(place.dir, 'deep er');
  mkdirSync(folder);
  const here = `${realpathSync(folder)}\n`;
  t.is(durable(place, ['run', '--', 'pwd', '-P'], { cwd: folder }).stdout, here);
  t.is(durable(place, ['-C', 'deep er', 'run', '--', 'pwd', '-P']).stdout, here);
});

test('a turn is recorded: checkpoint before and after, the process before it began, the end', (t) => {
  const place = scratch(t);
  const ran = durable(place, ['run', '--objective', 'try', '--', 'sh', '-c', 'echo $$; echo new > made']);
  const all = events(place);
  const started = all.find((line) => line['type'] === 'process.started');
  t.is((started?.['process'] as { pid: number }).pid, Number(ran.stdout));
  const types = typesOf(all);
  t.true(types.indexOf('process.started') < types.indexOf('invocation.finished'));
  t.is(last(all, 'turn.started')?.['objective'], 'try');
  const reasons = all.filter((line) => line['type'] === 'checkpoint.taken').map((line) => line['reason']);
  t.is(reasons[0], 'turn-start');
  t.is(reasons.at(-1), 'turn-end');
  t.is(durable(place, ['verify']).code, 0);
});

test('the marker is in the environment of the command, and only its hash in the repository', (t) => {
  const place = scratch(t);
  const command =
    'printf %s "$DURABLE_MARKER"; git cat-file -p "$(git for-each-ref --format="%(objectname)" refs/durable/leases)"';
  const ran = durable(place, ['run', '--', 'sh', '-c', command]);
  const [marker = ''] = /^[\w-]+(?=tree )/.exec(ran.stdout) ?? [];
  t.true(marker.length >= 32);
  t.true(ran.stdout.includes(createHash('sha256').update(marker).digest('hex')));
  t.is(place.run('grep', ['-rF', marker, '.git']).code, 1);
});

async function listening(t: ExecutionContext, place: Scratch): Promise<Running> {
  const running = startDurable(t, place, ['run', '--', process.execPath, LISTENER]);
  const first = await running.line();
  if (first !== 'ready') throw new Error(`the listener said ${String(first)}: ${running.said}`);
  return running;
}

test('each signal reaches the command, and its answer is the end', async (t) => {
  const place = scratch(t);
  const running = await listening(t, place);
  const signals = [
    'SIGINT',
    'SIGHUP',
    'SIGQUIT',
    'SIGUSR1',
    'SIGUSR2',
    'SIGWINCH',
    'SIGCONT',
    'SIGTERM',
  ] as const;
  for (const signal of signals) {
    process.kill(running.pid, signal);
    t.is(await running.line(), signal);
  }
  t.deepEqual(await running.ended, { code: 42, signal: null });
  t.is(last(events(place), 'turn.finished')?.['exit'], 42);
});

test('it ends with its command, and what is left in the background stays alive and is listed', async (t) => {
  const place = scratch(t);
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', 'sleep 300 & echo $!']);
  const pid = Number(await running.line());
  t.teardown(() => {
    process.kill(pid, 'SIGKILL');
  });
  t.deepEqual(await running.ended, { code: 0, signal: null });
  t.notThrows(() => process.kill(pid, 0));
  const survivors = last(events(place), 'turn.finished')?.['survivors'] as { pid: number }[];
  t.deepEqual(
    survivors.map((one) => one.pid),
    [pid],
  );
});

test('after a turn nothing of ours runs', async (t) => {
  const place = scratch(t);
  const running = await listening(t, place);
  t.true(
    processesNaming(place.dir).some((line) => line.includes('keeper')),
    'a keeper runs during the turn',
  );
  process.kill(running.pid, 'SIGTERM');
  await running.ended;
  t.deepEqual(processesNaming(place.dir), []);
});

test('a second run on a held work tree leaves with 4 before anything runs, and names the holder', async (t) => {
  const place = scratch(t);
  const running = await listening(t, place);
  const second = durable(place, ['run', '--report', 'report.json', '--', 'touch', 'second']);
  t.is(second.code, 4);
  t.regex(
    second.stderr,
    /^git-durable: the work tree is held by \S+ \(pid \d+ on [^)]+\) since \S+ \(\d+ \w+ ago\), for '[^\n]+' \(task [a-z2-7]{26}\) [^\n]+\n$/,
  );
  t.true(second.stderr.includes(`pid ${String(running.pid)} `));
  t.false(existsSync(join(place.dir, 'second')));
  t.deepEqual(report(place), { turn: null, started: false, exit: 4, signal: null });
  process.kill(running.pid, 'SIGTERM');
  await running.ended;
});

test('of eight at once one holds and seven leave with 4', async (t) => {
  const place = scratch(t);
  const gate = join(place.top, 'gate');
  place.run('mkfifo', [gate]);
  const all = Array.from({ length: 8 }, () => startDurable(t, place, ['run', '--', 'cat', gate]));
  const ended: (number | null)[] = [];
  await new Promise<void>((resolve) => {
    for (const one of all)
      void one.ended.then(({ code }) => {
        ended.push(code);
        if (ended.length === 7) resolve();
      });
  });
  t.deepEqual(ended, [4, 4, 4, 4, 4, 4, 4]);
  place.run('sh', ['-c', ': > ../gate']);
  await Promise.all(all.map((one) => one.ended));
  t.deepEqual(ended.slice(7), [0]);
  t.is(typesOf(events(place)).filter((type) => type === 'turn.started').length, 1);
});

test('two work trees of one repository run side by side', async (t) => {
  const place = scratch(t);
  const linked = join(place.top, 'linked tree');
  place.git('worktree', 'add', '-q', '--detach', linked);
  const running = await listening(t, place);
  const other = durable(place, ['run', '--', 'true'], { cwd: linked });
  t.is(other.code, 0, other.stderr);
  process.kill(running.pid, 'SIGTERM');
  t.is((await running.ended).code, 42);
});

const REFUSED: readonly (readonly [why: string, words: readonly string[], code: number])[] = [
  ['no command', ['run'], 2],
  ['an empty command', ['run', '--'], 2],
  ['--json', ['run', '--json', '--', 'touch', 'ran'], 2],
  ['an unknown task', ['run', '--task', 'nowhere', '--', 'touch', 'ran'], 2],
  ['an unknown option', ['run', '--taks', 'new', '--', 'touch', 'ran'], 2],
];

for (const [why, words, code] of REFUSED) {
  test(`our own failure is one line that begins with git-durable:, and nothing ran: ${why}`, (t) => {
    const place = scratch(t);
    const ran = durable(place, words);
    t.deepEqual([ran.code, ran.stdout], [code, '']);
    t.regex(ran.stderr, /^git-durable: [^\n]+\n$/);
    t.false(existsSync(join(place.dir, 'ran')));
  });
}

test('outside a repository nothing runs, and the report says that it was our own code', (t) => {
  const place = scratch(t, { repository: false });
  const ran = durable(place, ['run', '--report', 'report.json', '--', 'touch', 'ran']);
  t.is(ran.code, 1);
  t.regex(ran.stderr, /^git-durable: [^\n]+ is not inside a Git work tree; [^\n]+\n$/);
  t.false(existsSync(join(place.dir, 'ran')));
  t.deepEqual(report(place), { turn: null, started: false, exit: 1, signal: null });
});

test('a report that could not be written is refused with 2 before anything runs', (t) => {
  const place = scratch(t);
  for (const file of ['missing/report.json', '.']) {
    const ran = durable(place, ['run', '--report', file, '--', 'touch', 'ran']);
    t.is(ran.code, 2);
    t.regex(ran.stderr, /^git-durable: the report '[^\n]+' cannot be written [^\n]+\n$/);
  }
  t.false(existsSync(join(place.dir, 'ran')));
  t.deepEqual(events(place), []);
});

test('--task takes up a task by a prefix of its id, and new begins another', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['run', '--', 'true']).code, 0);
  const task = String(events(place)[0]?.['task']);
  t.is(durable(place, ['run', '--task', task.slice(0, 8), '--', 'true']).code, 0);
  t.is(durable(place, ['run', '--task', 'new', '--', 'true']).code, 0);
  const starts = events(place).filter((line) => line['type'] === 'turn.started');
  t.deepEqual(
    starts.map((line) => line['task'] === task),
    [true, true, false],
  );
});

test('a signal before the command has begun ends the turn without it', async (t) => {
  const place = scratch(t);
  const running = startDurable(t, place, ['run', '--report', 'report.json', '--', 'touch', 'ran'], {
    env: { DURABLE_FAULTS: 'ref.move:rename:before#3=stop' },
  });
  await until('stopped', () => stateOf(running.pid) === 'T');
  process.kill(running.pid, 'SIGTERM');
  process.kill(running.pid, 'SIGCONT');
  t.deepEqual(await running.ended, { code: 143, signal: null });
  t.false(existsSync(join(place.dir, 'ran')));
  const said = report(place);
  t.deepEqual([said['started'], said['signal']], [false, 'SIGTERM']);
  t.is(last(events(place), 'turn.finished')?.['outcome'], 'abandoned');
});
