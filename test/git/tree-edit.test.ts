import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { decodePath, encodePath } from '../../lib/git/path.js';
import { parseComparison } from '../../lib/git/tree-changes.js';
import { editTree, type TreeEdit } from '../../lib/git/tree-edit.js';
import { seedOf } from '../helpers/random.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { openRepository } from '../helpers/turn.js';

/** latin1; files that are folders of others, and every order in which git's bytes and a folder's slash can be got wrong. */
const PATHS = [
  ...['a', 'a.b', 'a/b', 'a/b/c', 'a/c', 'a-b', 'a0', 'ab', 'deep/er/and/deeper', 'deep/er/file', 'deep.er'],
  ...['d\xc3\xa9', 'not utf8 \xff/x', 'not utf8 \xff.', 'new\nline/x', 'z'],
].map((path) => decodePath(Buffer.from(path, 'latin1')));

const MODES = ['100644', '100755', '120000'] as const;

/** A private index of the same repository: git's own answer. */
function byGit(
  place: Scratch,
  from: string,
  edits: readonly TreeEdit[],
): { tree: string; differences: Buffer } {
  const env = { ...place.env, GIT_INDEX_FILE: join(place.top, 'private') };
  const none = '0'.repeat(from.length);
  const ordered = [...edits].sort((a, b) => Number(a.image !== null) - Number(b.image !== null));
  const lines = ordered.map(({ path, image }) =>
    Buffer.concat([
      Buffer.from(`${image?.mode ?? '0'} ${image?.oid ?? none}\t`),
      encodePath(path),
      Buffer.of(0),
    ]),
  );
  place.run('git', ['read-tree', from], { env });
  place.run('git', ['update-index', '-z', '--add', '--replace', '--index-info'], {
    env,
    input: Buffer.concat(lines),
  });
  const tree = place.run('git', ['write-tree'], { env }).stdout.trim();
  const told = ['diff-tree', '-r', '-t', '--raw', '-z', '--no-renames', from, tree];
  return { tree, differences: spawnSync('git', told, { cwd: place.dir, env }).stdout };
}

for (const objectFormat of ['sha1', 'sha256'] as const) {
  test(`a tree made by edits is the one that git writes from an index, and differs in what git says: ${objectFormat}`, async (t) => {
    const place = scratch(t, { objectFormat });
    const storage = await openRepository(t, place);
    const blobs = ['one', 'two', 'three'].map((input) =>
      place.run('git', ['hash-object', '-w', '--stdin'], { input }).stdout.trim(),
    );
    const image = fc.record({ mode: fc.constantFrom(...MODES), oid: fc.constantFrom(...blobs) });
    const edit = fc.record({ path: fc.constantFrom(...PATHS), image: fc.option(image) });
    const edits = fc.uniqueArray(edit, { selector: ({ path }) => path, maxLength: 8 });
    const empty = place.run('git', ['mktree'], { input: '' }).stdout.trim();
    let [made, refused] = [0, 0];
    const rounds = fc.asyncProperty(fc.array(edits, { minLength: 1, maxLength: 4 }), async (steps) => {
      let from = empty;
      for (const step of steps) {
        const expected = byGit(place, from, step);
        const edited = await editTree(storage, from, step);
        if (edited === null) refused += 1;
        else {
          made += 1;
          t.is(edited.tree, expected.tree);
          const { changes, objects } = parseComparison(expected.differences);
          t.deepEqual(edited.comparison.changes, changes);
          t.deepEqual([...edited.comparison.objects].sort(), [...objects].sort());
          for (const [oid, body] of edited.made) {
            const hashed = place.run('git', ['hash-object', '-t', 'tree', '--stdin'], { input: body });
            t.is(hashed.stdout.trim(), oid, hashed.stderr);
          }
        }
        from = expected.tree;
      }
    });
    await fc.assert(rounds, { seed: seedOf(process.env), numRuns: 25 });
    t.true(made > 10 && refused > 0, `${String(made)} made, ${String(refused)} left to the index`);
  });
}

test("a file that takes a folder's place, or a folder a file's, is left to the index", async (t) => {
  const place = scratch(t);
  const storage = await openRepository(t, place);
  place.write('folder/file', '1');
  place.write('file', '1');
  place.git('add', '-A');
  const tree = place.git('write-tree');
  const image = { mode: '100644', oid: place.git('hash-object', 'file') } as const;
  t.is(await editTree(storage, tree, [{ path: 'folder', image }]), null);
  t.is(await editTree(storage, tree, [{ path: 'file/below', image }]), null);
  t.is(
    await editTree(storage, tree, [
      { path: 'file', image },
      { path: 'file/below', image },
    ]),
    null,
  );
});

test('a tree that is not there any more is left to the index', async (t) => {
  const place = scratch(t);
  const storage = await openRepository(t, place);
  t.is(await editTree(storage, '1'.repeat(40), [{ path: 'a', image: null }]), null);
});
