/** Where `git status` and the report of a turn do not agree. */
import { chmodSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { readFolder, writeFolder } from '../helpers/folder-copy.js';
import { openAs } from '../helpers/lease-place.js';
import { edit, only } from '../helpers/reported.js';
import { bytes } from '../helpers/recording.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { openTurn } from '../helpers/turn-place.js';

const DRIFTS: readonly { says: string; plant: (place: Scratch) => void; drift: string[] }[] = [
  { says: 'nothing', plant: () => undefined, drift: [] },
  {
    says: 'an edit of an unreported file',
    plant: (place) => {
      place.write('other', 'edited\n');
    },
    drift: ['other'],
  },
  {
    says: 'a new file',
    plant: (place) => {
      place.write('new file', 'x');
    },
    drift: ['new file'],
  },
  {
    says: 'a deleted unreported file',
    plant: (place) => {
      rmSync(join(place.dir, 'other'));
    },
    drift: ['other'],
  },
  {
    says: 'a file that was dirty before and is clean now',
    plant: (place) => {
      place.git('checkout', '--', 'dirty');
    },
    drift: ['dirty'],
  },
  {
    says: 'another edit of a file that was dirty before',
    plant: (place) => {
      place.write('dirty', 'again\n');
    },
    drift: [],
  },
  {
    says: 'an edit of a reported file',
    plant: (place) => {
      place.write('touched', 'typed over\n');
    },
    drift: [],
  },
  {
    says: 'a reported file staged',
    plant: (place) => {
      place.git('add', 'touched');
    },
    drift: [],
  },
  {
    says: 'a reported file put back as in HEAD',
    plant: (place) => {
      place.git('checkout', '--', 'touched');
    },
    drift: [],
  },
  {
    says: 'a reported file committed',
    plant: (place) => {
      place.git('commit', '-q', '-m', 'x', '--', 'touched');
    },
    drift: [],
  },
  {
    says: 'a reported file as in HEAD taken out of the index',
    plant: (place) => {
      place.git('checkout', '--', 'touched');
      place.git('rm', '-q', '--cached', 'touched');
    },
    drift: ['touched'],
  },
  {
    says: 'a file that was dirty before committed',
    plant: (place) => {
      place.git('commit', '-q', '-m', 'x', '--', 'dirty');
    },
    drift: ['dirty'],
  },
  {
    says: 'an unreported rename',
    plant: (place) => {
      place.git('mv', 'other', 'elsewhere');
    },
    drift: ['elsewhere', 'other'],
  },
];

test('drift names the paths on which git status and the report disagree', async (t) => {
  const place = scratch(t);
  for (const name of ['touched', 'other', 'dirty', 'staged']) place.write(name, `${name}\n`);
  place.write('.gitignore', 'ignored\n');
  place.git('add', '-A');
  place.git('commit', '-q', '-m', 'files');
  place.write('dirty', 'dirty\nmore\n');
  place.write('staged', 'staged\nmore\n');
  place.git('add', 'staged');
  place.write('untracked', 'u\n');
  const turn = await openTurn(await openAs(t, place), { dead: true });
  await edit(turn, place, 'touched', 'after\n');
  await edit(turn, place, 'made', 'after\n');
  await edit(turn, place, 'ignored', 'after\n');
  await edit(turn, place, 'staged', 'staged\n');
  await edit(turn, place, 'untracked', '');
  rmSync(join(place.dir, 'untracked'));
  const root = bytes(realpathSync(place.dir));
  const before = readFolder(root);
  for (const { says, plant, drift } of DRIFTS) {
    writeFolder(root, before);
    plant(place);
    const report = await only(await openAs(t, place));
    t.deepEqual([report.drift, report.gitStatusMatches], [drift, drift.length === 0], says);
  }
});

test('a file is compared with HEAD as git would store it', async (t) => {
  const place = scratch(t);
  place.git('config', 'filter.shout.clean', 'tr a-z A-Z');
  place.git('config', 'filter.shout.smudge', 'tr A-Z a-z');
  place.write('.gitattributes', '*.txt text eol=crlf\n*.up filter=shout\nold.crlf -text\n');
  place.write('lines.txt', 'one\r\ntwo\r\n');
  place.write('word.up', 'word\n');
  place.write('tool', 'x');
  place.write('odd "name"\n\\é', 'x\n');
  place.write('hidden', 'x\n');
  place.git('add', '-A');
  place.git('commit', '-q', '-m', 'files');
  place.git('update-index', '--assume-unchanged', 'hidden');
  const turn = await openTurn(await openAs(t, place), { dead: true });
  for (const name of ['lines.txt', 'word.up', 'odd "name"\n\\é']) {
    const content = readFileSync(join(place.dir, name), 'utf8');
    await edit(turn, place, name, 'something else\n');
    await edit(turn, place, name, content);
  }
  await edit(turn, place, 'hidden', 'not looked at\n');
  place.write('lines.txt', 'one\ntwo\n');
  await edit(turn, place, 'lines.txt', 'one\ntwo\n');
  const report = await only(await openAs(t, place));
  t.deepEqual(report.drift, []);
  chmodSync(join(place.dir, 'tool'), 0o755);
  t.deepEqual((await only(await openAs(t, place))).drift, ['tool']);
});
