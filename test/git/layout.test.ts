import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { hasCode, type ErrorCode } from '../../lib/errors.js';
import { discover, type Layout } from '../../lib/git/layout.js';
import { systemHost, type Host } from '../../lib/host.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const hostOf = (place: Scratch, env: Record<string, string> = {}): Host => ({
  ...systemHost(),
  env: { ...place.env, ...env },
});
const look = (place: Scratch, dir = place.dir, env: Record<string, string> = {}): Promise<Layout> =>
  discover(dir, hostOf(place, env));
const real = (...parts: string[]): string => realpathSync(join(...parts));

async function refused(t: ExecutionContext, code: ErrorCode, opening: Promise<Layout>): Promise<string> {
  const error = await t.throwsAsync(opening);
  t.true(hasCode(error, code), `expected ${code}: ${String(error)}`);
  return String(error);
}

/** A `git` that comes first on PATH. */
function stub(place: Scratch, script: string): Record<string, string> {
  const bin = join(place.top, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'git'), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, 'git'), 0o755);
  return { PATH: `${bin}:${place.env['PATH'] ?? ''}`, REAL_PATH: place.env['PATH'] ?? '' };
}

test('the main work tree keeps what is shared and what is its own in one folder', async (t) => {
  const place = scratch(t);
  const layout = await look(place);
  t.like(layout, {
    workTree: real(place.dir),
    gitDir: real(place.dir, '.git'),
    commonDir: real(place.dir, '.git'),
    objectFormat: 'sha1',
    alternates: false,
    promisor: false,
  });
  t.is(layout.shared, join(layout.commonDir, 'durable'));
  t.is(layout.local, layout.shared);
  t.true(place.git('version').endsWith(layout.gitVersion));
});

test('any folder of the work tree opens all of it, a folder that git ignores included', async (t) => {
  const place = scratch(t);
  place.write('a/b c/ü/file', 'x');
  place.write('.gitignore', '/a\n');
  t.deepEqual(await look(place, join(place.dir, 'a/b c/ü')), await look(place));
});

test('a linked work tree shares objects and refs with the main one and has a folder of its own', async (t) => {
  const place = scratch(t);
  place.git('worktree', 'add', '-q', '../linked');
  const layout = await look(place, join(place.top, 'linked'));
  t.is(layout.workTree, real(place.top, 'linked'));
  t.is(layout.commonDir, real(place.dir, '.git'));
  t.is(layout.gitDir, real(place.dir, '.git/worktrees/linked'));
  t.is(layout.shared, join(layout.commonDir, 'durable'));
  t.is(layout.local, join(layout.gitDir, 'durable'));
});

test('a work tree whose refs are a link to those of another shares its locks and journal', async (t) => {
  const place = scratch(t);
  const dir = join(place.top, 'new-workdir');
  mkdirSync(join(dir, '.git'), { recursive: true });
  for (const name of ['objects', 'refs', 'packed-refs', 'config', 'info'])
    symlinkSync(join(place.dir, '.git', name), join(dir, '.git', name));
  writeFileSync(join(dir, '.git/HEAD'), place.git('rev-parse', 'HEAD'));
  const layout = await look(place, dir);
  t.is(layout.shared, (await look(place)).shared);
  t.is(layout.local, real(dir, '.git') + '/durable');
});

test('a submodule is a repository of its own', async (t) => {
  const place = scratch(t);
  place.git('clone', '-q', '.', '../origin');
  place.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', '../origin', 'sub');
  const layout = await look(place, join(place.dir, 'sub'));
  t.is(layout.workTree, real(place.dir, 'sub'));
  t.is(layout.commonDir, real(place.dir, '.git/modules/sub'));
});

test('no commit yet, a detached HEAD and packed refs make no difference', async (t) => {
  const empty = scratch(t, { commit: false });
  t.is((await look(empty)).workTree, real(empty.dir));
  const place = scratch(t);
  const before = await look(place);
  place.git('checkout', '-q', '--detach');
  place.git('pack-refs', '--all');
  t.deepEqual(await look(place), before);
});

test('the object format is told', async (t) => {
  t.is((await look(scratch(t, { objectFormat: 'sha256' }))).objectFormat, 'sha256');
});

test('a separate git dir is found', async (t) => {
  const place = scratch(t, { repository: false });
  place.git('init', '-q', '--separate-git-dir', '../elsewhere.git');
  const layout = await look(place);
  t.is(layout.commonDir, real(place.top, 'elsewhere.git'));
  t.is(layout.workTree, real(place.dir));
});

test('alternates are told: objects may live in another repository', async (t) => {
  const place = scratch(t);
  place.git('clone', '-q', '--shared', '.', '../sharing');
  t.true((await look(place, join(place.top, 'sharing'))).alternates);
});

