import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import {
  classify,
  foldRecord,
  invocationStates,
  mustBeKnown,
  storiesOf,
  verdictOf,
  type Intended,
} from '../../../cli/drill/expectation.js';
import { readRecord, Recorder, type Line } from '../../../cli/drill/record.js';
import { blobId, difference, leaf, readTree, sha256, type Leaf, type Tree } from '../../../cli/drill/tree.js';
import { scratch } from '../../helpers/scratch.js';

const file = (text: string, mode: Leaf['mode'] = '100644'): Leaf => leaf(mode, Buffer.from(text));

const CASES: readonly [string, Leaf | undefined, Leaf | undefined | 'unknown', Leaf | undefined, string][] = [
  ['the old bytes', file('old'), file('new!'), file('old'), 'untouched'],
  ['still no file', undefined, file('new'), undefined, 'untouched'],
  ['the intended bytes', file('old'), file('new!'), file('new!'), 'written'],
  ['an intended deletion that is done', file('old'), undefined, undefined, 'written'],
  ['a prefix of the intended bytes', file('old text'), file('new text'), file('new t'), 'partial'],
  ['an emptied file', file('old text'), file('new text'), file(''), 'partial'],
  ['a new file cut short', undefined, file('new text'), file('new'), 'partial'],
  [
    'new bytes, then the old ones in their places',
    file('aaaa bbbb'),
    file('cccc dddd'),
    file('ccaa bbbb'),
    'partial',
  ],
  ['a longer old end that was not cut off yet', file('aaaa bbbb'), file('cc'), file('ccaa bbbb'), 'partial'],
  ['no file where both sides have one', file('old'), file('new'), undefined, 'deleted'],
  ['bytes that nobody intended', file('old'), file('new'), file('other'), 'foreign'],
  ['old bytes with a new end', file('old text'), file('new text'), file('old more'), 'foreign'],
  ['the intended bytes and more', file('old'), file('new'), file('new and more'), 'foreign'],
  ['the old bytes in another mode', file('old'), file('new'), file('old', '100755'), 'foreign'],
  ['a changed file where nothing could be told', file('old'), 'unknown', file('other'), 'changed'],
  ['the old bytes where nothing could be told', file('old'), 'unknown', file('old'), 'untouched'],
];

for (const [what, before, expected, now, state] of CASES) {
  test(`${what}: ${state}`, (t) => {
    t.is(classify(before, expected, now), state as ReturnType<typeof classify>);
  });
}

const line = (phase: Line['phase'], more: Partial<Line> = {}): Line => ({
  act: 1,
  kind: 'transaction',
  phase,
  detail: 'one',
  ...more,
});

const intentions = (before: Tree): Line['paths'] =>
  ['a', 'b'].map((path) => ({
    path,
    before: before.get(path)?.sha256 ?? null,
    after: sha256(Buffer.from('new')),
    mode: '100644' as const,
    bytes: Buffer.from('new').toString('base64'),
  }));

const BEFORE: Tree = new Map([
  ['a', file('old a')],
  ['b', file('old b')],
]);

function certain(lines: readonly Line[], killed: Tree): number[] {
  const acts = foldRecord(lines);
  return [...mustBeKnown(storiesOf(acts, { before: BEFORE, killed, now: killed }), acts, killed)];
}

test('an act that was only announced may be unknown while no byte has changed', (t) => {
  t.deepEqual(certain([line('before', { paths: intentions(BEFORE) })], BEFORE), []);
});

test('one changed byte of an announced act makes it known', (t) => {
  const killed: Tree = new Map([...BEFORE, ['b', file('new')]]);
  t.deepEqual(certain([line('before', { paths: intentions(BEFORE) })], killed), [1]);
});

test('a receipt makes an act known, whatever is on disk', (t) => {
  t.deepEqual(certain([line('before', { paths: intentions(BEFORE) }), line('after')], BEFORE), [1]);
});

/** Path a: 'old a', then act 1 to 'new', then act 2 to 'newest'; act 2 has come as far as `phases`. */
function twice(now: string, ...phases: Line['phase'][]): string {
  const newest = {
    path: 'a',
    before: sha256(Buffer.from('new')),
    after: sha256(Buffer.from('newest')),
    mode: '100644' as const,
    bytes: Buffer.from('newest').toString('base64'),
  };
  const second = phases.map((phase) => line(phase, { act: 2, kind: 'again', paths: [newest] }));
  const acts = foldRecord([line('before', { paths: intentions(BEFORE) }), line('after'), ...second]);
  const tree: Tree = new Map([...BEFORE, ['a', file(now)]]);
  const [story] = storiesOf(acts, { before: BEFORE, killed: tree, now: tree });
  const verdict = story === undefined ? undefined : verdictOf(story, new Set([1, 2]));
  const text = (one: Intended | undefined): string =>
    typeof one === 'object' ? one.bytes.toString() : String(one);
  return `${verdict?.state ?? ''}, by '${text(verdict?.expected)}', towards '${text(verdict?.target)}'`;
}

