/** What no stop and no repair may end: it is the person's, another turn's, or another repository's. */
import { writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { systemHost } from '../../lib/host.js';
import { openRepository } from '../../lib/repository.js';
import { document, events, last } from '../helpers/events.js';
import { keeperOf } from '../helpers/keeper.js';
import {
  BACKGROUND,
  isOver,
  killed,
  leave,
  orphans,
  outcomes,
  pids,
  readOr,
  type Orphan,
} from '../helpers/leftovers.js';
import { until } from '../helpers/processes.js';
import { durable, PROGRAM } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

/** A process of this test's own that no turn knows. */
function bystander(t: ExecutionContext, env: Readonly<Record<string, string>> = {}): number {
  const child = spawn('sleep', ['1000'], {
    stdio: 'ignore',
    detached: true,
    env: { ...process.env, ...env },
  });
  t.teardown(() => child.kill('SIGKILL'));
  return child.pid ?? 0;
}

test('a process that only has the pid of a recorded one is neither listed nor ended', async (t) => {
  const place = scratch(t);
  const pid = bystander(t);
  const repository = await openRepository(place.dir, { ...systemHost(), env: place.env });
  const turn = await repository.startTurn({ objective: 'left behind', keeper: false });
  await turn.spawned({ pid, start: '1', command: 'sleep 1000' }, { background: true });
  await turn.interrupt('the test says so');
  await repository.close();
  t.deepEqual(orphans(place), []);
  t.is(document(place, ['status'])['orphans'], 0);
  t.deepEqual(orphans(place, '--stop'), []);
  t.is(durable(place, ['recover', '--keep']).code, 0);
  t.is(durable(place, ['run', '--', 'true']).code, 0);
  t.deepEqual(outcomes(place), [[pid, 'gone']]);
  t.false(isOver(pid));
});

test('the same command without the marker, and with the marker of another repository, is left alone', (t) => {
  const place = scratch(t);
  const other = scratch(t);
  const [pid = 0] = leave(t, place, BACKGROUND);
  const [foreign = 0] = leave(t, other, BACKGROUND);
  const alike = [bystander(t), bystander(t, { DURABLE_MARKER: 'of nobody' })];
  t.deepEqual(pids(orphans(place, '--stop')), [pid]);
  t.deepEqual([foreign, ...alike].map(isOver), [false, false, false]);
  t.deepEqual(pids(orphans(other, '--stop')), [foreign]);
  t.deepEqual(alike.map(isOver), [false, false]);
});

test('what one work tree left is not the business of another one', (t) => {
  const place = scratch(t);
  const linked = join(place.top, 'linked');
  place.git('worktree', 'add', '-q', '--detach', linked);
  const [pid = 0] = leave(t, place, BACKGROUND);
  t.deepEqual(document(place, ['orphans', '--stop'], { cwd: linked }), []);
  t.false(isOver(pid));
  t.deepEqual(pids(orphans(place, '--stop')), [pid]);
});

/** A shell that a turn leaves: it reads commands from a pipe, and is an orphan. */
function leftShell(t: ExecutionContext, place: Scratch): { shell: number; say: (line: string) => void } {
  place.run('mkfifo', ['../commands']);
  const [shell = 0] = leave(
    t,
    place,
    'sh -c "exec 3<>../commands; while read -r line <&3; do eval \\"\\$line\\"; done" </dev/null >/dev/null 2>&1 & echo $!',
  );
  return {
    shell,
    say: (line) => {
      writeFileSync(join(place.top, 'commands'), `${line}\n`);
    },
  };
}

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

test('a caller inside an orphan ends neither itself nor what it runs in, but the others', async (t) => {
  const place = scratch(t);
  const { shell, say } = leftShell(t, place);
  const [sibling = 0] = leave(t, place, BACKGROUND);
  const program = [process.execPath, PROGRAM, 'orphans', '--stop', '--json'].map(quoted).join(' ');
  say(`${program} > ../stopped; echo done > ../done`);
  await until('it has answered', () => readOr(join(place.top, 'done')) === 'done');
  t.deepEqual(pids(JSON.parse(readOr(join(place.top, 'stopped'))) as Orphan[]), [sibling]);
  t.false(isOver(shell));
  t.true(isOver(sibling));
  t.deepEqual(pids(orphans(place, '--stop')), [shell]);
});

test('a live turn that was started in an orphan is not ended with it', async (t) => {
  const place = scratch(t);
  const { shell, say } = leftShell(t, place);
  const words = [
    'run',
    '--',
    'sh',
    '-c',
    'echo $$ > ../agent; while [ ! -e ../go ]; do sleep 0.05; done; echo wrote > late',
  ];
  say(`${[process.execPath, PROGRAM, ...words].map(quoted).join(' ')}; echo $? > ../code`);
  await until('the turn is under way', () => readOr(join(place.top, 'agent')) !== '');
  const agent = Number(readOr(join(place.top, 'agent')));
  t.deepEqual(orphans(place), []);
  t.deepEqual(orphans(place, '--stop'), []);
  t.deepEqual([isOver(agent), isOver(shell)], [false, false]);
  writeFileSync(join(place.top, 'go'), '');
  await until('the turn has ended', () => readOr(join(place.top, 'code')) === '0');
  t.is(readOr(join(place.dir, 'late')), 'wrote');
  t.deepEqual(pids(orphans(place, '--stop')), [shell]);
});

for (const how of ['orphans', 'recover'] as const) {
  test(`a turn of another repository that was started in an orphan is left alone and named, by ${how}`, async (t) => {
    const place = scratch(t);
    const other = scratch(t);
    place.run('mkfifo', ['../go']);
    const turn = [process.execPath, PROGRAM, '-C', other.dir, 'run', '--', 'sh', '../inner'];
    writeFileSync(
      join(other.top, 'inner'),
      `echo $$ > ../agent; echo > ${quoted(join(place.top, 'begun'))}; read -r _ < ${quoted(join(place.top, 'go'))}; echo wrote > late`,
    );
    writeFileSync(join(place.top, 'outer'), `${turn.map(quoted).join(' ')}; echo $? > ../code`);
    // The first line comes when the other turn is under way.
    place.run('mkfifo', ['../begun']);
    const script = 'sh ../outer </dev/null >/dev/null 2>&1 & read -r _ < ../begun; echo $!';
    const [shell = 0] = how === 'orphans' ? leave(t, place, script) : await killed(t, place, script);
    const agent = Number(readOr(join(other.top, 'agent')));
    const holder = document<{ lease: { holder: { pid: number } } }>(other, ['status']).lease.holder.pid;
    const keeper = await keeperOf(other);
    t.deepEqual(pids(orphans(place)), [shell]);
    const words = how === 'orphans' ? ['orphans', '--stop'] : ['recover', '--keep'];
    const named = `git-durable: process ${String(holder)} (`;
    const report = durable(place, words.slice(0, 1));
    t.is(report.stderr.split(named).length, 2, report.stderr);
    const ended = durable(place, words);
    t.is(ended.code, 0, ended.stderr);
    t.is(ended.stderr.split(named).length, 2, ended.stderr);
    t.true(isOver(shell));
    t.deepEqual([holder, agent, keeper].map(isOver), [false, false, false]);
    writeFileSync(join(place.top, 'go'), '\n');
    await until('the other turn has ended', () => last(events(other), 'turn.finished') !== undefined);
    t.is(readOr(join(other.dir, 'late')), 'wrote');
  });
}
