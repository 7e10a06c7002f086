import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { document, type Line } from '../helpers/events.js';
import { differences, listing } from '../helpers/listing.js';
import { processesNaming, until } from '../helpers/processes.js';
import { durable, startDurable } from '../helpers/program.js';
import { scratch, type Ran, type Scratch } from '../helpers/scratch.js';

const CHILD = fileURLToPath(new URL('../helpers/turn-child.js', import.meta.url));

const UNBORN = /^notice: HEAD points to an unborn branch .*\n/;

/** A work tree with a file README, made by git alone; its folder. */
type Make = (place: Scratch) => string;

/** A clone of two commits over the file protocol. */
const cloned = (place: Scratch, ...options: readonly string[]): string => {
  place.git('config', 'uploadpack.allowFilter', 'true');
  place.write('README', 'hello again\n');
  place.git('commit', '-q', '-a', '-m', 'second');
  const dir = join(place.top, 'clone');
  place.git('clone', '-q', ...options, `file://${place.dir}`, dir);
  return dir;
};

const PLACES: readonly (readonly [name: string, options: Parameters<typeof scratch>[1], make: Make])[] = [
  ['an ordinary work tree', {}, ({ dir }) => dir],
  [
    "a submodule's work tree",
    {},
    (place) => {
      const parent = join(place.top, 'parent');
      place.git('init', '-q', parent);
      place.git('-C', parent, '-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', place.dir, 'sub');
      place.git('-C', parent, 'commit', '-q', '-m', 'a submodule');
      return join(parent, 'sub');
    },
  ],
  [
    'a detached HEAD',
    {},
    (place) => {
      place.git('checkout', '-q', '--detach');
      return place.dir;
    },
  ],
  ['a shallow clone', {}, (place) => cloned(place, '--depth=1')],
  ['a partial clone', {}, (place) => cloned(place, '--filter=blob:none')],
  [
    'a repository without a commit',
    { commit: false },
    (place) => {
      place.write('README', 'hello\n');
      return place.dir;
    },
  ],
  [
    'a linked work tree',
    {},
    (place) => {
      const dir = join(place.top, 'linked');
      place.git('worktree', 'add', '-q', dir);
      return dir;
    },
  ],
  ['a repository of the SHA-256 format', { objectFormat: 'sha256' }, ({ dir }) => dir],
];

/** What is the user's in the git dirs, by sha256sum: index, HEAD, every ref that is not ours, the stash and all reflogs. */
function usersOwn(place: Scratch, dir: string): string {
  const ask = (question: string): string =>
    place.run('git', ['rev-parse', '--path-format=absolute', question], { cwd: dir }).stdout.trim();
  const script =
    'cd "$1" && find HEAD ORIG_HEAD index packed-refs logs refs -type f ! -path "refs/durable/*" 2>/dev/null | LC_ALL=C sort | xargs -d "\\n" sha256sum --';
  return [ask('--absolute-git-dir'), ask('--git-common-dir')]
    .map((folder) => place.run('sh', ['-c', script, 'sh', folder]).stdout)
    .join('--\n');
}

/** Something in each place of the user's that a turn could touch: a staged change, a stash with its reflog. */
function occupy(place: Scratch, dir: string): void {
  const git = (...args: readonly string[]): Ran => place.run('git', args, { cwd: dir });
  if (git('rev-parse', '-q', '--verify', 'HEAD').code === 0) {
    writeFileSync(join(dir, 'README'), 'stashed\n');
    if (git('stash').code !== 0) throw new Error('nothing was stashed');
  }
  writeFileSync(join(dir, 'staged'), 'staged\n');
  if (git('add', 'staged').code !== 0) throw new Error('nothing was staged');
}

const files = (dir: string): string[] => listing(dir, ['.git']);

/** A transaction of two files in a library turn whose process dies when the first one is in place. */
function dieInTransaction(place: Scratch, dir: string, text: string): void {
  const env = { ...place.env, DURABLE_FAULTS: 'stage.publish:rename:after=kill' };
  const { signal, stderr } = spawnSync(
    process.execPath,
    [CHILD, dir, JSON.stringify([{ transaction: ['made', text] }])],
    { env, encoding: 'utf8' },
  );
  if (signal !== 'SIGKILL') throw new Error(`the turn ended: ${stderr}`);
}

async function dieInRun(t: ExecutionContext, place: Scratch, dir: string): Promise<void> {
  const script = 'echo changed > README; echo made > made; rm staged; echo written; read -r _';
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', script], { cwd: dir });
  t.is(await running.line(), 'written', running.said);
  process.kill(running.pid, 'SIGKILL');
  await running.ended;
  running.child.stdin.end('\n');
  await until('the keeper is gone', () => processesNaming(dir).length === 0);
}

for (const [name, options, make] of PLACES) {
  test(`in ${name} a turn runs, is killed, is rolled back and is rolled forward, and what is the user's stays byte for byte`, async (t) => {
    const place = scratch(t, options);
    const dir = make(place);
    occupy(place, dir);
    const at = { cwd: dir };
    const [before, own] = [files(dir), usersOwn(place, dir)];
    t.regex(own, / index\n/);
    const same = (when: string): void => {
      t.is(usersOwn(place, dir), own, when);
    };

    t.is(durable(place, ['run', '--', 'sh', '-c', 'echo 1 > made; rm made'], at).code, 0);
    same('after a run');

    await dieInRun(t, place, dir);
    const spoilt = files(dir);
    t.is(durable(place, ['status', '--exit-code'], at).code, 3);
    const back = document(place, ['recover', '--roll-back'], at);
    t.deepEqual(differences(before, files(dir)), [], 'after the roll-back');
    document(place, ['restore', String(back['checkpoint'])], at);
    t.deepEqual(differences(spoilt, files(dir)), [], 'after the roll-back was undone');
    document(place, ['restore', checkpointBefore(place, dir)], at);
    t.deepEqual(differences(before, files(dir)), [], 'after a restore');
    same('after a roll-back and two restores');

    dieInTransaction(place, dir, 'new\n');
    t.true(existsSync(join(dir, 'made.a')) !== existsSync(join(dir, 'made.b')));
    t.is(document(place, ['recover', '--roll-forward'], at)['action'], 'roll-forward');
    for (const file of ['made.a', 'made.b']) t.is(readFileSync(join(dir, file), 'utf8'), 'new\n');
    same('after a roll-forward');

    t.is(durable(place, ['verify'], at).code, 0);
    t.is(durable(place, ['status', '--exit-code'], at).code, 0);
    const fsck = place.run('git', ['fsck', '--strict', '--no-dangling'], at);
    t.deepEqual([fsck.code, fsck.stderr.replace(UNBORN, '')], [0, ''], fsck.stdout);
    t.is(durable(place, ['run', '--', 'true'], at).code, 0);
    same('at the end');
  });
}

/** The one that was taken before anything was run. */
function checkpointBefore(place: Scratch, dir: string): string {
  const [first] = document<Line[]>(place, ['checkpoints'], { cwd: dir });
  return String(first?.['checkpoint']);
}
