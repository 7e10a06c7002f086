import test from 'ava';
import fc from 'fast-check';
import { decodePath, encodePath, listOf, splitPaths } from '../../lib/git/path.js';
import { seedOf } from '../helpers/random.js';

/** What no path can hold is left out. */
const byte = fc.integer({ min: 1, max: 255 });
const bytes = fc.oneof(
  fc.uint8Array({ min: 1, maxLength: 12 }).map((array) => Buffer.from(array.filter((one) => one > 0))),
  fc.array(byte, { maxLength: 12 }).map((array) => Buffer.from(array)),
  fc.string({ maxLength: 8, unit: 'grapheme' }).map((text) => Buffer.from(text.replaceAll('\0', ''))),
);

test('any bytes are one string and the same bytes again, alone and in a list, whatever stands beside them', (t) => {
  fc.assert(
    fc.property(fc.array(bytes, { maxLength: 6 }), (paths) => {
      const list = Buffer.concat(paths.flatMap((path) => [path, Buffer.of(0)]));
      const split = splitPaths(list);
      t.deepEqual(split, paths.map(decodePath));
      t.deepEqual(split.map(encodePath), paths);
      t.deepEqual(listOf(split), list);
    }),
    { seed: seedOf(process.env), numRuns: 500 },
  );
});

test('what git has not ended with a NUL is no path', (t) => {
  t.deepEqual(splitPaths(Buffer.from('whole\0cut off')), ['whole']);
  t.deepEqual(splitPaths(Buffer.from('cut off')), []);
  t.deepEqual(splitPaths(Buffer.alloc(0)), []);
  t.deepEqual(splitPaths(Buffer.of(0x62, 0xff, 0, 0xff)), [decodePath(Buffer.of(0x62, 0xff))]);
});
