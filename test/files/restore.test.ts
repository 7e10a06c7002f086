import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { hasCode } from '../../lib/errors.js';
import { previewRestore } from '../../lib/files/restore.js';
import { checkpointPlace, walk } from '../helpers/checkpoint-place.js';

test('a restore makes the exact set of files of the checkpoint again, and undo is its exact inverse', async (t) => {
  const place = await checkpointPlace(t);
  place.write('edited', 'one\n');
  place.write('removed', 'one\n');
  place.write('tool', 'one\n', 0o755);
  place.write('kind', 'one\n');
  place.write('folder/in it', 'one\n');
  place.write('file or folder', 'one\n');
  symlinkSync('folder', join(place.dir, 'link to a folder'));
  const was = walk(place.dir);
  const taken = await place.checkpoint();
  place.write('edited', 'two\n');
  unlinkSync(join(place.dir, 'removed'));
  chmodSync(join(place.dir, 'tool'), 0o644);
  unlinkSync(join(place.dir, 'kind'));
  symlinkSync('edited', join(place.dir, 'kind'));
  rmSync(join(place.dir, 'folder'), { recursive: true });
  symlinkSync('made', join(place.dir, 'folder'));
  unlinkSync(join(place.dir, 'file or folder'));
  place.write('file or folder/deep/er', 'two\n');
  unlinkSync(join(place.dir, 'link to a folder'));
  place.write('link to a folder/file', 'two\n');
  place.write('made/by/an agent', 'two\n');
  const changed = walk(place.dir);
  const done = await place.restore(taken.checkpoint);
  t.deepEqual(walk(place.dir), was);
  t.false(existsSync(join(place.dir, 'made')));
  t.deepEqual(done.removed, [
    'file or folder/deep/er',
    'folder',
    'link to a folder/file',
    'made/by/an agent',
  ]);
  t.true(done.restored.includes('folder/in it'));
  const undone = await place.restore(done.checkpoint ?? '');
  t.deepEqual(walk(place.dir), changed);
  await place.restore(undone.checkpoint ?? '');
  t.deepEqual(walk(place.dir), was);
});

test('named paths are restored and no others; a folder means all below it', async (t) => {
  const place = await checkpointPlace(t);
  place.write('a/one', '1\n');
  place.write('a/b/two', '1\n');
  place.write('ab', '1\n');
  const taken = await place.checkpoint();
  for (const path of ['a/one', 'a/b/two', 'ab', 'README']) place.write(path, '2\n');
  place.write('a/new', '2\n');
  place.write('new', '2\n');
  const done = await place.restore(taken.checkpoint, ['a/']);
  t.deepEqual([done.restored, done.removed], [['a/b/two', 'a/one'], ['a/new']]);
  t.is(readFileSync(join(place.dir, 'ab'), 'utf8'), '2\n');
  t.true(existsSync(join(place.dir, 'new')));
  await place.restore(taken.checkpoint, ['ab']);
  t.is(readFileSync(join(place.dir, 'ab'), 'utf8'), '1\n');
  t.is(readFileSync(join(place.dir, 'README'), 'utf8'), '2\n');
});

test('a named path is literal, and one that is nowhere is an error, not a restore of nothing', async (t) => {
  const place = await checkpointPlace(t);
  place.write('*', '1\n');
  const taken = await place.checkpoint();
  place.write('*', '2\n');
  place.write('README', '2\n');
  t.deepEqual((await place.restore(taken.checkpoint, ['*'])).restored, ['*']);
  t.is(readFileSync(join(place.dir, 'README'), 'utf8'), '2\n');
  for (const path of ['no such', 'READ*', ':(glob)**'])
    await t.throwsAsync(place.restore(taken.checkpoint, [path]), { code: 'not-found' });
  for (const path of ['../README', '/etc/passwd'])
    await t.throwsAsync(place.restore(taken.checkpoint, [path]), { code: 'path-outside' });
});

test('a restore that finds nothing to do writes nothing and says so', async (t) => {
  const place = await checkpointPlace(t);
  const taken = await place.checkpoint();
  const refs = place.git('for-each-ref', 'refs/durable/tasks', 'refs/durable/checkpoints');
  const done = await place.restore(taken.checkpoint);
  t.deepEqual(done, { restored: [], removed: [], skipped: [], checkpoint: null });
  t.deepEqual(await place.restore(taken.checkpoint, ['README']), done);
  t.is(place.git('for-each-ref', 'refs/durable/tasks', 'refs/durable/checkpoints'), refs);
});

test('a preview says what a restore would do, and changes neither the work tree nor a ref', async (t) => {
  const place = await checkpointPlace(t);
  place.write('a', '1\n');
  const taken = await place.checkpoint();
  place.write('a', '2\n');
  place.write('b', '2\n');
  unlinkSync(join(place.dir, 'README'));
  const [tree, refs] = [walk(place.dir), place.git('for-each-ref')];
  const objects = place.git('count-objects', '-v');
  const preview = await previewRestore(place.storage, { checkpoint: taken.checkpoint });
  t.deepEqual([preview.restored, preview.removed, preview.checkpoint], [['README', 'a'], ['b'], null]);
  t.deepEqual(walk(place.dir), tree);
  t.is(place.git('for-each-ref'), refs);
  t.is(place.git('count-objects', '-v'), objects);
  const done = await place.restore(taken.checkpoint);
  t.deepEqual([done.restored, done.removed], [preview.restored, preview.removed]);
});

