/** The private git dir, index and quarantine of checkpoints: whatever becomes of them, a checkpoint is as exact. */
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { diffCheckpoints } from '../../lib/files/diff.js';
import { checkpointPlace, placeIn, walk, type CheckpointPlace } from '../helpers/checkpoint-place.js';
import { scratch } from '../helpers/scratch.js';

const names = (place: CheckpointPlace, tree: string): string[] =>
  place.run('git', ['ls-tree', '-r', '-z', '--name-only', tree]).stdout.split('\0').slice(0, -1);

test('everything a checkpoint reaches is in its own pack when only an unreachable one had it', async (t) => {
  const place = await checkpointPlace(t);
  place.write('new', 'held by nothing\n');
  const oid = place.git('hash-object', '-w', 'new');
  place.run('git', ['pack-objects', '.git/objects/pack/pack'], { input: `${oid}\n` });
  place.run('git', ['prune-packed']);
  const taken = await place.checkpoint();
  place.git('repack', '-adq');
  place.git('prune', '--expire=now');
  t.is(place.git('show', `${taken.tree}:new`), 'held by nothing');
  t.is(place.run('git', ['fsck', '--full']).code, 0);
});

test('contents that were pruned are taken anew, not believed to be there', async (t) => {
  const place = await checkpointPlace(t);
  place.write('untracked', 'only in checkpoints\n');
  const first = await place.checkpoint();
  for (const ref of place.git('for-each-ref', '--format=%(refname)', 'refs/durable').split('\n'))
    place.git('update-ref', '-d', ref);
  rmSync(join(place.dir, '.git/durable/journal'), { recursive: true });
  for (const name of readdirSync(join(place.dir, '.git/objects/pack')))
    rmSync(join(place.dir, '.git/objects/pack', name), { force: true });
  place.git('prune', '--expire=now');
  t.not(place.run('git', ['cat-file', '-e', `${first.tree}:untracked`]).code, 0);
  const later = await place.again();
  const taken = await later.checkpoint();
  t.is(place.git('show', `${taken.tree}:untracked`), 'only in checkpoints');
  t.is(place.run('git', ['fsck', '--full']).code, 0);
});

test('a torn private index is thrown away, and the checkpoint is as exact', async (t) => {
  const place = await checkpointPlace(t);
  const first = await place.checkpoint();
  for (const name of readdirSync(join(place.dir, '.git/durable/snapshot')))
    if (/^(?:index|sharedindex|HEAD)/.test(name))
      writeFileSync(join(place.dir, '.git/durable/snapshot', name), 'torn');
  place.write('more', 'one\n');
  const second = await place.checkpoint();
  t.deepEqual(names(place, second.tree), ['README', 'more']);
  t.deepEqual(await diffCheckpoints(place.storage, second.checkpoint), []);
  t.is((await diffCheckpoints(place.storage, first.checkpoint, second.checkpoint)).length, 1);
});

test('no signer, hook, template, filter or monitor of the user is run', async (t) => {
  const place = await checkpointPlace(t);
  const trap = join(place.top, 'trap');
  writeFileSync(trap, `#!/bin/sh\necho "$0 $@" >> '${place.top.replaceAll("'", "'\\''")}/sprung'\nexit 1\n`, {
    mode: 0o755,
  });
  for (const name of [
    'reference-transaction',
    'post-index-change',
    'pre-commit',
    'pre-auto-gc',
    'post-commit',
  ]) {
    mkdirSync(join(place.dir, '.git/hooks'), { recursive: true });
    symlinkSync(trap, join(place.dir, '.git/hooks', name));
  }
  const settings = {
    'commit.gpgSign': 'true',
    'gpg.program': trap,
    'core.fsmonitor': trap,
    'filter.t.clean': trap,
  };
  for (const [key, value] of Object.entries(settings)) place.run('git', ['config', '--global', key, value]);
  place.write('.gitattributes', '* filter=t\n');
  const taken = await place.checkpoint();
  place.write('README', 'two\n');
  await place.restore(taken.checkpoint);
  t.false(existsSync(join(place.top, 'sprung')));
});

test('a full disk is one clear error, leaves nothing behind, and the same works again with room', async (t) => {
  const disk = mkdtempSync(join(tmpdir(), 'durable-disk-'));
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'tmpfs', disk]).status === 0;
  t.teardown(() => {
    if (mounted) spawnSync('umount', ['-l', disk]);
    rmSync(disk, { recursive: true, force: true });
  });
  if (!mounted) {
    // No right to mount here: the fault plan stands for the full disk.
    await fullByPlan(t);
    return;
  }
  const outside = scratch(t);
  outside.run('cp', ['-a', '.', join(disk, 'work')]);
  const place = await placeIn(t, { ...outside, dir: join(disk, 'work') }, { dir: join(disk, 'work') });
  const inside = (...args: string[]): string => place.run('git', args, { cwd: join(disk, 'work') }).stdout;
  await place.checkpoint();
  writeFileSync(
    join(disk, 'work/large'),
    spawnSync('head', ['-c', '2500000', '/dev/urandom'], { maxBuffer: 1 << 24 }).stdout,
  );
  writeFileSync(join(disk, 'filler'), Buffer.alloc(5_800_000));
  const before = walk(join(disk, 'work/.git'), (path) => path.startsWith('durable/tickets'));
  await t.throwsAsync(place.checkpoint(), { code: 'out-of-space' });
  t.deepEqual(
    walk(join(disk, 'work/.git'), (path) => path.startsWith('durable/tickets')),
    before,
  );
  rmSync(join(disk, 'filler'));
  const taken = await place.checkpoint();
  t.is(inside('cat-file', '-s', `${taken.tree}:large`).trim(), '2500000');
});

test('a full disk at the moment of publishing leaves nothing behind', async (t) => {
  await fullByPlan(t);
});

test('a quarantine left by a dead process goes with the next checkpoint, a live one stays', async (t) => {
  const place = await checkpointPlace(t);
  const root = join(place.dir, '.git/durable/quarantine');
  await place.checkpoint();
  const ticket = readdirSync(join(place.dir, '.git/durable/tickets'))[0] ?? '';
  const mine = readFileSync(join(place.dir, '.git/durable/tickets', ticket), 'utf8');
  for (const [name, text] of [
    ['dead', mine.replace(/"pid":\d+/, '"pid":999999999')],
    ['live', mine],
    ['foreign', 'not ours'],
  ] as const) {
    mkdirSync(join(root, name, 'objects/pack'), { recursive: true });
    writeFileSync(join(root, name, 'objects/pack/tmp_pack_x'), 'half');
    writeFileSync(join(root, name, 'owner'), text);
  }
  mkdirSync(join(root, 'empty'));
  await place.checkpoint();
  t.deepEqual(readdirSync(root).sort(), ['foreign', 'live']);
});

async function fullByPlan(t: ExecutionContext): Promise<void> {
  const point = 'snapshot.publish:write:before';
  let isFull = true;
  const faults = {
    hit: (at: string) => {
      if (at === point && isFull) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    },
  };
  const place = await checkpointPlace(t, { host: { faults } });
  place.write('new', 'one\n');
  await t.throwsAsync(place.checkpoint(), { code: 'out-of-space' });
  t.deepEqual(readdirSync(join(place.dir, '.git/durable/quarantine')), []);
  isFull = false;
  t.is(place.git('show', `${(await place.checkpoint()).tree}:new`), 'one');
}
