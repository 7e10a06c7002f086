import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { stateOf, until } from '../helpers/processes.js';
import { durable, startDurable, type Running } from '../helpers/program.js';
import { scratch, type Ran, type Scratch } from '../helpers/scratch.js';

async function openTurn(t: ExecutionContext, place: Scratch): Promise<Running> {
  const script = 'echo open; cat';
  const running = startDurable(t, place, ['run', '--objective', 'hold it', '--', 'sh', '-c', script]);
  if ((await running.line()) !== 'open') throw new Error(running.said);
  return running;
}

const observed = (place: Scratch): string =>
  durable(place, ['log', '--type', 'git.observed', '--json']).stdout +
  durable(place, ['log', ...standing(place), '--type', 'git.observed', '--json']).stdout;

function standing(place: Scratch): string[] {
  const refs = place.git('for-each-ref', '--format=%(refname:lstrip=3)', 'refs/durable/tasks');
  return refs.split('\n').filter((name) => name.startsWith('standing-'));
}

test('op runs one git command, with its streams and its code, and records it', (t) => {
  const place = scratch(t);
  place.write('new', 'new\n');
  t.is(durable(place, ['op', '--', 'add', 'new']).code, 0);
  t.is(place.git('diff', '--cached', '--name-only'), 'new');
  t.is(durable(place, ['op', '--', 'git', 'log', '-1', '--format=%s']).stdout, 'first\n');
  t.is(durable(place, ['op', '--', 'rev-parse', '--verify', '-q', 'nowhere']).code, 1);
  t.is(durable(place, ['op']).code, 2);
  t.true(observed(place).includes('git add new'));
});

test('op is refused under a turn, with who, since when, for what, in which task, and a linked work tree as a way out', async (t) => {
  const place = scratch(t);
  const running = await openTurn(t, place);
  const ran = durable(place, ['op', '--', 'add', 'README']);
  t.is(ran.code, 4);
  const task = (JSON.parse(durable(place, ['status', '--json']).stdout) as { turn: { task: string } }).turn
    .task;
  for (const part of [
    `pid ${String(running.pid)} `,
    'since 20',
    `'hold it' (task ${task})`,
    'git durable run --worktree -- CMD',
  ])
    t.true(ran.stderr.includes(part), ran.stderr);
});

interface Orphan {
  readonly pid: number;
  readonly command: string;
  readonly turn: string | null;
}

const orphansOf = (place: Scratch): Orphan[] =>
  JSON.parse(durable(place, ['orphans', '--json']).stdout) as Orphan[];

function leaseOf(place: Scratch): { alive: boolean; holder: { pid: number } } | null {
  return (JSON.parse(durable(place, ['status', '--json']).stdout) as { lease: ReturnType<typeof leaseOf> })
    .lease;
}

/** `op -- rebase --exec` that stands inside its command, and its own process killed. */
async function killedRebase(t: ExecutionContext): Promise<{ place: Scratch; git: number }> {
  const place = scratch(t);
  for (const name of ['a', 'b']) {
    place.write(name, name);
    place.git('add', name);
    place.git('commit', '-qm', name);
  }
  place.run('mkfifo', ['../gate']);
  const op = startDurable(t, place, ['op', '--', 'rebase', '--exec', 'echo in >&2; cat ../gate', 'HEAD~1']);
  await until('the command of the rebase', () => op.said.includes('in\n'));
  t.deepEqual(orphansOf(place), [], 'while op waits for its git nothing is an orphan');
  op.child.kill('SIGKILL');
  await op.ended;
  const git = leaseOf(place)?.holder.pid ?? 0;
  t.teardown(() => durable(place, ['orphans', '--stop']));
  return { place, git };
}

test('a turn does not start under the git of op though op itself was killed, who holds it and what was left are said, and it starts once git has ended', async (t) => {
  const { place, git } = await killedRebase(t);
  t.is(leaseOf(place)?.alive, true);
  const refused = durable(place, ['run', '--', 'git', 'commit', '--allow-empty', '-qm', 'inside the rebase']);
  t.is(refused.code, 4, refused.stderr);
  t.true(refused.stderr.includes(`pid ${String(git)} `), refused.stderr);
  const left = orphansOf(place);
  t.true(
    left.some(({ pid, command, turn }) => pid === git && command.includes('rebase') && turn === null),
    JSON.stringify(left),
  );
  t.true(left.some(({ command }) => command === 'cat ../gate'));
  place.run('sh', ['-c', 'echo go > ../gate']);
  await until('the end of the rebase', () => leaseOf(place)?.alive !== true);
  t.is(place.git('rev-parse', '--abbrev-ref', 'HEAD'), 'main');
  t.is(durable(place, ['run', '--', 'true']).code, 0);
  t.deepEqual(orphansOf(place), []);
});

