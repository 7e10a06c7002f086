import { writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import test from 'ava';
import { entryOf } from '../../lib/lease/processes.js';
import { document, events, last, type Line } from '../helpers/events.js';
import { keeperOf } from '../helpers/keeper.js';
import {
  BACKGROUND,
  endAfter,
  isOver,
  killed,
  leave,
  orphans,
  outcomes,
  pids,
  readOr,
} from '../helpers/leftovers.js';
import { stateOf, until } from '../helpers/processes.js';
import { durable, PROGRAM } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';

test('what a finished turn left running is listed with its turn, counted, named to the next turn, and ended', (t) => {
  const place = scratch(t);
  const [pid = 0] = leave(t, place, BACKGROUND);
  const { turn } = last(events(place), 'turn.finished') as unknown as { turn: string };
  const [found, ...others] = orphans(place);
  t.deepEqual(others, []);
  t.deepEqual(Object.keys(found ?? {}), ['pid', 'startedAt', 'command', 'turn', 'kind', 'id']);
  t.deepEqual(
    [found?.pid, found?.command, found?.turn, found?.kind, found?.id],
    [pid, 'sleep 1000', turn, 'process', `${String(pid)}-${entryOf(pid)?.start ?? ''}`],
  );
  t.regex(found?.startedAt ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  t.is(document(place, ['status'])['orphans'], 1);
  t.regex(durable(place, ['status']).stdout, /orphans +1 still running\n[^]*next: git durable orphans\n/);

  const next = durable(place, ['run', '--', 'true']);
  t.is(next.code, 0);
  t.regex(next.stderr, new RegExp(`^git-durable: earlier turns left running: ${String(pid)} sleep 1000;`));
  t.deepEqual(outcomes(place), [[pid, 'left-running']]);
  t.deepEqual(pids(orphans(place)), [pid]);

  t.deepEqual(orphans(place, '--stop'), [found]);
  t.true(isOver(pid));
  t.deepEqual(orphans(place), []);
  t.is(durable(place, ['run', '--', 'true']).stderr, '');
  t.deepEqual(outcomes(place), [
    [pid, 'left-running'],
    [pid, 'stopped'],
  ]);
  const reconciled = events(place, '--type', 'process.reconciled');
  t.deepEqual([...new Set(reconciled.map((event) => event['turn']))], [turn]);
  t.is(durable(place, ['verify']).code, 0);
});

test('an orphan that ends by itself is recorded as gone, once, by the next turn', (t) => {
  const place = scratch(t);
  const [pid = 0] = leave(t, place, BACKGROUND, ['--task', 'new']);
  const { task } = last(events(place), 'turn.finished') as unknown as { task: string };
  for (let turns = 0; turns < 2; turns += 1)
    t.is(durable(place, ['run', '--task', task, '--', 'true']).code, 0);
  t.deepEqual(outcomes(place), [[pid, 'left-running']]);
  process.kill(pid, 'SIGKILL');
  for (let turns = 0; turns < 2; turns += 1)
    t.is(durable(place, ['run', '--task', task, '--', 'true']).code, 0);
  t.deepEqual(outcomes(place), [
    [pid, 'left-running'],
    [pid, 'gone'],
  ]);
  t.deepEqual(orphans(place, '--stop'), []);
  t.is(outcomes(place).length, 2);
});

test('operations between two turns, and turns of other tasks, do not make an orphan forgotten', (t) => {
  const place = scratch(t);
  const [first = 0] = leave(t, place, BACKGROUND);
  const { checkpoint } = document<{ checkpoint: string }>(place, ['checkpoint']);
  t.is(durable(place, ['restore', checkpoint]).code, 0);
  t.is(durable(place, ['op', '--', 'status']).code, 0);
  const [second = 0] = leave(t, place, BACKGROUND, ['--task', 'new']);
  t.is(durable(place, ['restore', checkpoint]).code, 0);
  t.deepEqual(
    pids(orphans(place)),
    [first, second].sort((a, b) => a - b),
  );
  t.is(new Set(orphans(place).map(({ turn }) => turn)).size, 2);
  t.is(orphans(place, '--stop').length, 2);
  t.deepEqual([isOver(first), isOver(second)], [true, true]);
});

test('what outlived a killed agent is reported at once, ended before or without a repair, and recorded once', async (t) => {
  const place = scratch(t);
  const [pid = 0] = await killed(t, place, BACKGROUND);
  const [turn] = document<{ interrupted: { turn: string; orphans: Line[] }[] }>(place, ['recover'], {
    codes: [3],
  }).interrupted;
  t.deepEqual(Object.keys(turn?.orphans[0] ?? {}), ['pid', 'command', 'startedAt']);
  t.true(turn?.orphans.some((one) => one['pid'] === pid));
  t.true(Number(document(place, ['status'])['orphans']) >= 1);
  t.true(orphans(place).some((one) => one.pid === pid && one.turn === turn?.turn));
  t.true(pids(orphans(place, '--stop')).includes(pid));
  t.true(isOver(pid));
  t.is(document<{ interrupted: Line[] }>(place, ['recover'], { codes: [3] }).interrupted.length, 1);
  t.is(durable(place, ['recover', '--keep']).code, 0);
  t.is(durable(place, ['run', '--', 'true']).code, 0);
  t.deepEqual(
    outcomes(place).filter((one) => (one as [number])[0] === pid),
    [[pid, 'stopped']],
  );
  const ended = outcomes(place).map((one) => (one as [number])[0]);
  t.is(new Set(ended).size, ended.length);
});

test('a process that forked twice into a session of its own is found by its marker, after its parents are gone', async (t) => {
  const place = scratch(t);
  const twice = 'setsid sh -c "(setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo \\$!)"';
  const [finished = 0] = leave(t, place, twice);
  const [dead = 0] = await killed(t, place, twice);
  t.deepEqual([entryOf(finished)?.session, entryOf(dead)?.session], [finished, dead]);
  t.deepEqual(
    pids(orphans(place)),
    [finished, dead].sort((a, b) => a - b),
  );
  orphans(place, '--stop');
  t.deepEqual([isOver(finished), isOver(dead)], [true, true]);
});

test('what was started after the turn had ended, by something that it left, is an orphan as well', async (t) => {
  const place = scratch(t);
  const later = join(place.top, 'later');
  const script = `while [ ! -e ../go ]; do sleep 0.05; done; setsid sleep 1000 & echo $! > ../pid; mv ../pid ../later`;
  leave(t, place, `(${script}) </dev/null >/dev/null 2>&1 & echo $!`);
  writeFileSync(join(place.top, 'go'), '');
  await until('it has started something', () => readOr(later) !== '');
  const pid = endAfter(t, Number(readOr(later)));
  await until(
    'its parent is gone',
    () => entryOf(pid)?.parent !== undefined && pids(orphans(place)).length === 1,
  );
  t.deepEqual(pids(orphans(place, '--stop')), [pid]);
  t.true(isOver(pid));
});

test('a process that ignores TERM gets KILL', (t) => {
  const place = scratch(t);
  const [pid = 0] = leave(
    t,
    place,
    `(trap '' TERM; echo ready > ../ready; exec sleep 1000) </dev/null >/dev/null 2>&1 & pid=$!; while [ ! -e ../ready ]; do sleep 0.01; done; echo $pid`,
  );
  t.deepEqual(pids(orphans(place, '--stop')), [pid]);
  t.true(isOver(pid));
  t.deepEqual(outcomes(place), [[pid, 'stopped']]);
});

test('one that is started anew each time it ends is named, and the code is 1', (t) => {
  const place = scratch(t);
  place.write(
    'again',
    'trap "sh ./again & exit" TERM\necho $$ > ../again.pid\nwhile :; do sleep 0.05; done\n',
  );
  t.teardown(() => {
    place.run('sh', ['-c', 'kill -KILL $(cat ../again.pid)']);
  });
  leave(
    t,
    place,
    'sh ./again </dev/null >/dev/null 2>&1 & echo $!; while [ ! -e ../again.pid ]; do sleep 0.01; done',
  );
  const ran = durable(place, ['orphans', '--stop']);
  t.is(ran.code, 1);
  t.regex(
    ran.stderr,
    /^git-durable: process \d+ \(sh \.\/again\) does not end, or is started again; end what starts it/m,
  );
  t.true(outcomes(place).some((one) => (one as unknown[])[1] === 'left-running'));
});

test('a process that tidies up at TERM is given the time to', (t) => {
  const place = scratch(t);
  const tidy = join(place.top, 'tidy');
  const [pid = 0] = leave(
    t,
    place,
    `sh -c 'trap "echo tidy > ../tidy; exit" TERM; echo ready > ../ready; while :; do sleep 0.05; done' </dev/null >/dev/null 2>&1 & pid=$!; while [ ! -e ../ready ]; do sleep 0.01; done; echo $pid`,
  );
  t.true(pids(orphans(place, '--stop')).includes(pid));
  t.is(readOr(tidy), 'tidy');
});

test('a stopped orphan is found, and ended without being continued', async (t) => {
  const place = scratch(t);
  const [pid = 0] = leave(t, place, BACKGROUND);
  process.kill(pid, 'SIGSTOP');
  await until('it is stopped', () => stateOf(pid) === 'T');
  t.deepEqual(pids(orphans(place)), [pid]);
  t.deepEqual(pids(orphans(place, '--stop')), [pid]);
  t.true(isOver(pid));
});

test('a zombie is no orphan, and is recorded as gone', async (t) => {
  const place = scratch(t);
  const [parent = 0, child = 0] = leave(
    t,
    place,
    `perl -e 'if (($p = fork) == 0) { exec "sleep", "1000" } open F, ">", "../child"; print F $p; close F; rename "../child", "../kid"; sleep 1000' </dev/null >/dev/null 2>&1 & pid=$!; while [ ! -e ../kid ]; do sleep 0.01; done; echo $pid $(cat ../kid)`,
  );
  t.deepEqual(
    pids(orphans(place)),
    [parent, child].sort((a, b) => a - b),
  );
  process.kill(child, 'SIGKILL');
  await until('nobody has waited for it', () => stateOf(child) === 'Z');
  t.deepEqual(pids(orphans(place)), [parent]);
  t.is(durable(place, ['run', '--', 'true']).code, 0);
  t.deepEqual(
    outcomes(place).sort(),
    [
      [parent, 'left-running'],
      [child, 'gone'],
    ].sort(),
  );
});

test('killed between TERM and KILL, the next one ends what is left and records each once', (t) => {
  const place = scratch(t);
  const [stubborn = 0, gentle = 0] = leave(
    t,
    place,
    `(trap '' TERM; echo ready > ../ready; exec sleep 1000) </dev/null >/dev/null 2>&1 & pid=$!; while [ ! -e ../ready ]; do sleep 0.01; done; echo $pid; ${BACKGROUND}`,
  );
  const cut = durable(place, ['orphans', '--stop'], {
    env: { DURABLE_FAULTS: 'process.end:signal:before#3=kill' },
  });
  t.is(cut.signal, 'SIGKILL');
  t.deepEqual([isOver(stubborn), isOver(gentle)], [false, true]);
  t.deepEqual(outcomes(place), []);
  t.deepEqual(pids(orphans(place, '--stop')), [stubborn]);
  t.deepEqual(
    outcomes(place).sort(),
    [
      [stubborn, 'stopped'],
      [gentle, 'gone'],
    ].sort(),
  );
  t.is(durable(place, ['run', '--', 'true']).code, 0);
  t.is(outcomes(place).length, 2);
});

test('what a repair ends is listed before: also what cleared its environment and stayed in the group of a dead run', async (t) => {
  const place = scratch(t);
  const script =
    '(env -i sleep 1000 </dev/null >/dev/null 2>&1 & echo $!); env -i sleep 1000 </dev/null >/dev/null 2>&1 & echo $!; echo $$; read -r _';
  const child = spawn(process.execPath, [PROGRAM, 'run', '--', 'sh', '-c', script], {
    cwd: place.dir,
    env: place.env,
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<number> => endAfter(t, Number((await lines.next()).value));
  const left = [await next(), await next()];
  const shell = await next();
  const keeper = endAfter(t, await keeperOf(place));
  for (const pid of [keeper, child.pid ?? 0, shell]) process.kill(pid, 'SIGKILL');
  await until('all killed', () => [keeper, child.pid ?? 0, shell].every(isOver));
  t.deepEqual(
    pids(orphans(place)),
    [...left].sort((a, b) => a - b),
  );
  t.is(durable(place, ['recover', '--keep']).code, 0);
  t.true(left.every(isOver));
});
