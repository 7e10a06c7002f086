import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { joinIndexes } from '../../lib/git/index-halves.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

/** Sorted by bytes; lengths around every padding, the length that the flags cannot say, and beyond it. */
const NAMES = [
  ...Array.from({ length: 17 }, (_, length) => `a/${'x'.repeat(length + 1)}`),
  'b with space',
  'c\nnewline',
  `d/${'y'.repeat(4092)}`,
  `e/${'y'.repeat(4093)}`,
  `f/${'y'.repeat(4094)}`,
  `g/${'y'.repeat(9000)}`,
  'é',
  '日',
];

function indexOf(place: Scratch, names: readonly string[]): Buffer {
  const file = join(place.top, 'half');
  const env = { ...place.env, GIT_INDEX_FILE: file };
  const blob = place.run('git', ['hash-object', '-w', '--stdin'], { input: 'bytes\n' }).stdout.trim();
  const input = names.map((name) => `100644 ${blob}\t${name}\0`).join('');
  place.run('git', ['read-tree', '--empty'], { env });
  place.run('git', ['update-index', '-z', '--add', '--index-info'], { env, input });
  return readFileSync(file);
}

function listed(place: Scratch, index: Buffer): string {
  const file = join(place.top, 'joined');
  writeFileSync(file, index);
  const read = place.run('git', ['ls-files', '-s', '-z', '--debug'], {
    env: { ...place.env, GIT_INDEX_FILE: file },
  });
  return read.stdout + read.stderr;
}

for (const objectFormat of ['sha1', 'sha256'] as const) {
  test(`two halves joined are what one git writes, wherever they are parted: ${objectFormat}`, (t) => {
    const place = scratch(t, { objectFormat });
    const hashSize = objectFormat === 'sha256' ? 32 : 20;
    const whole = listed(place, indexOf(place, NAMES));
    for (const at of [0, 1, 9, 18, 20, 21, 22, NAMES.length]) {
      const halves = [NAMES.slice(0, at), NAMES.slice(at)].map((names) => indexOf(place, names));
      const joined = joinIndexes(halves[0] ?? Buffer.of(), halves[1] ?? Buffer.of(), hashSize);
      t.is(listed(place, joined ?? Buffer.of()), whole, `parted at ${String(at)}`);
    }
  });
}

test('what are no two halves of one index is refused', (t) => {
  const place = scratch(t);
  const [first, second] = [indexOf(place, ['a', 'b']), indexOf(place, ['c'])];
  t.is(joinIndexes(second, first, 20), null, 'the wrong way round');
  t.is(joinIndexes(first, first, 20), null, 'the same names twice');
  const other = Buffer.from(second);
  other.writeUInt32BE(4, 4);
  t.is(joinIndexes(first, other, 20), null, 'another version');
  t.is(joinIndexes(first, Buffer.from('not an index at all'), 20), null);
});