test('ignored files, files over the limit and nested repositories survive every restore', async (t) => {
  const place = await checkpointPlace(t, {
    prepare: ({ git }) => git('config', 'durable.maxFileSize', '1k'),
  });
  place.write('.gitignore', 'ignored\n');
  const first = await place.checkpoint();
  place.write('ignored', 'mine\n');
  place.write('large', 'x'.repeat(2000));
  place.write('small', 'x');
  mkdirSync(join(place.dir, 'nested'));
  place.run('git', ['init', '-q'], { cwd: join(place.dir, 'nested') });
  place.write('nested/file', 'theirs\n');
  const second = await place.checkpoint();
  t.deepEqual(
    second.skipped.map(({ path, why }) => `${path} ${why}`),
    ['nested nested-repository', 'large too-large'],
  );
  const done = await place.restore(first.checkpoint);
  t.deepEqual(done.removed, ['small']);
  for (const path of ['ignored', 'large', 'nested/file', 'nested/.git/HEAD'])
    t.true(existsSync(join(place.dir, path)), path);
  place.write('large', 'now small');
  const third = await place.restore(second.checkpoint);
  t.deepEqual(third.restored, ['small']);
  t.deepEqual(third.skipped, [{ path: 'large', why: 'too-large' }]);
  t.is(readFileSync(join(place.dir, 'large'), 'utf8'), 'now small');
});

test('what was ignored when the checkpoint was taken is not removed by it, though it is not ignored now', async (t) => {
  const place = await checkpointPlace(t);
  place.write('.gitignore', 'build/\n');
  place.write('build/out', 'a day of work\n');
  const taken = await place.checkpoint();
  place.write('.gitignore', '\n');
  place.write('added', 'one\n');
  const done = await place.restore(taken.checkpoint);
  t.deepEqual([done.restored, done.removed], [['.gitignore'], ['added']]);
  t.deepEqual(done.skipped, [{ path: 'build/out', why: 'ignored' }]);
  t.true(existsSync(join(place.dir, 'build/out')));
});

test('what a checkpoint holds by name comes back over an ignored file, and undo gives that one back', async (t) => {
  const place = await checkpointPlace(t);
  place.write('.gitignore', '.env\nsecrets/\n');
  place.write('.env', 'one\n');
  place.write('secrets/key', 'one\n');
  const taken = await place.checkpoint({ paths: ['.env', 'secrets'] });
  t.is(taken.files, 4);
  place.write('.env', 'two\n');
  place.write('secrets/key', 'two\n');
  place.write('secrets/more', 'two\n');
  const changed = walk(place.dir);
  const later = await place.checkpoint();
  t.is(place.git('ls-tree', '-r', '--name-only', later.tree), '.gitignore\nREADME');
  const done = await place.restore(taken.checkpoint);
  t.deepEqual([done.restored, done.removed], [['.env', 'secrets/key'], ['secrets/more']]);
  t.is(readFileSync(join(place.dir, '.env'), 'utf8'), 'one\n');
  await place.restore(done.checkpoint ?? '');
  t.deepEqual(walk(place.dir), changed);
});

test('a file that an agent deleted, tracked or not, comes back with its mode', async (t) => {
  const place = await checkpointPlace(t);
  place.write('untracked/tool', '#!/bin/sh\n', 0o755);
  const was = walk(place.dir);
  const taken = await place.checkpoint();
  rmSync(join(place.dir, 'untracked'), { recursive: true });
  rmSync(join(place.dir, 'README'));
  await place.restore(taken.checkpoint);
  t.deepEqual(walk(place.dir), was);
  t.is(place.git('status', '--short'), '?? untracked/');
});

test('after reset --hard HEAD~1 the lost work is restored without moving HEAD', async (t) => {
  const place = await checkpointPlace(t);
  place.write('week', 'of work\n');
  place.git('add', '-A');
  place.git('commit', '-q', '-m', 'second');
  place.write('README', 'not committed\n');
  const was = walk(place.dir);
  const taken = await place.checkpoint();
  place.git('reset', '-q', '--hard', 'HEAD~1');
  const head = place.git('rev-parse', 'HEAD');
  await place.restore(taken.checkpoint);
  t.deepEqual(walk(place.dir), was);
  t.is(place.git('rev-parse', 'HEAD'), head);
});

test('a folder that holds something of its own does not give way to a file', async (t) => {
  const place = await checkpointPlace(t);
  place.write('.gitignore', 'ignored\n');
  place.write('here', 'a file\n');
  place.write('other', 'one\n');
  const taken = await place.checkpoint();
  rmSync(join(place.dir, 'here'));
  place.write('here/ignored', 'mine\n');
  place.write('here/held', 'two\n');
  place.write('other', 'two\n');
  const done = await place.restore(taken.checkpoint);
  t.deepEqual(done.skipped, [{ path: 'here', why: 'in-the-way' }]);
  t.is(readFileSync(join(place.dir, 'here/ignored'), 'utf8'), 'mine\n');
  t.is(readFileSync(join(place.dir, 'other'), 'utf8'), 'one\n');
});

test('a rename that changes case only ends with exactly the one name', async (t) => {
  const place = await checkpointPlace(t);
  place.write('Name', 'one\n');
  const was = walk(place.dir);
  const taken = await place.checkpoint();
  renameSync(join(place.dir, 'Name'), join(place.dir, 'name'));
  await place.restore(taken.checkpoint);
  t.deepEqual(walk(place.dir), was);
});

test('an unknown checkpoint is not found, and a commit of the user is none', async (t) => {
  const place = await checkpointPlace(t);
  const error = await t.throwsAsync(place.restore(place.git('rev-parse', 'HEAD')));
  t.true(hasCode(error, 'not-found'));
});
