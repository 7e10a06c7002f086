import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { healFences } from '../../lib/fence/heal.js';
import { openStorage } from '../../lib/git/storage.js';
import { openRepository, systemHost } from '../../lib/index.js';
import { keeperOf, killKeeper, killTurn } from '../helpers/keeper.js';
import { stateOf, until } from '../helpers/processes.js';
import { durable, startDurable, type Running } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const lockOf = (place: Scratch): string => join(place.dir, '.git/index.lock');
const hostOf = (place: Scratch) => ({ ...systemHost(), env: place.env });

/** A turn that stays open until its input ends, and echoes what it is told. */
async function openTurn(t: ExecutionContext, place: Scratch): Promise<Running> {
  const running = startDurable(t, place, [
    'run',
    '--objective',
    'hold it',
    '--',
    'sh',
    '-c',
    'echo open; cat',
  ]);
  if ((await running.line()) !== 'open') throw new Error(running.said);
  return running;
}

/** A turn whose agent and keeper were killed, the keeper first. */
async function killedTurn(t: ExecutionContext, place: Scratch): Promise<void> {
  await killTurn(place, await openTurn(t, place));
}

test('while a turn is open a git outside it stages nothing and reads as ever; afterwards it stages', async (t) => {
  const place = scratch(t);
  place.write('new', 'new\n');
  const running = await openTurn(t, place);
  const index = readFileSync(join(place.dir, '.git/index'));
  t.is(place.run('git', ['add', 'new']).code, 128);
  t.deepEqual(readFileSync(join(place.dir, '.git/index')), index);
  t.is(place.git('status', '--porcelain'), '?? new');
  t.is(place.git('log', '--format=%s'), 'first');
  running.child.stdin.end();
  t.is((await running.ended).code, 0);
  t.false(existsSync(lockOf(place)));
  place.git('add', 'new');
});

test('the lock says who holds the work tree, since when, for what, in which task, and two ways out', async (t) => {
  const place = scratch(t);
  const running = await openTurn(t, place);
  const text = readFileSync(lockOf(place), 'utf8');
  const task = (JSON.parse(durable(place, ['status', '--json']).stdout) as { turn: { task: string } }).turn
    .task;
  for (const part of [
    `pid ${String(running.pid)} on `,
    `'hold it' (task ${task})`,
    'git durable status',
    'op --beside',
    'since 20',
  ])
    t.true(text.includes(part), `${part} in ${text}`);
  t.is(readFileSync(join(place.dir, '.git/index~pid.lock'), 'utf8'), `pid ${String(running.pid)}\n`);
});

test("the turn's own git stages and commits, and others see it at once", (t) => {
  const place = scratch(t);
  place.write('new', 'new\n');
  const script = [
    'git add new && /usr/bin/env -u DURABLE_STAGE git status --porcelain',
    'git commit -qm second && git stash list && git rm -q README && git reset -q && git checkout -q README',
  ];
  const ran = durable(place, ['run', '--', 'sh', '-ec', script.join('\n')]);
  t.deepEqual([ran.code, ran.stdout], [0, 'A  new\n'], ran.stderr);
  t.is(place.git('status', '--porcelain'), '');
  t.is(place.git('log', '-1', '--format=%s'), 'second');
  t.is(place.git('fsck', '--strict'), '');
});

test('in a login bash, whose profile puts PATH anew, the turn’s git comes first all the same, and the user’s own BASH_ENV is run', (t) => {
  const place = scratch(t);
  place.write('new', 'new\n');
  place.write('../home/.profile', 'PATH=/usr/bin:/bin\n');
  place.write('../own $env', 'export OWN=1\n');
  const script = 'git add new && git commit -qm second && echo $OWN';
  const ran = durable(place, ['run', '--', 'bash', '-lc', script], {
    env: { OF: '../own $env', BASH_ENV: '$OF' },
  });
  t.deepEqual([ran.code, ran.stdout], [0, '1\n'], ran.stderr);
  t.is(place.git('log', '-1', '--format=%s'), 'second');
});

for (const mode of ['hooks', 'off']) {
  test(`with durable.fence=${mode} index.lock is left to git, and the shim is the real git`, async (t) => {
    const place = scratch(t);
    place.git('config', 'durable.fence', mode);
    place.write('new', 'new\n');
    const running = await openTurn(t, place);
    t.false(existsSync(lockOf(place)));
    place.git('add', 'new');
    running.child.stdin.end();
    t.is((await running.ended).code, 0);
  });
}

test("a turn whose agent is killed frees the user's git within the keeper's look, without any command", async (t) => {
  const place = scratch(t);
  const running = await openTurn(t, place);
  await keeperOf(place);
  running.child.kill('SIGKILL');
  await until('the lock gone', () => !existsSync(lockOf(place)));
  place.write('new', 'new\n');
  place.git('add', 'new');
  t.false(existsSync(join(place.dir, '.git/index~pid.lock')));
  t.false(existsSync(join(place.dir, '.git/durable/fence')));
});

