import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { Unchanged } from '../../lib/git/unchanged.js';
import { systemHost } from '../../lib/host.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

async function opened(
  t: ExecutionContext,
  place: Scratch,
): Promise<{ storage: Storage; unchanged: Unchanged }> {
  const storage = await openStorage(place.dir, { ...systemHost(), env: place.env });
  t.teardown(() => storage.close());
  return { storage, unchanged: new Unchanged(storage) };
}

test('a folder of the work tree is the same repository until a setting, an included file or the nearest .git changes', async (t) => {
  const place = scratch(t);
  const included = join(place.top, 'included');
  place.git('config', '--global', 'include.path', included);
  const below = join(place.dir, 'a/b');
  mkdirSync(below, { recursive: true });
  const { unchanged } = await opened(t, place);
  const changes: readonly (readonly [string, () => unknown, () => unknown])[] = [
    [
      'its own setting',
      () => place.git('config', 'durable.wait', '3'),
      () => place.git('config', '--unset', 'durable.wait'),
    ],
    [
      "the user's",
      () => place.git('config', '--global', 'durable.wait', '3'),
      () => place.git('config', '--global', '--unset', 'durable.wait'),
    ],
    [
      'a file that is included and was not there',
      () => {
        writeFileSync(included, '[durable]\n\twait = 3\n');
      },
      () => {
        writeFileSync(included, '');
      },
    ],
  ];
  mkdirSync(join(place.env['HOME'] ?? '', '.config/git'), { recursive: true });
  for (const [what, change, back] of changes) {
    for (const dir of [place.dir, below, below]) t.true(await unchanged.isStill(dir), what);
    change();
    for (const dir of [place.dir, below]) t.false(await unchanged.isStill(dir), what);
    back();
  }
  t.true(await unchanged.isStill(below));
  place.git('config', '--file', join(place.env['HOME'] ?? '', '.config/git/config'), 'durable.wait', '3');
  t.false(await unchanged.isStill(below), 'a setting of another place');
});

test('a folder of a repository that came to lie within, and one of another, is not', async (t) => {
  const place = scratch(t);
  const below = join(place.dir, 'a/b');
  mkdirSync(below, { recursive: true });
  const { unchanged } = await opened(t, place);
  t.true(await unchanged.isStill(below));
  place.git('init', '-q', join(place.dir, 'a'));
  t.false(await unchanged.isStill(below));
  t.false(await unchanged.isStill(scratch(t).dir));
  place.git('worktree', 'add', '-q', join(place.top, 'linked'));
  t.false(await unchanged.isStill(join(place.top, 'linked')));
});

test('nothing is asked of git where nothing changed', async (t) => {
  const place = scratch(t);
  const { storage } = await opened(t, place);
  const unchanged = new Unchanged(storage);
  t.true(await unchanged.isStill(place.dir));
  const path = place.env['PATH'] ?? '';
  place.env['PATH'] = place.top;
  t.true(await unchanged.isStill(place.dir));
  await t.throwsAsync(unchanged.isStill(join(place.dir, '.git')));
  place.env['PATH'] = path;
});