test('what the git of op has started holds the work tree on when both are killed, is named, and ended by orphans --stop', async (t) => {
  const { place, git } = await killedRebase(t);
  process.kill(git, 'SIGKILL');
  await until('the death of git', () => stateOf(git) === '' || stateOf(git) === 'Z');
  const refused = durable(place, ['run', '--', 'true']);
  t.is(refused.code, 4, refused.stderr);
  const [left] = orphansOf(place);
  t.true(refused.stderr.includes(`process ${String(left?.pid)} (${left?.command ?? ''})`), refused.stderr);
  t.is(durable(place, ['orphans', '--stop']).code, 0);
  t.is(durable(place, ['run', '--', 'true']).code, 0);
});

test('op whose git was killed lets go of the work tree, and a refused op never begins its git', async (t) => {
  const place = scratch(t);
  place.run('mkfifo', ['../gate']);
  place.git('config', 'alias.wait', '!cat ../gate');
  const op = startDurable(t, place, ['op', '--', 'wait']);
  await until('op holds it', () => leaseOf(place)?.alive === true);
  t.is(durable(place, ['op', '--', 'branch', 'never']).code, 4);
  t.is(place.git('branch', '--list', 'never'), '');
  t.is(durable(place, ['run', '--', 'true']).code, 4);
  process.kill(leaseOf(place)?.holder.pid ?? 0, 'SIGTERM');
  t.is((await op.ended).code, 143);
  t.is(leaseOf(place), null);
  t.is(durable(place, ['run', '--', 'true']).code, 0);
  place.run('sh', ['-c', ': <> ../gate']);
});

test('op --beside stages beside a turn, loses nothing of either, and is recorded in the turn with its process', async (t) => {
  const place = scratch(t);
  durable(place, ['init']);
  place.write('mine', 'mine\n');
  place.write('theirs', 'theirs\n');
  const script = 'git add theirs; echo open; cat; git status --porcelain >&2; git branch own';
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', script]);
  t.is(await running.line(), 'open');
  const ran = durable(place, ['op', '--beside', '--', 'add', 'mine']);
  t.is(ran.code, 0, ran.stderr);
  t.is(durable(place, ['op', '--beside', '--', 'branch', 'beside']).code, 0);
  running.child.stdin.end();
  await running.ended;
  t.is(running.said, 'A  mine\nA  theirs\n');
  const lines = observed(place)
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { what: string; ref: string | null; process: { pid: number } | null });
  t.true(lines.some(({ what, process }) => what.includes('git add mine') && process !== null));
  t.true(lines.some(({ ref, process }) => ref === 'refs/heads/beside' && process !== null));
  t.false(lines.some(({ ref }) => ref === 'refs/heads/own'));
});