test('a turn whose keeper is killed gives the lock back at its end', async (t) => {
  const place = scratch(t);
  const running = await openTurn(t, place);
  await killKeeper(place);
  running.child.stdin.end();
  t.is((await running.ended).code, 0);
  t.false(existsSync(lockOf(place)));
});

for (const verb of ['status', 'log', 'checkpoints']) {
  test(`agent and keeper killed: the first verb removes the lock (${verb})`, async (t) => {
    const place = scratch(t);
    await killedTurn(t, place);
    t.true(existsSync(lockOf(place)));
    durable(place, [verb]);
    t.false(existsSync(lockOf(place)));
  });
}

test('agent and keeper killed: the next start removes the lock, and says that work was interrupted', async (t) => {
  const place = scratch(t);
  await killedTurn(t, place);
  const repository = await openRepository(place.dir, hostOf(place));
  await t.throwsAsync(repository.startTurn({ objective: 'next' }), { message: /was interrupted/ });
  t.false(existsSync(lockOf(place)));
  await repository.close();
});

test('after the machine was started again any opener removes the lock, though a process has its pid', async (t) => {
  const place = scratch(t);
  const running = await openTurn(t, place);
  const keeper = await keeperOf(place);
  process.kill(keeper, 'SIGSTOP');
  const later = await openStorage(place.dir, { ...hostOf(place), identity: { bootId: 'a later boot' } });
  const gone = [lockOf(place), join(place.dir, '.git/gc.pid')];
  t.deepEqual(healFences(later), gone);
  for (const path of gone) t.false(existsSync(path));
  await later.close();
  process.kill(keeper, 'SIGKILL');
  running.child.kill('SIGKILL');
});

test('a lock that is not ours is waited for, named, and never removed', (t) => {
  const place = scratch(t);
  place.git('config', 'durable.lockWait', '0');
  writeFileSync(lockOf(place), '');
  const ran = durable(place, ['run', '--', 'touch', 'ran']);
  t.is(ran.code, 4);
  t.regex(ran.stderr, /^git-durable: '[^\n]*index\.lock' stayed locked by a git process [^\n]+\n$/);
  t.false(existsSync(join(place.dir, 'ran')));
  t.is(readFileSync(lockOf(place), 'utf8'), '');
});

