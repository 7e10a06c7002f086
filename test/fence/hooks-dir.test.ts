/** `core.hooksPath`: folders that can hold no hook, and one that is changed while a turn is open. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { listing } from '../helpers/listing.js';
import { until } from '../helpers/processes.js';
import { durable, startDurable, type Running } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

async function openTurn(t: ExecutionContext, place: Scratch, command = 'cat'): Promise<Running> {
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', `echo open; ${command}`]);
  t.is(await running.line(), 'open', running.said);
  return running;
}

async function close(t: ExecutionContext, running: Running): Promise<void> {
  running.child.stdin.end();
  t.is((await running.ended).code, 0, running.said);
}

const observed = (place: Scratch): string =>
  durable(place, ['log', '--type', 'git.observed', '--json']).stdout;

const problems = (place: Scratch): string[] =>
  (JSON.parse(durable(place, ['status', '--json']).stdout) as { fence: { problems: string[] } }).fence
    .problems;

/** All but what git writes at any time: objects, and what the index knows of times. */
const kept = (place: Scratch): string[] =>
  listing(place.top).filter((line) => !/\.git\/(?:objects\/|index )/.test(line));

const CLOSED: readonly (readonly [what: string, setting: string, asGitSees: string])[] = [
  ['a device', '/dev/null', '/dev/null'],
  ['nothing', '', '/'],
  ['a tracked file', 'README', 'README'],
  ['below a file', 'README/hooks', 'README/hooks'],
  ['a file outside', '../file', 'file'],
  ['a name that is a circle of links', 'circle', 'circle'],
  ['a folder that takes no files, though nothing of it says so', '/proc/self/task', '/proc/self/task'],
  [
    'a place where no folder can be made, though nothing of it says so',
    '/proc/none/hooks',
    '/proc/none/hooks',
  ],
];

for (const [what, setting, seen] of CLOSED) {
  test(`core.hooksPath is ${what}: a turn runs under its lock, status and doctor say what to type, uninstall is exact`, async (t) => {
    const place = scratch(t);
    writeFileSync(join(place.top, 'file'), '');
    place.run('ln', ['-s', 'circle', 'circle']);
    place.git('config', 'core.hooksPath', setting);
    const before = kept(place);
    t.is(durable(place, ['init']).code, 0);
    const running = await openTurn(t, place);
    t.is(place.run('git', ['add', '-A']).code, 128);
    const said = problems(place).join('\n');
    t.true(said.includes(seen) && said.includes('index.lock alone refuses'), said);
    t.true(durable(place, ['status']).stdout.includes('a turn has no hooks'));
    const doctor = durable(place, ['doctor']);
    t.is(doctor.code, 3);
    t.true(doctor.stdout.includes('core.hooksPath'), doctor.stdout);
    await close(t, running);
    t.is(durable(place, ['doctor']).code, 3);
    t.is(durable(place, ['uninstall', '--purge']).code, 0);
    t.deepEqual(kept(place), before);
    t.is(durable(place, ['init', '--fence', 'hooks']).code, 0);
    // Of some places only an attempt tells.
    t.is(durable(place, ['run', '--', 'true']).code, 0);
    t.regex(problems(place).join('\n'), /nothing refuses/);
    const [, typed = ''] = /, or: (git config .*)$/.exec(problems(place).join('\n')) ?? [];
    t.is(place.run('sh', ['-c', typed]).code, 0, typed);
    t.deepEqual(problems(place), []);
    t.is(durable(place, ['doctor']).code, 0);
    const again = await openTurn(t, place);
    t.regex(place.run('git', ['branch', 'beside']).stderr, /git-durable: refused/);
    await close(t, again);
  });
}

test('a hooks folder that becomes a file during a turn keeps neither its end nor the next turn, and is named', async (t) => {
  const place = scratch(t);
  mkdirSync(join(place.top, 'hooks'));
  place.git('config', 'core.hooksPath', '../hooks');
  t.is(durable(place, ['init']).code, 0);
  const running = await openTurn(t, place);
  place.run('sh', ['-c', 'rm -r ../hooks && echo > ../hooks']);
  t.regex(problems(place).join(), /which is no folder/);
  await close(t, running);
  t.false(existsSync(join(place.dir, '.git/index.lock')));
  t.is(durable(place, ['run', '--', 'true']).code, 0);
  t.is(durable(place, ['uninstall', '--purge']).code, 0);
});

const MOVED: readonly (readonly [how: string, set: (place: Scratch, to: string) => void])[] = [
  ['in the repository', (place, to) => place.git('config', 'core.hooksPath', to)],
  ['by the user for all', (place, to) => place.git('config', '--global', 'core.hooksPath', to)],
  [
    'for the work tree',
    (place, to) => {
      place.git('config', 'extensions.worktreeConfig', 'true');
      place.git('config', '--worktree', 'core.hooksPath', to);
    },
  ],
  [
    'in a file that is included',
    (place, to) => {
      writeFileSync(join(place.top, 'included'), `[core]\n\thooksPath = ${to}\n`);
    },
  ],
];

for (const [how, set] of MOVED) {
  test(`core.hooksPath is changed ${how} during a turn: its hooks go along, it is recorded once, and nothing stays`, async (t) => {
    const place = scratch(t);
    writeFileSync(join(place.top, 'included'), '[mine]\n\tis = here\n');
    place.git('config', 'include.path', '../../included');
    for (const folder of ['.husky/_', 'other'])
      place.write(`${folder}/pre-commit`, '#!/bin/sh\nexit 0\n', 0o755);
    place.write('.husky/_/.gitignore', '*\n');
    t.is(durable(place, ['init', '--fence', 'hooks']).code, 0);
    const folders = (): string[][] =>
      ['.git/hooks', '.husky/_', 'other'].map((folder) => listing(join(place.dir, folder)));
    const before = folders();
    const running = await openTurn(t, place);
    const there = (folder: string): boolean => existsSync(join(place.dir, folder, 'reference-transaction'));
    set(place, '.husky/_');
    await until('the hooks in the new folder', () => there('.husky/_') && !there('.git/hooks'));
    t.regex(place.run('git', ['branch', 'beside']).stderr, /git-durable: refused/);
    t.is(place.git('status', '--porcelain', '--', '.husky'), '');
    await close(t, running);
    t.deepEqual(folders(), before);
    const told = observed(place)
      .split('\n')
      .filter((line) => line.includes('core.hooksPath was changed'));
    t.is(told.length, 1, told.join('\n'));
    t.true(told.join().includes('.husky/_'));
  });
}

test('core.hooksPath is changed during a turn to what can hold no hook: recorded, named, and the end is tidy', async (t) => {
  const place = scratch(t);
  t.is(durable(place, ['init']).code, 0);
  const running = await openTurn(t, place);
  place.git('config', 'core.hooksPath', '/dev/null');
  await until('no hook where git does not look', () =>
    readdirSync(join(place.dir, '.git/hooks')).every((name) => name.endsWith('.sample')),
  );
  t.regex(problems(place).join(), /'\/dev\/null' \(core.hooksPath\), which is no folder/);
  await close(t, running);
  t.regex(observed(place), /core\.hooksPath was changed: [^"]*no hooks there/);
  t.is(durable(place, ['uninstall']).code, 0);
});
