import { createHash } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import type { FileState, Image } from '../../lib/event.js';
import {
  isCutShort,
  verdict,
  verdictOfChain,
  type Expected,
  type Found,
  type Step,
} from '../../lib/files/verdict.js';

const blobs = new Map<string, Buffer>();

function file(content: string | Buffer, mode: '100644' | '100755' | '120000' = '100644'): NonNullable<Image> {
  const bytes = Buffer.from(content);
  const oid = createHash('sha1')
    .update(`blob ${String(bytes.length)}\0`)
    .update(bytes)
    .digest('hex');
  blobs.set(oid, bytes);
  return { oid, mode };
}

const read = (oid: string): Promise<Buffer | undefined> => Promise.resolve(blobs.get(oid));

const OLD = file('one two three\n');
const NEW = file('ONE TWO THREE FOUR\n');
const SHORT = file('ONE\n');

interface Row {
  readonly says: string;
  readonly before: Image;
  readonly expected: Expected;
  readonly now: Found;
  readonly state: FileState;
}

const ROWS: readonly Row[] = [
  { says: 'the image from before', before: OLD, expected: NEW, now: OLD, state: 'untouched' },
  { says: 'still no file', before: null, expected: NEW, now: null, state: 'untouched' },
  { says: 'the intended image', before: OLD, expected: NEW, now: NEW, state: 'written' },
  { says: 'a new file, whole', before: null, expected: NEW, now: NEW, state: 'written' },
  { says: 'an intended deletion that was done', before: OLD, expected: null, now: null, state: 'written' },
  { says: 'emptied, nothing written yet', before: OLD, expected: NEW, now: file(''), state: 'partial' },
  { says: 'a prefix of the new bytes', before: OLD, expected: NEW, now: file('ONE T'), state: 'partial' },
  { says: 'a prefix of a new file', before: null, expected: NEW, now: file('ONE T'), state: 'partial' },
  {
    says: 'a prefix and then the old bytes at their place',
    before: OLD,
    expected: NEW,
    now: file('ONE two three\n'),
    state: 'partial',
  },
  {
    says: 'all new bytes, the longer old file not yet cut',
    before: OLD,
    expected: SHORT,
    now: file('ONE\ntwo three\n'),
    state: 'partial',
  },
  { says: 'cut to the new length first', before: OLD, expected: SHORT, now: file('ONE '), state: 'partial' },
  {
    says: 'new bytes, mode still the old one',
    before: OLD,
    expected: { ...NEW, mode: '100755' },
    now: NEW,
    state: 'partial',
  },
  {
    says: 'old bytes, mode already the new one',
    before: OLD,
    expected: { ...NEW, mode: '100755' },
    now: { ...OLD, mode: '100755' },
    state: 'partial',
  },
  { says: 'bytes of somebody else', before: OLD, expected: NEW, now: file('mine\n'), state: 'foreign' },
  {
    says: 'the old bytes at another place',
    before: OLD,
    expected: NEW,
    now: file('ONE Ttwo three\n'),
    state: 'foreign',
  },
  {
    says: 'new bytes and an old tail that is longer than the old file',
    before: OLD,
    expected: NEW,
    now: file('ONE two three\n\n'),
    state: 'foreign',
  },
  {
    says: 'a mode nobody asked for',
    before: OLD,
    expected: NEW,
    now: { ...NEW, mode: '100755' },
    state: 'foreign',
  },
  {
    says: 'a file edited that should have gone',
    before: OLD,
    expected: null,
    now: file('one\n'),
    state: 'foreign',
  },
  { says: 'gone, though a new image was intended', before: OLD, expected: NEW, now: null, state: 'deleted' },
  { says: 'a folder in the place of a file', before: OLD, expected: NEW, now: 'directory', state: 'foreign' },
  {
    says: 'a folder where a file was to go',
    before: OLD,
    expected: null,
    now: 'directory',
    state: 'written',
  },
  { says: 'a socket', before: OLD, expected: NEW, now: 'special', state: 'foreign' },
  {
    says: 'a link that a link was to replace, elsewhere',
    before: file('a', '120000'),
    expected: file('abc', '120000'),
    now: file('ab', '120000'),
    state: 'foreign',
  },
  {
    says: 'a half-written file where a link was',
    before: file('a', '120000'),
    expected: NEW,
    now: file('ONE'),
    state: 'partial',
  },
  { says: 'unknown effect, nothing differs', before: OLD, expected: 'unknown', now: OLD, state: 'untouched' },
  { says: 'unknown effect, other bytes', before: OLD, expected: 'unknown', now: NEW, state: 'changed' },
  { says: 'unknown effect, gone', before: OLD, expected: 'unknown', now: null, state: 'changed' },
  { says: 'unknown effect, a new file', before: null, expected: 'unknown', now: NEW, state: 'changed' },
];

for (const { says, before, expected, now, state } of ROWS) {
  test(`${says}: ${state}`, async (t) => {
    t.is(await verdict({ before, expected }, now, read), state);
  });
}

test('bytes that were purged leave a path foreign rather than guessed partial', async (t) => {
  const gone = { oid: '0'.repeat(40), mode: '100644' } as const;
  t.is(await verdict({ before: OLD, expected: gone }, file('ONE'), read), 'foreign');
});