test('a commit beside a turn takes the paths that it names and nothing that the turn has staged or changed; one that names none is refused with what to type', async (t) => {
  const place = scratch(t);
  for (const path of ['mine', 'again', 'theirs']) place.write(path, `${path}\n`);
  place.git('config', 'alias.save', 'commit -q');
  place.git('config', 'alias.keep', '-c core.abbrev=9 save');
  const script = 'git add theirs; echo changed > README; echo open; cat; git diff --cached --name-only >&2';
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', script]);
  t.is(await running.line(), 'open');
  const beside = (...words: string[]): Ran => durable(place, ['op', '--beside', '--', ...words]);
  const committed = (): string => place.git('show', '--format=', '--name-only', 'HEAD');
  t.is(beside('add', 'mine', 'again').code, 0);
  const head = place.git('rev-parse', 'HEAD');
  for (const words of [
    ['commit', '-qm', 'all that is staged'],
    ['commit', '-qam', 'all that is changed'],
    ['commit', '-qim', 'with', '--', 'mine'],
    ['save', '-m', 'by an alias'],
    ['keep', '-m', 'by an alias of an alias'],
    ['-c', 'core.abbrev=9', 'commit', '-m', 'behind an option'],
  ]) {
    const ran = beside(...words);
    t.is(ran.code, 128, words.join(' '));
    for (const part of ['again', 'theirs', 'git durable op --beside -- commit -m MESSAGE -- PATH'])
      t.true(ran.stderr.includes(part), ran.stderr);
  }
  t.is(place.git('rev-parse', 'HEAD'), head);
  for (const [words, paths] of [
    [['commit', '-qm', 'by name', '--', 'mine'], 'mine'],
    [['save', '-m', 'by name and alias', 'again'], 'again'],
    [['commit', '--amend', '-qm', 'another message'], 'again'],
    [['commit', '--allow-empty', '-qm', 'empty'], ''],
  ] as const) {
    const ran = beside(...words);
    t.is(ran.code, 0, ran.stderr);
    t.is(committed(), paths);
  }
  running.child.stdin.end();
  await running.ended;
  t.is(running.said, 'theirs\n');
});

test('run --worktree gives a second session a linked work tree and a branch of its own', async (t) => {
  const place = scratch(t);
  const running = await openTurn(t, place);
  const ran = durable(place, [
    'run',
    '--worktree',
    '--',
    'sh',
    '-ec',
    'echo x > x; git add x; git commit -qm apart; pwd',
  ]);
  t.is(ran.code, 0, ran.stderr);
  t.regex(ran.stderr, /work tree '[^\n]+', branch turn-\w{6}/);
  const made = readdirSync(dirname(place.dir)).find((name) => name.startsWith('work-turn-')) ?? '';
  t.true(existsSync(join(place.top, made, 'x')));
  t.is(place.git('log', '--format=%s', made.replace('work-', '')), 'apart\nfirst');
  t.is(place.git('status', '--porcelain'), '');
  running.child.stdin.end();
  t.is((await running.ended).code, 0);
});

test('shell-init prints a function that says who holds the work tree when git is refused', async (t) => {
  const place = scratch(t);
  const { stdout } = durable(place, ['shell-init']);
  const running = await openTurn(t, place);
  const ran = place.run('sh', ['-c', `${stdout}\ngit add README`]);
  t.is(ran.code, 128);
  t.true(
    ran.stderr.includes(`pid ${String(running.pid)} on `) && ran.stderr.includes("'hold it'"),
    ran.stderr,
  );
  t.is(place.run('sh', ['-c', `${stdout}\ngit rev-parse HEAD`]).stderr, '');
});

test('a stash and a checkout beside a turn without the lock are in the ledger with process and ancestors', async (t) => {
  const place = scratch(t);
  durable(place, ['init', '--fence', 'hooks']);
  place.write('README', 'changed\n');
  const running = await openTurn(t, place);
  place.run('git', ['-c', 'core.hooksPath=/dev/null', 'stash']);
  place.run('git', ['add', '-A']);
  place.git('fetch', '-q', '.', 'main:refs/remotes/self/main');
  running.child.stdin.end();
  await running.ended;
  const text = observed(place);
  for (const part of ['refs/stash', "index written by 'git add -A'", 'below node(', 'refs/remotes/self/main'])
    t.true(text.includes(part), `${part} in ${text}`);
});

test('a move that no hook sees is in the ledger without a process: the turn did not do it', async (t) => {
  const place = scratch(t);
  const running = await openTurn(t, place);
  place.git('-c', 'core.hooksPath=/dev/null', 'branch', 'beside');
  place.git('symbolic-ref', 'HEAD', 'refs/heads/beside');
  running.child.stdin.end();
  await running.ended;
  const text = observed(place);
  for (const part of ['refs/heads/beside appeared', 'HEAD changed']) t.true(text.includes(part), text);
});

test('an index.lock that is removed by hand is taken again while the turn runs, and recorded', async (t) => {
  const place = scratch(t);
  const running = await openTurn(t, place);
  const lock = join(place.dir, '.git/index.lock');
  place.run('rm', [lock]);
  await until('the lock back', () => existsSync(lock));
  running.child.stdin.end();
  await running.ended;
  t.false(existsSync(lock));
  t.regex(observed(place), /index\.lock of the turn was removed/);
});