test('a path that two acts are about is judged by the one whose bytes it holds', (t) => {
  t.is(twice('new', 'before', 'entered'), "written, by 'new', towards 'newest'");
  t.is(twice('newe', 'before', 'entered', 'piece'), "partial, by 'newest', towards 'newest'");
  t.is(twice('newest', 'before', 'entered', 'piece'), "written, by 'newest', towards 'newest'");
  t.is(twice('old a', 'before', 'entered'), "untouched, by 'newest', towards 'newest'");
});

test('bytes that nobody intended are foreign after two acts too', (t) => {
  t.is(twice('other', 'before', 'entered', 'wrote', 'after'), "foreign, by 'newest', towards 'newest'");
});

test('an agent that found other bytes than the drill had put there stops the round', (t) => {
  const acts = foldRecord([line('before', { paths: intentions(new Map([['a', file('else')]])) })]);
  t.throws(() => storiesOf(acts, { before: BEFORE, killed: BEFORE, now: BEFORE }), {
    message: /found other bytes/,
  });
});

test('a call is in doubt from its entry to its receipt, and may be either in between', (t) => {
  const states = (...phases: Line['phase'][]): readonly string[] | undefined => {
    const [act] = foldRecord(phases.map((phase) => line(phase, { kind: 'rewrite' })));
    return act === undefined ? undefined : invocationStates(act);
  };
  t.deepEqual(states('before'), ['absent', 'not-started', 'in-doubt']);
  t.deepEqual(states('before', 'entered', 'piece'), ['in-doubt']);
  t.deepEqual(states('before', 'entered', 'wrote'), ['in-doubt', 'finished']);
  t.deepEqual(states('before', 'entered', 'wrote', 'after'), ['finished']);
});

test('a line that a kill tore is not read', (t) => {
  const { top } = scratch(t, { repository: false });
  const path = join(top, 'record');
  let told = 0;
  const recorder = new Recorder(path, () => {
    told += 1;
  });
  recorder.add(line('before'));
  recorder.add(line('after'));
  appendFileSync(path, '{"act":2,"kind":"re');
  t.deepEqual(readRecord(path), [line('before'), line('after')]);
  t.is(told, 2);
});

test('the tree and its digests are what sha256sum and git say', (t) => {
  const { dir, run, git, write } = scratch(t);
  write('ignored/ü b.bin', Buffer.from([0, 255, 13, 10]), 0o755);
  write('.gitignore', 'ignored\n');
  const tree = readTree(dir);
  t.deepEqual([...tree.keys()].sort(), ['.gitignore', 'README', 'ignored/ü b.bin']);
  const one = tree.get('ignored/ü b.bin');
  t.is(one?.mode, '100755');
  t.is(one?.sha256, run('sha256sum', ['ignored/ü b.bin']).stdout.split(' ')[0]?.replace('\\', ''));
  t.is(blobId('sha1', readFileSync(join(dir, 'README'))), git('rev-parse', 'HEAD:README'));
  const other = scratch(t, { objectFormat: 'sha256' });
  t.is(blobId('sha256', readFileSync(join(other.dir, 'README'))), other.git('rev-parse', 'HEAD:README'));
});

test('trees differ where bytes, mode or presence differ', (t) => {
  const a: Tree = new Map([
    ['same', file('1')],
    ['bytes', file('1')],
    ['mode', file('1')],
    ['gone', file('1')],
  ]);
  const b: Tree = new Map([
    ['same', file('1')],
    ['bytes', file('2')],
    ['mode', file('1', '100755')],
    ['new', file('1')],
  ]);
  t.deepEqual(difference(a, b), ['bytes', 'gone', 'mode', 'new']);
});

test('no module that judges imports anything of the product', (t) => {
  const judging = [
    'aftermath',
    'answers',
    'chance',
    'contested',
    'ending',
    'expectation',
    'judge',
    'kill',
    'plant',
    'processes',
    'record',
    'round',
    'scratch',
    'script',
    'successor',
    'tree',
    'wording',
  ];
  const folder = new URL('../../../../cli/drill/', import.meta.url);
  const found = judging.filter((name) =>
    /from '[^']*(?:\/lib\/|\.\.\/)/.test(readFileSync(new URL(`${name}.ts`, folder), 'utf8')),
  );
  t.deepEqual(found, []);
});