const A = file('first\n');
const B = file('second, longer\n');
const C = file('third, longer still\n');
const D = file('fourth\n');
const step = (before: Image, expected: Expected, acknowledged: boolean): Step => ({
  before,
  expected,
  acknowledged,
});

const CHAINS: readonly {
  says: string;
  steps: Step[];
  now: Found;
  state: FileState;
  expected: Expected;
  target: Expected;
}[] = [
  {
    says: 'the last of two images',
    steps: [step(A, B, true), step(B, C, false)],
    now: C,
    state: 'written',
    expected: C,
    target: C,
  },
  {
    says: 'the last acknowledged image, the next call left it alone',
    steps: [step(A, B, true), step(B, C, false)],
    now: B,
    state: 'written',
    expected: B,
    target: C,
  },
  {
    says: 'an image of two calls that both have no end',
    steps: [step(A, B, false), step(B, C, false)],
    now: B,
    state: 'written',
    expected: B,
    target: C,
  },
  {
    says: 'as the turn found it, though a write was acknowledged',
    steps: [step(A, B, true)],
    now: A,
    state: 'untouched',
    expected: B,
    target: B,
  },
  {
    says: 'an image that the turn had gone past',
    steps: [step(A, B, true), step(B, C, true), step(C, D, true)],
    now: B,
    state: 'foreign',
    expected: D,
    target: D,
  },
  {
    says: 'an acknowledged write of which nothing is there',
    steps: [step(A, B, true), step(B, C, true)],
    now: B,
    state: 'partial',
    expected: C,
    target: C,
  },
  {
    says: 'cut short over the image of the call before',
    steps: [step(A, B, true), step(B, C, false)],
    now: file('third,, longer\n'),
    state: 'partial',
    expected: C,
    target: C,
  },
  {
    says: 'an acknowledged write that a power cut shortened',
    steps: [step(A, B, true)],
    now: file('sec'),
    state: 'partial',
    expected: B,
    target: B,
  },
  {
    says: 'what a later call had seen after a call of unknown effect',
    steps: [step(A, 'unknown', true), step(B, C, false)],
    now: B,
    state: 'written',
    expected: B,
    target: C,
  },
  {
    says: 'anything else after a call of unknown effect',
    steps: [step(A, B, true), step(B, 'unknown', false)],
    now: C,
    state: 'changed',
    expected: 'unknown',
    target: 'unknown',
  },
  {
    says: 'deleted by the turn and then made again, in doubt',
    steps: [step(A, null, true), step(null, C, false)],
    now: null,
    state: 'written',
    expected: null,
    target: C,
  },
  {
    says: 'gone, though the last acknowledged write left a file',
    steps: [step(A, B, true), step(B, C, false)],
    now: null,
    state: 'deleted',
    expected: C,
    target: C,
  },
];

for (const { says, steps, now, state, expected, target } of CHAINS) {
  test(`several intents on one path: ${says}: ${state}`, async (t) => {
    t.deepEqual(await verdictOfChain(steps, now, read), { state, before: A, expected, target });
  });
}

/** What a program that rewrites a file in place leaves when it dies after `done` bytes, by the way it goes about it. */
function interrupted(
  before: Buffer,
  expected: Buffer,
  how: { done: number; first: 'truncate' | 'resize' | 'keep' },
): Buffer {
  const start =
    how.first === 'truncate'
      ? Buffer.alloc(0)
      : how.first === 'resize' && expected.length < before.length
        ? before.subarray(0, expected.length)
        : before;
  const done = expected.subarray(0, Math.min(how.done, expected.length));
  return Buffer.concat([done, start.subarray(done.length)]);
}

const bytes = fc.uint8Array({ maxLength: 40, min: 97, max: 99 }).map((array): Buffer => Buffer.from(array));
const how = fc.record({
  done: fc.nat(60),
  first: fc.constantFrom('truncate' as const, 'resize' as const, 'keep' as const),
});
const SEED = 20261130;

test('a rewriting in place that dies at any byte is never called foreign, changed or deleted', async (t) => {
  await fc.assert(
    fc.asyncProperty(bytes, bytes, how, async (before, expected, death) => {
      const now = interrupted(before, expected, death);
      const state = await verdict({ before: file(before), expected: file(expected) }, file(now), read);
      return ['untouched', 'written', 'partial'].includes(state);
    }),
    { seed: SEED, numRuns: 3000 },
  );
  t.pass();
});

test('what is called partial is what some death of a rewriting in place leaves', (t) => {
  const leaves = (before: Buffer, expected: Buffer, now: Buffer): boolean =>
    Array.from({ length: expected.length + 1 }, (_, done) => done).some((done) =>
      (['truncate', 'resize', 'keep'] as const).some((first) =>
        interrupted(before, expected, { done, first }).equals(now),
      ),
    );
  fc.assert(
    fc.property(bytes, bytes, bytes, (before, expected, now) => {
      return isCutShort(before, expected, now) === leaves(before, expected, now);
    }),
    { seed: SEED, numRuns: 3000 },
  );
  t.pass();
});

test('large files that differ in their last byte only are told apart', (t) => {
  const before = Buffer.alloc(3_000_001, 1);
  const expected = Buffer.alloc(3_000_001, 2);
  const cut = Buffer.concat([expected.subarray(0, 2_999_999), before.subarray(2_999_999)]);
  t.true(isCutShort(before, expected, cut));
  cut[3_000_000] = 7;
  t.false(isCutShort(before, expected, cut));
});
