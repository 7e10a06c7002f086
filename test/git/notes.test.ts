import { createHash } from 'node:crypto';
import test from 'ava';
import { editNote, readNote } from '../../lib/git/notes.js';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { systemHost } from '../../lib/host.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const REF = 'refs/notes/durable';
const open = (place: Scratch): Promise<Storage> =>
  openStorage(place.dir, { ...systemHost(), env: place.env });

const add = (storage: Storage, about: string, text: string): Promise<boolean> =>
  editNote(storage, { ref: REF, about, message: 'test', edit: (before) => `${before ?? ''}${text}\n` });

/** Ids as commits have them, of things that are not there: git's notes are about any name. */
function ids(count: number, length: number): string[] {
  const algorithm = length === 40 ? 'sha1' : 'sha256';
  return Array.from({ length: count }, (_, at) =>
    createHash(algorithm)
      .update(`note ${String(at)}`)
      .digest('hex'),
  );
}

const shown = (place: Scratch, about: string): string => place.git('notes', `--ref=${REF}`, 'show', about);
const listed = (place: Scratch): string[] =>
  place
    .git('notes', `--ref=${REF}`, 'list')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');

for (const objectFormat of ['sha1', 'sha256'] as const) {
  test(`git shows a note that we wrote, and we read and append to one that git wrote (${objectFormat})`, async (t) => {
    const place = scratch(t, { objectFormat });
    const storage = await open(place);
    const head = place.git('rev-parse', 'HEAD');
    t.is(await readNote(storage, REF, head), null);
    t.true(await add(storage, head, 'ours'));
    t.is(shown(place, head), 'ours');
    place.git('notes', `--ref=${REF}`, 'append', '-m', 'theirs', head);
    t.true(await add(storage, head, 'ours again'));
    t.is(shown(place, head), 'ours\n\ntheirs\nours again');
    t.is(place.git('fsck', '--strict', '--no-dangling'), '');
    await storage.close();
  });
}

test('the same text again writes nothing', async (t) => {
  const place = scratch(t);
  const storage = await open(place);
  const head = place.git('rev-parse', 'HEAD');
  await add(storage, head, 'once');
  const tip = place.git('rev-parse', REF);
  const edit = (text: string | null): string => text ?? 'never';
  t.false(await editNote(storage, { ref: REF, about: head, message: 'test', edit }));
  t.is(place.git('rev-parse', REF), tip);
  await storage.close();
});

for (const objectFormat of ['sha1', 'sha256'] as const) {
  test(`more than 256 notes of ours are fanned out, and git finds each one (${objectFormat})`, async (t) => {
    const place = scratch(t, { objectFormat });
    const storage = await open(place);
    const all = ids(300, objectFormat === 'sha1' ? 40 : 64);
    for (const about of all) await add(storage, about, about.slice(0, 8));
    t.deepEqual(listed(place).sort(), all.toSorted());
    t.true(place.git('ls-tree', REF).split('\n').length <= 256 + 1);
    for (const about of all.slice(0, 5)) t.is(await readNote(storage, REF, about), `${about.slice(0, 8)}\n`);
    t.is(place.git('fsck', '--strict', '--no-dangling'), '');
    await storage.close();
  });
}

test("in a tree that git fanned out a note is found, changed where it is, and git's others stay", async (t) => {
  const place = scratch(t);
  const storage = await open(place);
  const all = ids(800, 40);
  const blob = place.run('git', ['hash-object', '-w', '--stdin'], { input: 'theirs\n' }).stdout.trim();
  const flat = all.map((id) => `100644 blob ${blob}\t${id}\n`).join('');
  const tree = place.run('git', ['mktree'], { input: flat }).stdout.trim();
  place.git('update-ref', REF, place.git('commit-tree', '-m', 'flat', tree));
  // Whatever git writes next, it writes fanned out.
  place.git('notes', `--ref=${REF}`, 'add', '-m', 'on a commit', 'HEAD');
  t.regex(place.git('ls-tree', REF), /^040000 tree [0-9a-f]{40}\t[0-9a-f]{2}$/m);
  place.git('pack-refs', '--all');
  place.git('gc', '-q');
  const [known = '', gone = ''] = all;
  const fresh = createHash('sha1').update('fresh').digest('hex');
  t.is(await readNote(storage, REF, known), 'theirs\n');
  await add(storage, known, 'ours');
  await add(storage, fresh, 'new');
  t.is(shown(place, known), 'theirs\nours');
  t.is(shown(place, fresh), 'new');
  t.deepEqual(listed(place).sort(), [...all, fresh, place.git('rev-parse', 'HEAD')].sort());
  place.git('notes', `--ref=${REF}`, 'remove', gone);
  t.is(await readNote(storage, REF, gone), null);
  t.is(await readNote(storage, REF, known), 'theirs\nours\n');
  await storage.close();
});

test('what is no note in the tree stays', async (t) => {
  const place = scratch(t);
  const storage = await open(place);
  const blob = place.run('git', ['hash-object', '-w', '--stdin'], { input: 'x' }).stdout.trim();
  const tree = place
    .run('git', ['mktree'], { input: `100644 blob ${blob}\tREADME of the notes\n` })
    .stdout.trim();
  place.git('update-ref', REF, place.git('commit-tree', '-m', 'made by hand', tree));
  const head = place.git('rev-parse', 'HEAD');
  await add(storage, head, 'ours');
  t.regex(place.git('ls-tree', REF), /\tREADME of the notes/);
  t.is(shown(place, head), 'ours');
  await storage.close();
});

test('of several writers at once none loses its note', async (t) => {
  const place = scratch(t);
  const head = place.git('rev-parse', 'HEAD');
  const storages = await Promise.all(Array.from({ length: 4 }, () => open(place)));
  await Promise.all(
    storages.flatMap((storage, at) => [1, 2, 3].map((n) => add(storage, head, `${String(at)} ${String(n)}`))),
  );
  t.is(shown(place, head).split('\n').length, 12);
  t.is(new Set(shown(place, head).split('\n')).size, 12);
  await Promise.all(storages.map((storage) => storage.close()));
});
