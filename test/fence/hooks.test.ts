import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { killKeeper, killTurn } from '../helpers/keeper.js';
import { listing } from '../helpers/listing.js';
import { processesNaming, until } from '../helpers/processes.js';
import { durable, startDurable, type Running } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

async function openTurn(t: ExecutionContext, place: Scratch, command = 'cat'): Promise<Running> {
  const script = `echo open; ${command}`;
  const running = startDurable(t, place, ['run', '--objective', 'hold it', '--', 'sh', '-c', script]);
  if ((await running.line()) !== 'open') throw new Error(running.said);
  return running;
}

async function close(running: Running): Promise<void> {
  running.child.stdin.end();
  await running.ended;
}

function hook(path: string, script: string): void {
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
}

function withRemote(place: Scratch): void {
  place.run('git', ['init', '-q', '--bare', join(place.top, 'up')]);
  place.git('remote', 'add', 'origin', '../up');
  place.git('push', '-q', 'origin', 'main');
}

test('in mode hooks a commit, a branch, a tag and a push beside a turn are refused with who, since when, for what, in which task, and two ways out', async (t) => {
  const place = scratch(t);
  withRemote(place);
  t.is(durable(place, ['init', '--fence', 'hooks']).code, 0);
  place.write('new', 'new\n');
  const running = await openTurn(t, place);
  place.git('add', 'new');
  const task = (JSON.parse(durable(place, ['status', '--json']).stdout) as { turn: { task: string } }).turn
    .task;
  const refs = place.git('for-each-ref', 'refs/heads', 'refs/tags');
  for (const words of [
    ['commit', '-qm', 'beside'],
    ['commit', '--no-verify', '-qm', 'beside'],
    ['branch', 'beside'],
    ['tag', 'beside'],
    ['push', '-q', 'origin', 'main:beside'],
    ['update-ref', 'HEAD', 'HEAD'],
    ['stash'],
  ]) {
    const ran = place.run('git', words);
    t.not(ran.code, 0, words.join(' '));
    for (const part of [
      `pid ${String(running.pid)} on `,
      `'hold it' (task ${task})`,
      'since 20',
      'minutes ago',
      'git durable status',
      'op --beside',
    ])
      t.true(ran.stderr.includes(part), `${words.join(' ')}: ${ran.stderr}`);
  }
  t.is(place.git('for-each-ref', 'refs/heads', 'refs/tags'), refs);
  t.is(place.git('ls-remote', 'origin', 'refs/heads/beside'), '');
  t.is(place.git('diff', '--cached', '--name-only'), 'new');
  place.git('fetch', '-q', 'origin');
  await close(running);
  place.git('commit', '-qm', 'after');
  place.git('tag', 'after');
});

test("the turn's own git passes the hooks, by its marker and without its environment by descent", (t) => {
  const place = scratch(t);
  t.is(durable(place, ['init', '--fence', 'hooks']).code, 0);
  place.write('new', 'new\n');
  const script =
    'git add new; git commit -qm one; env -u DURABLE_MARKER git commit -q --allow-empty -m two; git branch b';
  const ran = durable(place, ['run', '--', 'sh', '-ec', script]);
  t.is(ran.code, 0, ran.stderr);
  t.is(place.git('log', '--format=%s', 'b'), 'two\none\nfirst');
});

test('reference-transaction is there during a turn only', async (t) => {
  const place = scratch(t);
  durable(place, ['init']);
  const path = join(place.dir, '.git/hooks/reference-transaction');
  t.false(existsSync(path));
  const running = await openTurn(t, place);
  t.true(existsSync(path));
  await close(running);
  t.false(existsSync(path));
});

test('a dead turn refuses nothing, whatever it left', async (t) => {
  const place = scratch(t);
  durable(place, ['init', '--fence', 'hooks']);
  const running = await openTurn(t, place);
  running.child.kill('SIGKILL');
  await running.ended;
  place.git('commit', '-q', '--allow-empty', '-m', 'free');
  await until('the keeper gone', () => processesNaming(place.dir).length === 0);
  t.is(place.git('log', '-1', '--format=%s'), 'free');
});