test('a shallow clone opens, and a partial one says that objects may be missing', async (t) => {
  const place = scratch(t);
  place.git('config', 'uploadpack.allowFilter', 'true');
  const url = `file://${encodeURI(place.dir)}`;
  place.git('clone', '-q', '--depth=1', url, '../shallow');
  t.false((await look(place, join(place.top, 'shallow'))).promisor);
  place.git('clone', '-q', '--filter=blob:none', url, '../partial');
  t.true((await look(place, join(place.top, 'partial'))).promisor);
});

test('inherited GIT_ variables of another repository are not followed', async (t) => {
  const place = scratch(t);
  const other = scratch(t, { objectFormat: 'sha256' });
  const layout = await look(place, place.dir, {
    GIT_DIR: join(other.dir, '.git'),
    GIT_WORK_TREE: other.dir,
    GIT_OBJECT_DIRECTORY: join(other.dir, '.git/objects'),
  });
  t.is(layout.commonDir, real(place.dir, '.git'));
  t.is(layout.objectFormat, 'sha1');
});

test('a newline in the path is part of the path', async (t) => {
  const place = scratch(t);
  const odd = join(place.top, 'two\nlines');
  place.git('clone', '-q', '.', odd);
  t.is((await look(place, odd)).workTree, real(odd));
  t.is((await look(place, odd)).commonDir, real(odd, '.git'));
});

test('a folder that is in no repository is refused, and so is one that is not there', async (t) => {
  const place = scratch(t, { repository: false });
  await refused(t, 'not-a-repository', look(place));
  await refused(t, 'not-a-repository', look(place, join(place.dir, 'missing')));
});

test('a bare repository is refused as bare, and the inside of a git dir as no work tree', async (t) => {
  const place = scratch(t);
  place.git('clone', '-q', '--bare', '.', '../bare.git');
  await refused(t, 'bare-repository', look(place, join(place.top, 'bare.git')));
  await refused(t, 'bare-repository', look(place, join(place.top, 'bare.git', 'refs')));
  await refused(t, 'not-a-repository', look(place, join(place.dir, '.git')));
});

test("another user's repository is refused with the command that trusts it", async (t) => {
  const place = scratch(t);
  const env = stub(place, 'GIT_TEST_ASSUME_DIFFERENT_OWNER=1 PATH="$REAL_PATH" exec git "$@"');
  const message = await refused(t, 'unsafe-directory', look(place, place.dir, env));
  t.true(message.includes('git config --global --add safe.directory'));
  place.git('config', '--global', '--add', 'safe.directory', '*');
  t.is((await look(place, place.dir, env)).workTree, real(place.dir));
});

test('a git before 2.31 is refused with its version, one of 2.31 is not', async (t) => {
  const place = scratch(t);
  const env = stub(
    place,
    'for a in "$@"; do if [ "$a" = version ]; then echo "git version $FAKE"; exit; fi; done; PATH="$REAL_PATH" exec git "$@"',
  );
  for (const [version, old] of [
    ['2.30.9', true],
    ['1.9.1', true],
    ['2.31.0', false],
    ['2.39.5 (Apple Git-154)', false],
    ['2.50.0.windows.1', false],
    ['3.0', false],
  ] as const) {
    const opening = look(place, place.dir, { ...env, FAKE: version });
    if (old) t.true((await refused(t, 'git-too-old', opening)).includes(version), version);
    else t.true(version.startsWith((await opening).gitVersion), version);
  }
});

test('without a git on PATH the refusal says so', async (t) => {
  const place = scratch(t);
  await refused(t, 'git-missing', look(place, place.dir, { PATH: place.top }));
});

test('reftable storage is refused with the reason, by a git that knows it and by one that does not', async (t) => {
  const place = scratch(t);
  appendFileSync(
    join(place.dir, '.git/config'),
    '[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = reftable\n',
  );
  place.write('deep/er/file', 'x');
  t.true((await refused(t, 'reftable-unsupported', look(place))).includes('git refs migrate'));
  await refused(t, 'reftable-unsupported', look(place, join(place.dir, 'deep/er')));
  const knowing = scratch(t);
  const env = stub(
    knowing,
    'case "$*" in *get-regexp*) printf "extensions.refstorage\\nreftable\\0";; *) PATH="$REAL_PATH" exec git "$@";; esac',
  );
  await refused(t, 'reftable-unsupported', look(knowing, knowing.dir, env));
});

test('a repository that git cannot read is told in the words of git', async (t) => {
  const place = scratch(t);
  appendFileSync(join(place.dir, '.git/config'), '[broken\n');
  t.true((await refused(t, 'git-failed', look(place))).includes('config'));
  rmSync(join(place.dir, '.git/config'));
});
