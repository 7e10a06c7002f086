import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { releaseKeeps } from '../../lib/git/keep.js';
import { checkpointPlace, type CheckpointPlace } from '../helpers/checkpoint-place.js';
import { until } from '../helpers/processes.js';
import { scratch, type Ran } from '../helpers/scratch.js';

const CHILD = join(import.meta.dirname, '../helpers/checkpoint-child.js');

const inPack = (place: CheckpointPlace, extension: string): string[] =>
  readdirSync(join(place.dir, '.git/objects/pack')).filter((name) => name.endsWith(extension));

test('a pack is published with .keep, which goes when no maintenance from before is running', async (t) => {
  const place = await checkpointPlace(t);
  place.write('new', 'one\n');
  await place.checkpoint();
  t.is(inPack(place, '.keep').length, 1);
  t.is(releaseKeeps(place.storage), 0, 'a few stay where they are');
  // Starts of processes are told in hundredths of a second: one of the same hundredth counts as from before.
  const sealed = uptime();
  await until('the next hundredths', () => uptime() > sealed + 0.02);
  // A maintenance that is at work; git waits for the object ids on its input.
  const maintenance = spawn('git', ['pack-objects', '--stdout'], { cwd: place.dir, env: place.env });
  t.teardown(() => maintenance.kill('SIGKILL'));
  await once(maintenance, 'spawn');
  place.write('new', 'two\n');
  await place.checkpoint();
  t.is(inPack(place, '.keep').length, 2);
  t.is(releaseKeeps(place.storage, 1), 1, 'only the one that was sealed before it began');
  maintenance.kill('SIGKILL');
  await once(maintenance, 'exit');
  t.is(releaseKeeps(place.storage, 1), 1);
  t.deepEqual(inPack(place, '.keep'), []);
});

test("a .keep that is not ours is never touched, nor one whose checkpoint's maker is alive and not done", async (t) => {
  const place = await checkpointPlace(t);
  await place.checkpoint();
  place.write('new', 'one\n');
  await place.checkpoint();
  const [ours = ''] = inPack(place, '.keep');
  const path = join(place.dir, '.git/objects/pack', ours);
  const sealed = readFileSync(path, 'utf8');
  writeFileSync(join(place.dir, '.git/objects/pack/pack-other.keep'), 'by hand\n');
  writeFileSync(path, sealed.replace(/"sealedAt":[^,}]+/, '"sealedAt":null'));
  t.is(releaseKeeps(place.storage, 1), 0);
  writeFileSync(
    path,
    sealed.replace(/"sealedAt":[^,}]+/, '"sealedAt":null').replace(/"pid":\d+/, '"pid":999999999'),
  );
  t.is(releaseKeeps(place.storage, 1), 1);
  t.deepEqual(inPack(place, '.keep'), ['pack-other.keep']);
});

test('a new task stores nothing again that an earlier one of the work tree keeps', async (t) => {
  const place = await checkpointPlace(t);
  for (let index = 0; index < 20; index += 1)
    place.write(`data/${String(index)}`, `untracked ${String(index)}\n`.repeat(500));
  const first = await place.checkpoint();
  const second = await place.again();
  place.write('one more', 'small\n');
  const taken = await second.checkpoint();
  t.not(second.ledger.task, place.ledger.task);
  t.is(taken.changed, 1);
  const sizes = inPack(place, '.pack').map(
    (name) => statSync(join(place.dir, '.git/objects/pack', name)).size,
  );
  t.true(Math.min(...sizes) < Math.max(...sizes) / 2, sizes.join(' '));
  place.git('update-ref', '-d', `refs/durable/checkpoints/${place.ledger.task}`);
  place.git('prune', '--expire=now');
  t.is(place.run('git', ['fsck', '--full']).code, 0);
  const third = await place.again();
  t.is((await third.checkpoint()).tree, taken.tree);
  t.not(first.tree, taken.tree);
});

