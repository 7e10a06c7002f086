import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import test from 'ava';
import { hasCode } from '../../lib/errors.js';
import {
  commitBody,
  decodeLoose,
  encodeLoose,
  hashObject,
  parseCommit,
  treeBody,
} from '../../lib/git/objects-format.js';
import { seedOf } from '../helpers/random.js';
import { scratch } from '../helpers/scratch.js';

const TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';
const at = new Date(1_700_000_000_999);

test('a commit body reads back as it was written', (t) => {
  for (const parents of [[], [TREE], [TREE, 'a'.repeat(64)]]) {
    for (const message of ['subject', 'subject\n', 'é\n\ntree x\nparent y\n', '\n\n']) {
      const parsed = parseCommit(commitBody({ tree: TREE, parents, message, at }));
      t.deepEqual(parsed, {
        tree: TREE,
        parents,
        message: message.endsWith('\n') ? message : `${message}\n`,
      });
    }
  }
});

test('commits of others are read: signatures, encodings and merge tags stand between parents and message', (t) => {
  const body = [
    `tree ${TREE}`,
    `parent ${TREE}`,
    'author A <a@b> 1 +0000',
    'committer A <a@b> 1 +0000',
    'encoding ISO-8859-1',
    'gpgsig -----BEGIN',
    ' parent 1',
    ' ',
    ' -----END',
    '',
    'message',
  ].join('\n');
  t.deepEqual(parseCommit(Buffer.from(body)), { tree: TREE, parents: [TREE], message: 'message' });
});

test('what is no commit is refused', (t) => {
  for (const body of ['', 'tree x\n\nmessage', `tree ${TREE}\n`, `tree ${TREE}`, 'hello\n\nworld']) {
    t.true(
      hasCode(
        t.throws(() => parseCommit(Buffer.from(body))),
        'event-invalid',
      ),
      body,
    );
  }
});

test('a tree is what git mktree makes of the same entries, folders sorted as if they ended in a slash', (t) => {
  const place = scratch(t);
  const blob = place.git('rev-parse', 'HEAD:README');
  const tree = place.git('rev-parse', 'HEAD^{tree}');
  const entries = ['a', 'a.b', 'a0', 'a-', 'é', 'B', 'ab', 'z z'].flatMap((name) => [
    { mode: '100644', name, oid: blob },
    { mode: '040000', name: `${name}~`, oid: tree },
    { mode: '100755', name: `${name}~.x`, oid: blob },
  ]);
  const input = entries.map(
    ({ mode, name, oid }) => `${mode} ${mode === '040000' ? 'tree' : 'blob'} ${oid}\t${name}\0`,
  );
  const made = spawnSync('git', ['mktree', '-z'], { cwd: place.dir, input: input.join('') });
  t.is(made.stdout.toString().trim(), hashObject('sha1', 'tree', treeBody(entries)));
  t.is(hashObject('sha1', 'tree', treeBody([])), TREE);
});

test('any bytes survive the loose encoding, and any cut or flipped bit of it is noticed', (t) => {
  const seed = seedOf(process.env);
  t.log(`seed ${String(seed)}`);
  const property = fc.property(fc.uint8Array({ maxLength: 2000 }), fc.nat(), (bytes, where) => {
    const body = Buffer.from(bytes);
    const oid = hashObject('sha256', 'blob', body);
    const loose = encodeLoose('blob', body);
    t.deepEqual(decodeLoose('sha256', oid, loose), { type: 'blob', body });
    t.is(decodeLoose('sha256', oid, loose.subarray(0, where % loose.length)), null);
    const flipped = Buffer.from(loose);
    flipped[2 + (where % (loose.length - 2))] = (loose[2 + (where % (loose.length - 2))] ?? 0) ^ 1;
    const decoded = decodeLoose('sha256', oid, flipped);
    // Bits after the end of the last deflate block pad a byte and carry nothing.
    if (decoded !== null) t.deepEqual(decoded.body, body);
  });
  fc.assert(property, { seed, numRuns: 300 });
});