test('the hook that was there runs after ours, with its arguments, its input and its name', (t) => {
  const place = scratch(t);
  withRemote(place);
  const hooks = join(place.dir, '.git/hooks');
  hook(join(hooks, 'pre-push'), 'echo "${0##*/} $1" > pushed; cat >> pushed');
  hook(join(hooks, 'pre-commit'), 'exit 3');
  hook(join(hooks, 'reference-transaction'), 'cat >> "$(git rev-parse --git-dir)/moved"');
  durable(place, ['init']);
  place.git('push', '-q', 'origin', 'main:other');
  t.regex(
    readFileSync(join(place.dir, 'pushed'), 'utf8'),
    /^pre-push origin\nrefs\/heads\/main \S+ refs\/heads\/other /,
  );
  t.is(place.run('git', ['commit', '--allow-empty', '-m', 'no']).code, 1);
  const ran = durable(place, ['run', '--', 'git', 'branch', 'seen']);
  t.is(ran.code, 0, ran.stderr);
  t.true(readFileSync(join(place.dir, '.git/moved'), 'utf8').includes('refs/heads/seen'));
});

for (const [name, prepare] of [
  ['plain hooks', () => undefined],
  [
    'existing hooks',
    (place: Scratch) => {
      hook(join(place.dir, '.git/hooks/pre-commit'), 'exit 0');
      hook(join(place.dir, '.git/hooks/reference-transaction'), 'exit 0');
    },
  ],
  [
    'core.hooksPath, relative and untracked',
    (place: Scratch) => {
      mkdirSync(join(place.dir, 'my hooks'));
      hook(join(place.dir, 'my hooks/pre-push'), 'exit 0');
      place.git('config', 'core.hooksPath', 'my hooks');
    },
  ],
  [
    'core.hooksPath, relative and tracked',
    (place: Scratch) => {
      mkdirSync(join(place.dir, 'hooks'));
      hook(join(place.dir, 'hooks/pre-commit'), 'exit 0');
      place.git('add', 'hooks');
      place.git('commit', '-qm', 'hooks');
      place.git('config', 'core.hooksPath', 'hooks');
    },
  ],
  [
    'core.hooksPath, absolute',
    (place: Scratch) => {
      place.git('config', 'core.hooksPath', join(place.top, 'home/hooks of mine'));
    },
  ],
  [
    'no hooks folder, and a setting of the user',
    (place: Scratch) => {
      rmSync(join(place.dir, '.git/hooks'), { recursive: true });
      place.git('config', 'durable.fence', 'off');
    },
  ],
] as const) {
  test(`init, a turn and uninstall leave everything byte for byte as it was: ${name}`, (t) => {
    const place = scratch(t);
    prepare(place);
    const before = listing(place.top);
    t.is(durable(place, ['init', '--fence', 'strict']).code, 0);
    t.is(place.git('status', '--porcelain'), '');
    t.is(durable(place, ['init']).code, 0);
    const ran = durable(place, ['run', '--', 'true']);
    t.is(ran.code, 0, ran.stderr);
    const gone = durable(place, ['uninstall', '--purge', '--json']);
    t.is(gone.code, 0, gone.stdout);
    const kept = (lines: string[]) => lines.filter((line) => !/\.git\/(?:objects\/|index )/.test(line));
    t.deepEqual(kept(listing(place.top)), kept(before));
  });
}

test('a hook that is wiped during a turn is put back while it runs, and recorded', async (t) => {
  const place = scratch(t);
  durable(place, ['init']);
  const running = await openTurn(t, place);
  const path = join(place.dir, '.git/hooks/pre-push');
  rmSync(path);
  await until('the hook back', () => existsSync(path));
  await close(running);
  t.regex(durable(place, ['log', '--type', 'git.observed', '--json']).stdout, /pre-push/);
});

