import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { hasCode } from '../../lib/errors.js';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { systemHost } from '../../lib/host.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const open = async (t: ExecutionContext, place: Scratch): Promise<Storage> => {
  const storage = await openStorage(place.dir, { ...systemHost(), env: place.env });
  t.teardown(() => storage.close());
  return storage;
};

test('without settings everything is flushed, 64 MiB is the largest file, 30 s the lease, and no hook waits', async (t) => {
  t.deepEqual((await open(t, scratch(t))).settings, {
    fsync: true,
    maxFileSize: 67_108_864,
    ttlMs: 30_000,
    fence: 'strict',
    lockWaitMs: 10_000,
    waitMs: 0,
    hookLimitMs: 0,
    idleMs: 6 * 3_600_000,
  });
});

test('settings are read as git reads booleans and sizes, from the nearest config', async (t) => {
  const place = scratch(t);
  place.git('config', '--global', 'durable.ttl', '7');
  place.git('config', '--global', 'durable.maxFileSize', '1');
  place.git('config', 'durable.maxFileSize', '3k');
  place.git('config', 'durable.fence', 'Hooks');
  for (const [key, value] of [
    ['lockWait', '2'],
    ['wait', '3'],
    ['hookLimit', '4'],
    ['idle', '5'],
  ] as const)
    place.git('config', `durable.${key}`, value);
  const waits = { lockWaitMs: 2000, waitMs: 3000, hookLimitMs: 4000, idleMs: 5000 };
  const fence = { fence: 'hooks', ...waits } as const;
  for (const [text, fsync] of [
    ['off', false],
    ['No', false],
    ['0', false],
    ['yes', true],
    ['1', true],
  ] as const) {
    place.git('config', 'durable.fsync', text);
    t.deepEqual((await open(t, place)).settings, { fsync, maxFileSize: 3072, ttlMs: 7000, ...fence }, text);
  }
  writeFileSync(join(place.dir, '.git/config'), '[durable]\n\tfsync\n\tmaxFileSize = 2G\n', { flag: 'a' });
  const { settings } = await open(t, place);
  t.deepEqual(settings, { fsync: true, maxFileSize: 2 ** 31, ttlMs: 7000, ...fence });
});

test('a setting that cannot be read is wrong use, named with its value', async (t) => {
  for (const [key, value] of [
    ['durable.fsync', 'maybe'],
    ['durable.maxFileSize', '-1'],
    ['durable.ttl', 'soon'],
    ['durable.fence', 'tall'],
  ] as const) {
    const place = scratch(t);
    place.git('config', key, value);
    const error = await t.throwsAsync(open(t, place));
    t.true(hasCode(error, 'usage') && error.message.includes(value), String(error));
  }
});

test('opening writes nothing', async (t) => {
  const place = scratch(t);
  const files = (): string[] => readdirSync(place.dir, { recursive: true, encoding: 'utf8' }).sort();
  const before = files();
  const storage = await open(t, place);
  storage.refs.list('refs/');
  await storage.objects.read(place.git('rev-parse', 'HEAD'));
  await storage.close();
  t.deepEqual(files(), before);
});

const mode = (path: string): string => (statSync(path).mode & 0o7777).toString(8);

/** The first loose object below `objects/` that passes, and its fan-out folder. */
function looseObject(place: Scratch, oid: string): string {
  return join(place.dir, '.git/objects', oid.slice(0, 2), oid.slice(2));
}

for (const [shared, own] of [
  ['umask', { dir: '700', file: '600' }],
  ['group', { dir: '2770', file: '660' }],
  ['all', { dir: '2775', file: '664' }],
  ['0640', { dir: '2750', file: '640' }],
] as const) {
  test(`with core.sharedRepository=${shared} objects and refs get the bits that git gives`, async (t) => {
    const place = scratch(t, { repository: false });
    place.git('init', '-q', `--shared=${shared}`);
    const byGit = place.run('git', ['hash-object', '-w', '--stdin'], { input: 'by git' }).stdout.trim();
    const storage = await open(t, place);
    const ours = await storage.objects.write('blob', Buffer.from('ours'));
    t.is(mode(looseObject(place, ours)), mode(looseObject(place, byGit)));
    t.is(mode(dirname(looseObject(place, ours))), mode(dirname(looseObject(place, byGit))));
    const commit = await storage.objects.write(
      'commit',
      Buffer.from(place.git('cat-file', 'commit', emptyCommit(place))),
    );
    place.git('update-ref', 'refs/git/made', commit);
    await storage.refs.update({ move: { ref: 'refs/durable/tasks/a', from: null, to: commit } });
    const ref = (name: string): string => join(place.dir, '.git', name);
    t.is(mode(ref('refs/durable/tasks/a')), mode(ref('refs/git/made')));
    t.is(mode(ref('refs/durable/tasks')), mode(ref('refs/git')));
    t.is(mode(storage.tickets.path), own.file);
    for (const folder of ['', 'journal', 'tickets'])
      t.is(mode(join(storage.layout.shared, folder)), own.dir, folder);
  });
}

const emptyCommit = (place: Scratch): string => {
  const tree = place.git('hash-object', '-w', '-t', 'tree', '/dev/null');
  return place.git('commit-tree', '-m', 'x', tree);
};