test('four processes at once take four checkpoints, each whole', async (t) => {
  const place = await checkpointPlace(t);
  for (let index = 0; index < 40; index += 1) place.write(`f${String(index)}`, `${String(index)}\n`);
  const children = [0, 1, 2, 3].map(() => spawn(process.execPath, [CHILD, place.dir], { env: place.env }));
  const said = await Promise.all(
    children.map(async (child) => {
      let text = '';
      child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
      await once(child, 'close');
      return JSON.parse(text) as { tree: string };
    }),
  );
  t.deepEqual(new Set([(await place.checkpoint()).tree]), new Set(said.map(({ tree }) => tree)));
  t.is(place.run('git', ['fsck', '--full', '--strict']).code, 0);
  t.deepEqual(readdirSync(join(place.dir, '.git/durable/quarantine')), []);
});

/** Where a checkpoint is killed; the next one must need no help, whatever was left. */
const POINTS = [
  ...['quarantine.make:mkdir:after', 'quarantine.make:link:after', 'snapshot.scan:spawn:after'],
  ...['quarantine.scratch:rename:after', 'snapshot.add:spawn:after', 'snapshot.pack:spawn:after'],
  // Of more paths than a tree is made for without an index.
  'snapshot.tree:spawn:after',
  ...['snapshot.publish:rename:after', 'snapshot.publish:rename:after#2', 'snapshot.publish:rename:after#3'],
  ...[
    'ref.move:rename:after',
    'keep.seal:rename:after',
    'snapshot.setup:rename:after',
    'snapshot.index:rename:after',
  ],
  'quarantine.drop:unlink:after',
] as const;

test('killed at any step, a checkpoint leaves nothing that the next one does not put right', (t) => {
  const place = scratch(t);
  const run = (faults?: string): Ran =>
    place.run(
      process.execPath,
      [CHILD, place.dir],
      faults === undefined ? {} : { env: { DURABLE_FAULTS: faults } },
    );
  t.is(run().code, 0);
  for (const [round, point] of POINTS.entries()) {
    place.write('README', `round ${String(round)}\n`);
    place.write(`new ${String(round)}`, `round ${String(round)}\n`);
    const many = point.startsWith('snapshot.tree') ? 250 : 0;
    for (let file = 0; file < many; file += 1) place.write(`many/${String(file)}`, `${String(file)}\n`);
    const killed = run(`${point}=kill`);
    t.is(killed.signal, 'SIGKILL', point);
  }
  const after = run();
  t.is(after.code, 0, after.stderr);
  const { tree } = JSON.parse(after.stdout) as { tree: string };
  t.is(place.git('ls-tree', '--name-only', tree).split('\n').length, POINTS.length + 2);
  t.is(place.git('ls-tree', '--name-only', `${tree}:many`).split('\n').length, 250);
  t.is(place.git('show', `${tree}:README`), `round ${String(POINTS.length - 1)}`);
  t.deepEqual(readdirSync(join(place.dir, '.git/durable/quarantine')), []);
  t.is(place.run('git', ['fsck', '--full', '--strict']).code, 0);
  t.false(existsSync(join(place.dir, '.git/durable/snapshot/index.lock')));
});

test("a path that came into the user's index while names were being listed is in the checkpoint", async (t) => {
  const place = await checkpointPlace(t);
  place.write('late', 'untracked when tracked names were read, tracked when the others were\n');
  const { git } = place.storage;
  const run = git.run.bind(git);
  let haveTracked = (): void => undefined;
  const tracked = new Promise<void>((resolve) => {
    haveTracked = resolve;
  });
  git.run = async (args, options) => {
    if (args.includes('-o') && options === undefined) {
      await tracked;
      place.git('add', 'late');
    }
    const result = await run(args, options);
    if (args.includes('-s')) haveTracked();
    return result;
  };
  const taken = await place.checkpoint();
  t.is(taken.files, 2);
});