test('status and doctor name a hook that is missing during a turn', async (t) => {
  const place = scratch(t);
  durable(place, ['init']);
  const running = await openTurn(t, place);
  // Without a keeper nobody puts it back before we look.
  await killKeeper(place);
  rmSync(join(place.dir, '.git/hooks/pre-push'));
  const { fence } = JSON.parse(durable(place, ['status', '--json']).stdout) as {
    fence: { problems: string[] };
  };
  t.regex(fence.problems.join(), /'pre-push' was removed/);
  t.is(durable(place, ['doctor']).code, 3);
  await close(running);
  t.is(durable(place, ['doctor']).code, 0);
});

test('with no turn open no hook of ours is in the folder: neither after init nor after a turn, killed or not', async (t) => {
  const place = scratch(t);
  const hooks = (): string[] =>
    readdirSync(join(place.dir, '.git/hooks')).filter((name) => !name.endsWith('.sample'));
  durable(place, ['init']);
  t.deepEqual(hooks(), []);
  const running = await openTurn(t, place);
  t.true(hooks().includes('pre-commit'));
  await close(running);
  t.deepEqual(hooks(), []);
  await killTurn(place, await openTurn(t, place));
  durable(place, ['status']);
  t.deepEqual(hooks(), []);
});

test("a torn ref of the user's keeps no turn from starting, and one that is torn meanwhile is recorded", async (t) => {
  const place = scratch(t);
  place.write('.git/refs/heads/torn', '');
  const running = await openTurn(t, place);
  place.write('.git/refs/heads/later', '');
  await close(running);
  const { stdout, code } = durable(place, ['log', '--type', 'git.observed']);
  t.is(code, 0);
  t.regex(stdout, /refs\/heads\/later appeared/);
  t.notRegex(stdout, /refs\/heads\/torn/);
});

/** `.githooks` of the work tree, as a project has it: `names` are tracked, and each says that it ran. */
function withTracked(place: Scratch, names: readonly string[]): void {
  for (const name of names) place.write(`.githooks/${name}`, `#!/bin/sh\necho ${name} >> ../ran\n`, 0o755);
  place.git('add', '.githooks');
  place.git('commit', '-qm', 'hooks');
  place.git('config', 'core.hooksPath', '.githooks');
}

test("a tracked hook of the user's is left as it is, and run; the others refuse beside a turn; doctor names it", async (t) => {
  const place = scratch(t);
  withTracked(place, ['pre-commit']);
  t.is(durable(place, ['init', '--fence', 'hooks']).code, 0);
  const running = await openTurn(t, place);
  t.is(place.git('status', '--porcelain'), '');
  const refused = place.run('git', ['commit', '-q', '--allow-empty', '-m', 'beside']);
  t.regex(refused.stderr, /^git-durable: refused \(reference-transaction\)/m);
  t.is(place.git('log', '-1', '--format=%s'), 'hooks');
  const { code, stdout } = durable(place, ['doctor']);
  t.is(code, 3);
  t.regex(stdout, /the hook 'pre-commit' is a tracked file: [^\n]* it refuses nothing/);
  await close(running);
  t.deepEqual(readdirSync(join(place.dir, '.githooks')), ['pre-commit']);
  t.is(readFileSync(join(place.top, 'ran'), 'utf8'), 'pre-commit\n');
});

test('where all hooks are tracked only the lock refuses, and doctor names each of them', async (t) => {
  const place = scratch(t);
  const names = ['pre-commit', 'reference-transaction'];
  withTracked(place, names);
  t.is(durable(place, ['init']).code, 0);
  const running = await openTurn(t, place);
  t.is(place.run('git', ['commit', '-q', '--allow-empty', '-m', 'beside']).code, 128);
  t.is(place.git('branch', 'slips-by'), '');
  const { stdout } = durable(place, ['doctor']);
  for (const name of names) t.true(stdout.includes(`the hook '${name}' is a tracked file`), stdout);
  await close(running);
});
