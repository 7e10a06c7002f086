import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { document } from '../helpers/events.js';
import { differences, listing } from '../helpers/listing.js';
import { durable, PROGRAM, startDurable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Taken {
  readonly checkpoint: string;
  readonly tree: string;
  readonly files: number;
  readonly changed: number;
  readonly skipped: readonly { readonly path: string; readonly why: string }[];
}

interface Restored {
  readonly restored: readonly string[];
  readonly removed: readonly string[];
  readonly skipped: readonly { readonly path: string; readonly why: string }[];
  readonly checkpoint: string | null;
}

const take = (place: Scratch, ...words: readonly string[]): Taken =>
  document<Taken>(place, ['checkpoint', ...words]);
const workTree = (place: Scratch): string[] => listing(place.dir, ['.git']);
const read = (place: Scratch, path: string): string => readFileSync(join(place.dir, path), 'utf8');

/** Files in the work tree, in a folder and beside it. */
function furnished(place: Scratch): void {
  place.write('sub/x', 'x1\n');
  place.write('sub/deep/y', 'y1\n');
  place.write('beside', 'b1\n');
}

test('checkpoint --json and checkpoints --json have the fields of the contract', (t) => {
  const place = scratch(t);
  furnished(place);
  const taken = take(place, '-m', 'first');
  t.deepEqual(Object.keys(taken), ['checkpoint', 'tree', 'files', 'changed', 'skipped']);
  t.is(taken.files, 4);
  t.is(place.git('rev-parse', `${taken.checkpoint}:worktree`), taken.tree);
  const [listed] = document<Record<string, unknown>[]>(place, ['checkpoints']);
  t.deepEqual(Object.keys(listed ?? {}), ['checkpoint', 'task', 'turn', 'takenAt', 'message', 'files']);
  t.deepEqual(
    [listed?.['checkpoint'], listed?.['message'], listed?.['turn']],
    [taken.checkpoint, 'first', null],
  );
  t.is(document(place, ['show', taken.checkpoint.slice(0, 10)])['kind'], 'checkpoint');
});

test('a path that would keep nothing is refused with 2, and no checkpoint is taken', (t) => {
  const place = scratch(t);
  furnished(place);
  symlinkSync('sub', join(place.dir, 'inside'));
  symlinkSync('..', join(place.dir, 'outside'));
  for (const path of ['missing', 'sub/missing', 'sub/x/below', 'inside/x', 'outside/x', '.git/config', '']) {
    const ran = durable(place, ['checkpoint', 'beside', path]);
    t.is(ran.code, 2, path);
    t.is(ran.stderr.trimEnd().split('\n').length, 1);
  }
  t.deepEqual(document(place, ['checkpoints']), []);
  for (const path of ['.', 'sub', 'inside', 'sub/../beside']) t.true(take(place, path).files > 0);
});

test('a restore brings back the exact set of files, and undo and redo are exact inverses', (t) => {
  const place = scratch(t);
  furnished(place);
  symlinkSync('nowhere', join(place.dir, 'link'));
  const first = take(place);
  const before = workTree(place);
  place.write('sub/x', 'x2\n');
  rmSync(join(place.dir, 'beside'));
  rmSync(join(place.dir, 'link'));
  place.write('made', 'after the checkpoint\n');
  chmodSync(join(place.dir, 'README'), 0o755);
  const after = workTree(place);
  const undone = document<Restored>(place, ['restore', first.checkpoint]);
  t.deepEqual(workTree(place), before);
  t.deepEqual(undone.restored, ['README', 'beside', 'link', 'sub/x']);
  t.deepEqual(undone.removed, ['made']);
  const redone = document<Restored>(place, ['restore', undone.checkpoint ?? '']);
  t.deepEqual(workTree(place), after);
  document(place, ['restore', redone.checkpoint ?? '']);
  t.deepEqual(workTree(place), before);
});

test("the user's index, HEAD, stash and reflogs are the same bytes after checkpoint, diff and restore", (t) => {
  const place = scratch(t);
  furnished(place);
  place.write('stashed', '1\n');
  place.git('add', 'stashed');
  place.git('stash');
  place.git('add', 'sub/x');
  place.write('sub/x', 'half staged\n');
  const own = (): string[] => listing(join(place.dir, '.git'), ['objects', 'durable', 'refs/durable']);
  const before = own();
  const { checkpoint } = take(place);
  place.write('sub/x', 'later\n');
  document(place, ['diff', checkpoint]);
  document(place, ['restore', checkpoint]);
  t.deepEqual(own(), before);
  t.is(read(place, 'sub/x'), 'half staged\n');
  t.is(place.git('status', '--porcelain', '--', 'sub/x'), 'AM sub/x');
});

test('from a sub-folder paths are relative to it exactly once, and without any the whole work tree is meant', (t) => {
  const place = scratch(t);
  furnished(place);
  const { checkpoint } = take(place);
  const cwd = join(place.dir, 'sub');
  const spoil = (): void => {
    for (const path of ['sub/x', 'sub/deep/y', 'beside']) place.write(path, 'spoilt\n');
  };
  spoil();
  t.deepEqual(document<Restored>(place, ['restore', checkpoint, 'x'], { cwd }).restored, ['sub/x']);
  t.is(read(place, 'beside'), 'spoilt\n');
  t.deepEqual(document<Restored>(place, ['-C', 'sub', 'restore', checkpoint, 'deep']).restored, [
    'sub/deep/y',
  ]);
  t.deepEqual(document<Restored>(place, ['restore', checkpoint, '../beside'], { cwd }).restored, ['beside']);
  spoil();
  t.deepEqual(document<Restored>(place, ['restore', checkpoint, '.'], { cwd }).restored, [
    'sub/deep/y',
    'sub/x',
  ]);
  t.deepEqual(document<Restored>(place, ['restore', checkpoint], { cwd }).restored, ['beside']);
});

test('a path is literal: no pattern means anything, and after -- a dash does not either', (t) => {
  const place = scratch(t);
  for (const name of ['*', 'ab', '-n', '[a]b', ':(top)x', 'new\nline', 'q"uote']) place.write(name, '1\n');
  const { checkpoint } = take(place);
  for (const name of ['*', 'ab', '-n', '[a]b', ':(top)x', 'new\nline', 'q"uote']) place.write(name, '2\n');
  const done = document<Restored>(place, ['restore', checkpoint, '*', ':(top)x', '--', '-n', 'new\nline']);
  t.deepEqual(done.restored, ['*', '-n', ':(top)x', 'new\nline']);
  t.is(read(place, 'ab'), '2\n');
  t.is(read(place, '[a]b'), '2\n');
});

test('a name that is not UTF-8 is kept, printed as git quotes it, and can be named', (t) => {
  const place = scratch(t);
  const name = Buffer.from('na\xefve', 'latin1');
  const path = Buffer.concat([Buffer.from(`${place.dir}/`), name]);
  writeFileSync(path, '1\n');
  const { checkpoint } = take(place);
  writeFileSync(path, '2\n');
  const quoted = place.git('-c', 'core.quotePath=true', 'ls-files', '-o');
  const [difference] = document<{ path: string }[]>(place, ['diff', checkpoint]);
  t.is(difference?.path, quoted);
  const script = 'exec "$0" "$1" restore "$2" --json "$(printf "na\\357ve")"';
  const ran = place.run('sh', ['-c', script, process.execPath, PROGRAM, checkpoint]);
  t.deepEqual((JSON.parse(ran.stdout) as Restored).restored, [quoted], ran.stderr);
  t.is(readFileSync(path, 'utf8'), '1\n');
});

const OUTSIDE: readonly (readonly string[])[] = [['../other'], ['/etc/hosts'], ['sub/../../other'], ['']];

for (const words of OUTSIDE) {
  test(`a path that is not inside the work tree is wrong usage: '${words.join(' ')}'`, (t) => {
    const place = scratch(t);
    const { checkpoint } = take(place);
    for (const verb of [['restore', checkpoint], ['checkpoint']]) {
      const ran = durable(place, [...verb, ...words]);
      t.deepEqual([ran.code, ran.stdout], [2, ''], ran.stderr);
      t.regex(ran.stderr, /^git-durable: [^\n]+\n$/);
    }
  });
}

test('an absolute path into the work tree is a path of it, through a link to it as well', (t) => {
  const place = scratch(t);
  furnished(place);
  const { checkpoint } = take(place);
  place.write('sub/x', 'spoilt\n');
  place.write('beside', 'spoilt\n');
  const link = join(place.top, 'link to it');
  symlinkSync(place.dir, link);
  const words = ['restore', checkpoint, join(place.dir, 'sub/x'), join(link, 'beside')];
  t.deepEqual(document<Restored>(place, words).restored, ['beside', 'sub/x']);
});

test('an ignored file is kept when it is named, else not, and no restore ever deletes it', (t) => {
  const place = scratch(t);
  place.write('.gitignore', 'big/\n');
  place.write('big/output', 'hours of work\n');
  const without = take(place);
  t.is(document<Restored>(place, ['restore', without.checkpoint]).checkpoint, null);
  t.is(read(place, 'big/output'), 'hours of work\n');
  const named = take(place, 'big');
  place.write('big/output', 'lost\n');
  document(place, ['restore', named.checkpoint]);
  t.is(read(place, 'big/output'), 'hours of work\n');
});

test('a file over the limit is named as left out, and survives every restore', (t) => {
  const place = scratch(t);
  place.git('config', 'durable.maxFileSize', '1k');
  place.write('huge', 'x'.repeat(2000));
  const taken = take(place);
  t.deepEqual(
    taken.skipped.map(({ path, why }) => [path, why]),
    [['huge', 'too-large']],
  );
  place.write('more', '1\n');
  document(place, ['restore', taken.checkpoint]);
  t.true(existsSync(join(place.dir, 'huge')));
  t.false(existsSync(join(place.dir, 'more')));
});

test('restore --dry-run says what a restore would do and changes no byte anywhere', (t) => {
  const place = scratch(t);
  furnished(place);
  const { checkpoint } = take(place);
  place.write('sub/x', 'spoilt\n');
  place.write('made', 'new\n');
  const before = listing(place.dir);
  const would = document<Restored>(place, ['restore', checkpoint, '--dry-run']);
  t.deepEqual(differences(before, listing(place.dir)), []);
  const done = document<Restored>(place, ['restore', checkpoint]);
  t.deepEqual([would.restored, would.removed, would.checkpoint], [done.restored, done.removed, null]);
});

test('a restore that has nothing to do says so and writes nothing', (t) => {
  const place = scratch(t);
  const { checkpoint } = take(place);
  const refs = place.git('for-each-ref', 'refs/durable/tasks');
  const ran = durable(place, ['restore', checkpoint]);
  t.is(ran.code, 0);
  t.regex(ran.stdout, /nothing to do/);
  t.notRegex(ran.stdout, /undo/);
  t.is(place.git('for-each-ref', 'refs/durable/tasks'), refs);
});

test('an unknown checkpoint is refused with 2 by restore, diff and show', (t) => {
  const place = scratch(t);
  take(place);
  for (const verb of ['restore', 'diff', 'show']) t.is(durable(place, [verb, 'feedface']).code, 2, verb);
});

test("restore is refused with 4 under another's turn, and checkpoint is not", async (t) => {
  const place = scratch(t);
  furnished(place);
  const { checkpoint } = take(place);
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', 'echo began; read -r _']);
  t.is(await running.line(), 'began');
  place.write('sub/x', 'of the turn\n');
  const refused = durable(place, ['restore', checkpoint]);
  t.is(refused.code, 4);
  t.regex(refused.stderr, /^git-durable: the work tree is held by /);
  t.is(read(place, 'sub/x'), 'of the turn\n');
  t.is(take(place).files, 4);
  running.child.stdin.end('\n');
  t.is((await running.ended).code, 0);
});

test('inside a turn checkpoint and restore are its own', (t) => {
  const place = scratch(t);
  mkdirSync(join(place.dir, 'sub'));
  const script = [
    'set -e',
    'cp=$("$0" "$1" checkpoint --json | sed "s/.*checkpoint\\":\\"\\([0-9a-f]*\\).*/\\1/")',
    'echo spoilt > README',
    '"$0" "$1" restore "$cp" --json',
  ].join('\n');
  const ran = durable(place, ['run', '--', 'sh', '-c', script, process.execPath, PROGRAM]);
  t.deepEqual([ran.code, (JSON.parse(ran.stdout) as Restored).restored], [0, ['README']], ran.stderr);
  t.is(read(place, 'README'), 'hello\n');
  t.is(durable(place, ['verify']).code, 0);
});
