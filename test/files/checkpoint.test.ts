import {
  chmodSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import test from 'ava';
import { checkpointPlace, gitDirDigest, settle } from '../helpers/checkpoint-place.js';

test('a checkpoint holds every byte of every file that is tracked or not ignored, and nothing else', async (t) => {
  const place = await checkpointPlace(t);
  place.write('.gitignore', 'out/\n');
  place.write('out/ignored', 'no\n');
  place.write('new file', 'untracked\n');
  place.write('sub/run.sh', '#!/bin/sh\n', 0o755);
  place.write('empty', '');
  symlinkSync('nowhere', join(place.dir, 'dangling'));
  const taken = await place.checkpoint();
  t.is(
    place.git('ls-tree', '-r', '--format=%(objectmode) %(path)', `${taken.checkpoint}:worktree`),
    [
      '100644 .gitignore',
      '100644 README',
      '120000 dangling',
      '100644 empty',
      '100644 new file',
      '100755 sub/run.sh',
    ].join('\n'),
  );
  t.is(place.git('show', `${taken.checkpoint}:worktree/new file`), 'untracked');
  t.is(taken.files, 6);
  t.is(taken.changed, 6);
  t.deepEqual(taken.skipped, []);
  t.is(place.run('git', ['fsck', '--strict', '--full']).code, 0);
});

test('the next checkpoint sees each edit, addition, removal, exec bit and change of kind', async (t) => {
  const place = await checkpointPlace(t);
  place.write('edited', 'one\n');
  place.write('removed', 'one\n');
  place.write('tool', 'one\n');
  place.write('kind', 'one\n');
  place.write('folder/in it', 'one\n');
  await place.checkpoint();
  place.write('edited', 'two\n');
  unlinkSync(join(place.dir, 'removed'));
  chmodSync(join(place.dir, 'tool'), 0o755);
  unlinkSync(join(place.dir, 'kind'));
  symlinkSync('edited', join(place.dir, 'kind'));
  rmSync(join(place.dir, 'folder'), { recursive: true });
  place.write('folder', 'a file now\n');
  place.write('added', 'one\n');
  const taken = await place.checkpoint();
  t.is(
    place.git('ls-tree', '-r', '--format=%(objectmode) %(path)', taken.tree),
    ['100644 README', '100644 added', '100644 edited', '100644 folder', '120000 kind', '100755 tool'].join(
      '\n',
    ),
  );
  t.is(taken.files, 6);
  t.is(taken.changed, 7);
  rmSync(join(place.dir, 'folder'));
  mkdirSync(join(place.dir, 'folder'));
  renameSync(join(place.dir, 'added'), join(place.dir, 'folder/added'));
  const third = await place.checkpoint();
  t.is(place.git('ls-tree', '-r', '--name-only', third.tree), 'README\nedited\nfolder/added\nkind\ntool');
  t.is(third.files, 5);
});

test('a checkpoint of an unchanged tree has the same tree, and writes no pack', async (t) => {
  const place = await checkpointPlace(t);
  place.write('a', 'one\n');
  const first = await place.checkpoint();
  const packs = place.run('ls', ['.git/objects/pack']).stdout;
  const second = await place.checkpoint();
  t.is(second.tree, first.tree);
  t.is(second.changed, 0);
  t.not(second.checkpoint, first.checkpoint);
  t.is(place.run('ls', ['.git/objects/pack']).stdout, packs);
});

test("the user's index, HEAD, refs, stash and reflogs are byte for byte the same afterwards", async (t) => {
  const place = await checkpointPlace(t);
  place.write('README', 'stashed\n');
  place.git('stash');
  place.write('README', 'staged\n');
  place.git('add', 'README');
  place.write('README', 'changed\n');
  place.git('update-ref', 'ORIG_HEAD', 'HEAD');
  const before = gitDirDigest(join(place.dir, '.git'));
  const taken = await place.checkpoint();
  place.write('README', 'changed again\n');
  await place.checkpoint();
  await place.restore(taken.checkpoint);
  t.deepEqual(gitDirDigest(join(place.dir, '.git')), before);
  t.is(place.git('status', '--short'), 'MM README');
});

for (const settled of [true, false]) {
  const when = settled ? 'a moment after' : 'right after';
  test(`an edit of the same size in the same second, ${when} a checkpoint, is in the next one`, async (t) => {
    const place = await checkpointPlace(t);
    for (let round = 0; round < 12; round += 1) {
      writeFileSync(join(place.dir, 'README'), `round ${String(round % 10)}\n`);
      if (settled) await settle();
      const taken = await place.checkpoint();
      t.is(place.git('show', `${taken.tree}:README`), `round ${String(round % 10)}`);
    }
  });
}

/** What is done with its bytes: a few files are read by us, many by git; `others` change beside the one that is watched. */
const WAYS = [
  { way: 'one of a few', others: 0, afterReading: 'snapshot.add:spawn:before' },
  { way: 'one of many', others: 250, afterReading: 'snapshot.tree:spawn:before' },
] as const;

for (const { way, others, afterReading } of WAYS) {
  test(`an edit while a checkpoint is taken is in the next one, though size and second are those that were read: ${way}`, async (t) => {
    let meanwhile = (): void => undefined;
    const faults = {
      hit: (point: string) => {
        if (point === afterReading) meanwhile();
      },
    };
    const place = await checkpointPlace(t, { host: { faults } });
    const file = join(place.dir, 'README');
    const second = (): number => Math.floor(statSync(file).mtimeMs / 1000);
    let hits = 0;
    for (let tries = 0; tries < 20 && hits < 2; tries += 1) {
      await pause(1000 - (Date.now() % 1000));
      for (let other = 0; other < others; other += 1)
        writeFileSync(join(place.dir, `other ${String(other)}`), `${String(tries)}\n`);
      writeFileSync(file, `${String(tries % 10)} read\n`);
      await settle();
      const read = second();
      meanwhile = () => {
        meanwhile = () => undefined;
        writeFileSync(file, `${String(tries % 10)} late\n`);
        // The index is written in the next second, as at the end of a long snapshot.
        while (second() === read && Date.now() < (read + 1) * 1000 + 20);
      };
      await place.checkpoint();
      if (second() === read) hits += 1;
      const next = await place.checkpoint();
      t.is(place.git('show', `${next.tree}:README`), `${String(tries % 10)} late`);
    }
    t.is(hits, 2, 'the machine was too slow to try it within a second');
  });
}
