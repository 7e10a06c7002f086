import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { classify, foldRecord, invocationStates, whatHappened } from '../../../cli/drill/expectation.js';
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

test('an act that was only announced may be unknown while no byte has changed', (t) => {
  const acts = foldRecord([line('before', { paths: intentions(BEFORE) })]);
  const happened = whatHappened(acts, { before: BEFORE, killed: BEFORE, now: BEFORE });
  t.deepEqual(
    happened.map((one) => one.mustBeKnown),
    [false, false],
  );
});

test('one changed byte of an announced act makes every path of it known', (t) => {
  const acts = foldRecord([line('before', { paths: intentions(BEFORE) })]);
  const killed: Tree = new Map([...BEFORE, ['b', file('new')]]);
  const happened = whatHappened(acts, { before: BEFORE, killed, now: killed });
  t.deepEqual(
    happened.map((one) => [one.mustBeKnown, one.state]),
    [
      [true, 'untouched'],
      [true, 'written'],
    ],
  );
});

test('bytes planted after the kill are no proof that the product knew', (t) => {
  const acts = foldRecord([line('before', { paths: intentions(BEFORE) })]);
  const now: Tree = new Map([...BEFORE, ['b', file('planted')]]);
  const happened = whatHappened(acts, { before: BEFORE, killed: BEFORE, now });
  t.deepEqual(
    happened.map((one) => one.mustBeKnown),
    [false, false],
  );
});

test('an agent that found other bytes than the drill had put there stops the round', (t) => {
  const acts = foldRecord([line('before', { paths: intentions(new Map([['a', file('else')]])) })]);
  t.throws(() => whatHappened(acts, { before: BEFORE, killed: BEFORE, now: BEFORE }), {
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
    'expectation',
    'judge',
    'plant',
    'processes',
    'record',
    'round',
    'scratch',
    'script',
    'tree',
    'wording',
  ];
  const folder = new URL('../../../../cli/drill/', import.meta.url);
  const found = judging.filter((name) =>
    /from '[^']*(?:\/lib\/|\.\.\/)/.test(readFileSync(new URL(`${name}.ts`, folder), 'utf8')),
  );
  t.deepEqual(found, []);
});