test('a turn starts once the git that was staging is done', async (t) => {
  const place = scratch(t);
  const gate = join(place.top, 'gate');
  place.run('mkfifo', [gate]);
  place.git('config', 'filter.slow.clean', `cat; cat '${gate.replaceAll("'", `'\\''`)}' >&2`);
  place.write('.gitattributes', '*.slow filter=slow\n');
  place.write('a.slow', 'slow\n');
  const git = spawn('git', ['add', 'a.slow'], { cwd: place.dir, env: place.env, stdio: 'ignore' });
  await until('git at work', () => existsSync(lockOf(place)));
  const running = startDurable(t, place, ['run', '--', 'git', 'diff', '--cached', '--name-only']);
  const first = running.line();
  // The start has its ticket: it is waiting by now, or will be.
  await until('the start waits', () => existsSync(join(place.dir, '.git/durable/workspace')));
  place.run('sh', ['-c', ': > ../gate']);
  await once(git, 'exit');
  t.is(await first, 'a.slow', running.said);
  t.is((await running.ended).code, 0);
});

test('two turns at once: the second is refused by name, and the first keeps the lock', async (t) => {
  const place = scratch(t);
  const running = await openTurn(t, place);
  const before = readFileSync(lockOf(place));
  t.is(durable(place, ['run', '--', 'true']).code, 4);
  t.deepEqual(readFileSync(lockOf(place)), before);
  running.child.stdin.end();
  await running.ended;
});

test('what outlives a dead turn publishes no index over the git that came next', async (t) => {
  const place = scratch(t);
  const gate = join(place.top, 'gate');
  place.run('mkfifo', [gate]);
  place.write('late', 'late\n');
  place.write('mine', 'mine\n');
  const quoted = `'${gate.replaceAll("'", `'\\''`)}'`;
  place.git('config', 'filter.slow.clean', `cat; cat ${quoted} >&2`);
  place.write('.gitattributes', 'late filter=slow\n');
  const script = 'git add late & echo $!; wait';
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', script]);
  const orphan = Number(await running.line());
  await until('git at work', () => existsSync(join(place.dir, '.git/durable/stage/1/index.lock')));
  running.child.kill('SIGKILL');
  await until('the lock gone', () => !existsSync(lockOf(place)));
  place.git('add', 'mine');
  place.run('sh', ['-c', ': > ../gate']);
  await until('the orphan gone', () => ['', 'Z'].includes(stateOf(orphan)));
  t.is(place.git('diff', '--cached', '--name-only'), 'mine');
  t.is(place.git('fsck', '--strict'), '');
});

test("with a cleared environment, or behind another build's shim, git is the real git and never itself", (t) => {
  const place = scratch(t);
  const text = [
    'env -i PATH="$PATH" HOME="$HOME" timeout 20 git --version',
    'mkdir -p ../other/hooks/git/shim && cp "$DURABLE_SHIM/git" ../other/hooks/git/shim/git',
    'ln -s "$DURABLE_SHIM" ../link',
    'env -i PATH="$PWD/../link:$PWD/../other/hooks/git/shim:$PATH" HOME="$HOME" timeout 20 git --version',
    'PATH="$PWD/../other/hooks/git/shim:$PATH" timeout 20 git add README && git diff --cached --name-only',
  ];
  place.write('README', 'changed\n');
  const ran = durable(place, ['run', '--', 'sh', '-c', text.join('\n')]);
  t.is(ran.code, 0, ran.stderr);
  t.regex(ran.stdout, /^git version [^\n]+\ngit version [^\n]+\nREADME\n$/);
  t.is(place.git('diff', '--cached', '--name-only'), 'README');
});

test('other repositories, submodules and linked work trees pass the shim untouched', (t) => {
  const place = scratch(t);
  const other = join(place.top, 'other');
  place.run('git', ['init', '-q', other]);
  writeFileSync(join(other, 'file'), 'x\n');
  place.git('-C', other, 'add', 'file');
  place.git('-C', other, 'commit', '-qm', 'other');
  const script = [
    'echo y > ../other/file; git -C ../other add file; git --git-dir=../other/.git status >/dev/null',
    'cd ../other; git commit -qm again; cd ../work',
    'git -c protocol.file.allow=always submodule --quiet add ../other sub; git commit -qm sub',
    'echo z > sub/file; git -C sub commit -qam inside',
    'git worktree add -q ../linked; echo l > ../linked/README; git -C ../linked commit -qam linked',
  ];
  const ran = durable(place, ['run', '--', 'sh', '-ec', script.join('\n')]);
  t.is(ran.code, 0, ran.stderr);
  t.is(place.git('-C', other, 'log', '-1', '--format=%s'), 'again');
  t.is(place.git('-C', 'sub', 'log', '-1', '--format=%s'), 'inside');
  t.is(place.git('-C', '../linked', 'log', '-1', '--format=%s'), 'linked');
  t.is(place.git('-C', other, 'status', '--porcelain'), '');
  t.is(place.git('-C', '../linked', 'status', '--porcelain'), '');
  t.is(place.git('status', '--porcelain'), ' M sub');
});

test('gits of one turn beside each other lose nothing that any of them staged', (t) => {
  const place = scratch(t);
  const script =
    'for i in 1 2 3 4 5 6 7 8; do (echo $i > f$i; until git add f$i 2>/dev/null; do :; done) & done; wait';
  const ran = durable(place, ['run', '--', 'sh', '-c', script]);
  t.is(ran.code, 0, ran.stderr);
  t.is(place.git('diff', '--cached', '--name-only').split('\n').length, 8);
});

test('an index that a lock-ignoring program replaced is what the next command of the turn starts from', (t) => {
  const place = scratch(t);
  place.write('one', '1\n');
  place.write('two', '2\n');
  place.write('three', '3\n');
  const script = [
    'git add one',
    'GIT_INDEX_FILE=.git/other git read-tree HEAD; GIT_INDEX_FILE=.git/other git add two; mv .git/other .git/index',
    'git add three; git diff --cached --name-only',
  ];
  const ran = durable(place, ['run', '--', 'sh', '-ec', script.join('\n')]);
  t.deepEqual([ran.code, ran.stdout], [0, 'three\ntwo\n'], ran.stderr);
});

test('a lock that was copied with the repository from under a live turn is named as that, with what removes it, and never as a turn of the copy', async (t) => {
  const place = scratch(t);
  place.git('config', 'durable.lockWait', '0');
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', 'echo on; read -r _']);
  t.is(await running.line(), 'on', running.said);
  const dir = join(place.top, 'copy');
  place.run('cp', ['-a', '--', place.dir, dir]);
  const lock = join(dir, '.git/index.lock');
  t.true(existsSync(lock));
  const refused = durable(place, ['run', '--', 'true'], { cwd: dir });
  t.is(refused.code, 4);
  t.regex(
    refused.stderr,
    /turn \S+ is no turn of this work tree: the lock was copied with the repository, for /,
  );
  t.notRegex(refused.stderr, /is held by/);
  const doctor = durable(place, ['doctor'], { cwd: dir });
  t.is(doctor.code, 3);
  t.true(doctor.stdout.includes(`rm '${lock}'`), doctor.stdout);
  rmSync(lock);
  t.is(durable(place, ['run', '--', 'true'], { cwd: dir }).code, 0);
  running.child.stdin.end('\n');
  t.is((await running.ended).code, 0);
});
