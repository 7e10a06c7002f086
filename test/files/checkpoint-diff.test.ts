import { chmodSync, existsSync, mkdirSync, symlinkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { diffCheckpoints, type Difference } from '../../lib/files/diff.js';
import { resolveCheckpoint } from '../../lib/files/checkpoint-read.js';
import { checkpointPlace, placeIn, walk, type CheckpointPlace } from '../helpers/checkpoint-place.js';

const told = (differences: readonly Difference[]): string[] =>
  differences.map(({ path, status }) => `${status} ${path}`);

async function changedPlace(place: CheckpointPlace): Promise<string> {
  for (const name of ['deleted', 'edited', 'tool', 'kind', 'same']) place.write(name, 'one\n');
  const { checkpoint } = await place.checkpoint();
  unlinkSync(join(place.dir, 'deleted'));
  place.write('edited', 'two\n');
  place.write('added', 'two\n');
  chmodSync(join(place.dir, 'tool'), 0o755);
  unlinkSync(join(place.dir, 'kind'));
  symlinkSync('same', join(place.dir, 'kind'));
  return checkpoint;
}

const EXPECTED = ['added added', 'deleted deleted', 'modified edited', 'retyped kind', 'modified tool'];

test('a diff names each path that differs, between two checkpoints and against the work tree alike', async (t) => {
  const place = await checkpointPlace(t);
  const first = await changedPlace(place);
  t.deepEqual(told(await diffCheckpoints(place.storage, first)), EXPECTED);
  const second = await place.checkpoint();
  t.deepEqual(told(await diffCheckpoints(place.storage, first, second.checkpoint)), EXPECTED);
  t.deepEqual(await diffCheckpoints(place.storage, second.checkpoint), []);
  const back = await diffCheckpoints(place.storage, second.checkpoint, first);
  t.deepEqual(told(back), [
    'deleted added',
    'added deleted',
    'modified edited',
    'retyped kind',
    'modified tool',
  ]);
  t.is(second.changed, 5);
});

test('looking at the work tree writes nothing: no object, no ref, no private index', async (t) => {
  const place = await checkpointPlace(t);
  const first = await changedPlace(place);
  const everything = (): unknown =>
    walk(join(place.dir, '.git'), (path) => path.startsWith('durable/tickets'));
  const before = everything();
  await diffCheckpoints(place.storage, first);
  t.deepEqual(everything(), before);
});

test('a path that one side left out is unknown there, not deleted', async (t) => {
  const place = await checkpointPlace(t, {
    prepare: ({ git }) => git('config', 'durable.maxFileSize', '10'),
  });
  place.write('grows', 'small\n');
  const { checkpoint } = await place.checkpoint();
  place.write('grows', 'more than ten bytes\n');
  const [difference] = await diffCheckpoints(place.storage, checkpoint);
  t.like(difference, { path: 'grows', status: 'modified', after: 'unknown' });
});

test('from a sub-folder the whole work tree is meant, at its own state', async (t) => {
  const place = await checkpointPlace(t);
  place.write('sub/in it', 'one\n');
  place.write('beside/it', 'one\n');
  const sub = await placeIn(t, place, { dir: join(place.dir, 'sub') });
  const taken = await sub.checkpoint();
  t.is(taken.files, 3);
  place.write('beside/it', 'two\n');
  place.write('sub/in it', 'two\n');
  const changed = walk(place.dir);
  const done = await sub.restore(taken.checkpoint);
  t.deepEqual(done.restored, ['beside/it', 'sub/in it']);
  const undone = await sub.restore(done.checkpoint ?? '');
  t.deepEqual(walk(place.dir), changed);
  await sub.restore(undone.checkpoint ?? '');
  t.is(place.git('status', '--short'), '?? beside/\n?? sub/');
});

test('a checkpoint is found by the beginning of its id, and only when that is enough', async (t) => {
  const place = await checkpointPlace(t);
  const { checkpoint } = await place.checkpoint();
  t.is(await resolveCheckpoint(place.storage, checkpoint.slice(0, 10)), checkpoint);
  t.is(await resolveCheckpoint(place.storage, checkpoint), checkpoint);
  for (const prefix of ['0123456789', place.git('rev-parse', 'HEAD')])
    await t.throwsAsync(resolveCheckpoint(place.storage, prefix), { code: 'not-found' });
  for (const prefix of ['', 'zz'])
    await t.throwsAsync(resolveCheckpoint(place.storage, prefix), { code: 'usage' });
});

test('folders that a removal empties go with it, others stay', async (t) => {
  const place = await checkpointPlace(t);
  mkdirSync(join(place.dir, 'empty before'));
  const { checkpoint } = await place.checkpoint();
  place.write('made/for/this', 'two\n');
  place.write('made/ignored', 'two\n');
  place.write('.git/info/exclude', 'ignored\n');
  await place.restore(checkpoint);
  t.true(existsSync(join(place.dir, 'empty before')));
  t.true(existsSync(join(place.dir, 'made/ignored')));
  t.false(existsSync(join(place.dir, 'made/for')));
});
