import { lstatSync, mkdirSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { RecoverReport } from '../../lib/recovery/document.js';
import { document } from '../helpers/events.js';
import { interruptedRun } from '../helpers/interrupted-run.js';
import { differences, listing } from '../helpers/listing.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const tree = (place: Scratch): string[] => listing(place.dir, ['.git']);
const images = (place: Scratch): Record<string, readonly [state: string, now: string | null]> => {
  const [turn] = document<RecoverReport>(place, ['recover'], { codes: [3] }).interrupted;
  return Object.fromEntries(turn?.files.map(({ path, state, now }) => [path, [state, now]]) ?? []);
};
const undone = (place: Scratch, rolled: string): number | null => {
  const [, checkpoint = ''] = /^undo: git durable restore ([0-9a-f]+)$/m.exec(rolled) ?? [];
  return durable(place, ['restore', checkpoint]).code;
};

function folders(place: Scratch): void {
  place.write('folder/one', 'one\n');
  place.write('folder/two', 'two\n');
  place.write('other/one', 'of the other folder\n');
  place.git('add', '-A');
  place.git('commit', '-q', '-m', 'two folders');
}

test('what lies beyond a link that the turn put in place of a folder is not there, and rolling back takes the link away and brings the folder back', async (t) => {
  const place = scratch(t);
  folders(place);
  const before = tree(place);
  await interruptedRun(t, place, 'mv folder ../away; ln -s other folder; echo new > new');
  const left = tree(place);
  const seen = images(place);
  t.deepEqual(
    [seen['folder/one'], seen['folder/two']],
    [
      ['changed', null],
      ['changed', null],
    ],
  );
  t.is(seen['folder']?.[0], 'changed');
  t.regex(
    durable(place, ['recover']).stdout,
    /^ {2}changed +folder\/one +beyond the symbolic link 'folder'$/m,
  );
  const rolled = durable(place, ['recover', '--roll-back']);
  t.is(rolled.code, 0, rolled.stderr);
  t.deepEqual(differences(before, tree(place)), []);
  t.is(place.git('status', '--porcelain'), '');
  t.deepEqual(document(place, ['conflicts']), { open: [], resolved: [] });
  t.is(undone(place, rolled.stdout), 0);
  t.deepEqual(differences(left, tree(place)), []);
});

test('rolling back puts a link back where the turn made a folder of it, and its undo the folder', async (t) => {
  const place = scratch(t);
  folders(place);
  symlinkSync('other', join(place.dir, 'link'));
  place.git('add', '-A');
  const before = tree(place);
  await interruptedRun(t, place, 'rm link; mkdir link; echo mine > link/one; echo more > link/more');
  const left = tree(place);
  const rolled = durable(place, ['recover', '--roll-back']);
  t.is(rolled.code, 0, rolled.stderr);
  t.deepEqual(differences(before, tree(place)), []);
  t.is(undone(place, rolled.stdout), 0);
  t.deepEqual(differences(left, tree(place)), []);
});

test("a link that somebody put in a folder's place after the turn had died stays, nothing is written through it, and what it hides is named", async (t) => {
  const place = scratch(t);
  folders(place);
  await interruptedRun(t, place, 'echo changed > folder/one; mkdir folder/sub; echo new > folder/sub/new');
  renameSync(join(place.dir, 'folder'), join(place.top, 'away'));
  symlinkSync('other', join(place.dir, 'folder'));
  // A folder to prune by the name it had: beyond the link it is another one.
  mkdirSync(join(place.dir, 'other/sub'));
  const before = tree(place);
  const rolled = durable(place, ['recover', '--roll-back']);
  t.is(rolled.code, 0, rolled.stderr);
  t.regex(rolled.stderr, /^git-durable: kept 'folder\/one': /m);
  t.deepEqual(differences(before, tree(place)), []);
  t.is(readlinkSync(join(place.dir, 'folder')), 'other');
  t.deepEqual(document(place, ['conflicts']), { open: [], resolved: [] });
});

test('a link that leads nowhere, in a circle or out of the work tree hides a folder as any other does', async (t) => {
  for (const target of ['nowhere', 'folder', '../away']) {
    const place = scratch(t);
    folders(place);
    const before = tree(place);
    await interruptedRun(t, place, `mv folder ../away; ln -s ${target} folder`);
    t.deepEqual(images(place)['folder/two'], ['changed', null], target);
    const away = listing(join(place.top, 'away'));
    t.is(durable(place, ['recover', '--roll-back']).code, 0, target);
    t.deepEqual(differences(before, tree(place)), [], target);
    t.true(lstatSync(join(place.dir, 'folder')).isDirectory());
    t.deepEqual(listing(join(place.top, 'away')), away);
    rmSync(join(place.top, 'away'), { recursive: true });
  }
});
