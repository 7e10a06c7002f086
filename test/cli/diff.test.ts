import { rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { document } from '../helpers/events.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const checkpoint = (place: Scratch): string =>
  document<{ checkpoint: string }>(place, ['checkpoint']).checkpoint;

test('diff --json names each path with its state and the blobs of both sides, as git hashes them', (t) => {
  const place = scratch(t);
  for (const name of ['deleted', 'modified', 'retyped', 'same']) place.write(name, `${name}\n`);
  const first = checkpoint(place);
  const blob = (path: string): string => place.git('hash-object', '--no-filters', '--', path);
  const [deleted, modified, retyped] = ['deleted', 'modified', 'retyped'].map(blob);
  rmSync(join(place.dir, 'deleted'));
  rmSync(join(place.dir, 'retyped'));
  symlinkSync('same', join(place.dir, 'retyped'));
  place.write('modified', 'otherwise\n');
  place.write('added', 'added\n');
  const link = place.run('git', ['hash-object', '--stdin'], { input: 'same' }).stdout.trim();
  const expected = [
    { path: 'added', status: 'added', before: null, after: blob('added') },
    { path: 'deleted', status: 'deleted', before: deleted, after: null },
    { path: 'modified', status: 'modified', before: modified, after: blob('modified') },
    { path: 'retyped', status: 'retyped', before: retyped, after: link },
  ];
  t.deepEqual(document<unknown>(place, ['diff', first]), expected);
  const second = checkpoint(place);
  t.deepEqual(document<unknown>(place, ['diff', first, second]), expected);
  t.deepEqual(document<unknown>(place, ['diff', first.slice(0, 12), second.slice(0, 12)]), expected);
  t.deepEqual(document<unknown>(place, ['diff', second]), []);
  const back = document<{ path: string; status: string }[]>(place, ['diff', second, first]);
  t.deepEqual(
    back.map(({ path, status }) => [path, status]),
    [
      ['added', 'deleted'],
      ['deleted', 'added'],
      ['modified', 'modified'],
      ['retyped', 'retyped'],
    ],
  );
});

test('diff says which paths differ, an executable bit too, and when none does', (t) => {
  const place = scratch(t);
  const first = checkpoint(place);
  t.is(durable(place, ['diff', first]).stdout, 'no difference\n');
  place.run('chmod', ['+x', 'README']);
  t.is(durable(place, ['diff', first]).stdout, 'modified  README  100644 to 100755\n');
});

test('diff names what one side has left out, and does not pass it for the same, for new or for gone', (t) => {
  const place = scratch(t);
  place.git('config', 'durable.maxFileSize', '1k');
  place.write('grows', 'small\n');
  place.write('big', 'x'.repeat(2000));
  const first = checkpoint(place);
  place.write('big', 'y'.repeat(2001));
  const same = durable(place, ['diff', first]);
  t.is(same.stdout, 'no difference in what was compared\n');
  t.is(same.stderr, 'git-durable: not compared, since it was left out: big (too-large)\n');
  place.write('grows', 'z'.repeat(2000));
  for (const words of [
    ['diff', first],
    ['diff', first, checkpoint(place)],
  ]) {
    const ran = durable(place, ['--json', ...words]);
    const [only, ...more] = JSON.parse(ran.stdout) as { path: string; status: string; after: string }[];
    t.like(only, { path: 'grows', status: 'modified', after: 'unknown' });
    t.deepEqual(more, []);
    t.is(
      ran.stderr,
      'git-durable: not compared, since it was left out: big (too-large), grows (too-large)\n',
    );
  }
});
