/** Our swaps against git itself, and against death at every step. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { hasCode } from '../../lib/errors.js';
import { sweepLitter } from '../../lib/git/sweep.js';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { systemHost } from '../../lib/host.js';
import { stateOf, until } from '../helpers/processes.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { Worker } from '../helpers/worker.js';

const LEASE = 'refs/durable/leases/ws-a';
const TASK = 'refs/durable/tasks/a';

/** A git that ends, without stopping this process meanwhile: its exit code and standard output. */
async function git(place: Scratch, ...args: string[]): Promise<{ code: number | null; out: string }> {
  const child = spawn('git', args, { cwd: place.dir, env: place.env, stdio: ['ignore', 'pipe', 'ignore'] });
  let out = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, out: out.trim() };
}

/** Runs `act` again and again until `stop` is set; how often it ran. */
async function loop(stop: { now: boolean }, act: () => Promise<unknown>): Promise<number> {
  let runs = 0;
  for (; !stop.now; runs += 1) await act();
  return runs;
}

interface Acknowledged {
  readonly acknowledged: readonly string[];
}

/** One swap of git's own, as any script does it; the new commit if git said that it moved. */
async function gitAppend(place: Scratch, ref: string): Promise<string | null> {
  const from = (await git(place, 'rev-parse', '--verify', '-q', ref)).out;
  const to = (
    await git(place, 'commit-tree', '-m', 'by git', ...(from === '' ? [] : ['-p', from]), 'HEAD^{tree}')
  ).out;
  const old = from === '' ? '0'.repeat(40) : from;
  return (await git(place, 'update-ref', ref, to, old)).code === 0 ? to : null;
}

function leftLocks(storage: Storage): string[] {
  return readdirSync(join(storage.layout.commonDir, 'refs'), { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.lock'),
  );
}

async function open(t: ExecutionContext, place: Scratch): Promise<Storage> {
  const storage = await openStorage(place.dir, { ...systemHost(), env: place.env });
  t.teardown(() => storage.close());
  return storage;
}

test('every acknowledged update is kept beside git update-ref, git pack-refs and git gc', async (t) => {
  const place = scratch(t);
  place.git('config', 'durable.fsync', 'false');
  const storage = await open(t, place);
  const workers = await Promise.all(Array.from({ length: 3 }, () => Worker.start(t, place)));
  const stop = { now: false };
  const byGit: string[] = [];
  const loops = [
    loop(stop, async () => {
      const moved = await gitAppend(place, TASK);
      if (moved !== null) byGit.push(moved);
    }),
    loop(stop, () => git(place, 'pack-refs', '--all')),
    loop(stop, () => git(place, 'gc', '--quiet')),
  ];
  const acknowledged: string[] = [];
  for (let round = 1; round <= 6; round += 1) {
    const asked = workers.map((worker) =>
      worker.ask({ do: 'append', ref: TASK, count: 10, name: String(worker.pid) }),
    );
    for (const answer of await Promise.all(asked))
      acknowledged.push(...(answer as Acknowledged).acknowledged);
    // Git is slower than we are: between two rounds it gets one through.
    await until('a swap by git', () => byGit.length >= round);
  }
  stop.now = true;
  const runs = await Promise.all(loops);
  t.true(
    runs.every((count) => count > 0),
    `runs of git: ${runs.join(', ')}`,
  );
  t.is(new Set(acknowledged).size, 180);
  const chain = new Set(place.git('rev-list', TASK).split('\n'));
  t.deepEqual(
    [...acknowledged, ...byGit].filter((oid) => !chain.has(oid)),
    [],
    'acknowledged and lost',
  );
  t.is(chain.size, acknowledged.length + byGit.length, 'moved and not acknowledged');
  t.deepEqual(leftLocks(storage), []);
  place.git('fsck', '--strict', '--full');
  for (const worker of workers) await worker.finish();
});

test('a verified ref cannot move while the other one does: no update under a lease that was over', async (t) => {
  const place = scratch(t);
  const storage = await open(t, place);
  const [held, taken] = [
    place.git('rev-parse', 'HEAD'),
    place.git('commit-tree', '-m', 'taken', 'HEAD^{tree}'),
  ];
  place.git('update-ref', LEASE, held);
  const verify = [{ ref: LEASE, oid: held }];
  const worker = await Worker.start(t, place, { faults: 'ref.move:rename:before=stop' });
  worker.tell({ do: 'update', change: { verify, move: { ref: TASK, from: null, to: held } } });
  await until('stopped', () => stateOf(worker.pid) === 'T');
  const take = { move: { ref: LEASE, from: held, to: taken } };
  t.true(hasCode(await t.throwsAsync(storage.refs.update(take, 100)), 'ref-locked'));
  t.not((await git(place, 'update-ref', LEASE, taken, held)).code, 0, 'git cannot move it either');
  worker.signal('SIGCONT');
  t.deepEqual(await worker.answer(), { moved: true });
  t.deepEqual(await storage.refs.update(take), { moved: true });
  const late = { verify, move: { ref: TASK, from: held, to: taken } };
  t.deepEqual(await worker.ask({ do: 'update', change: late }), { moved: false, ref: LEASE, was: taken });
});

test('an owner that is stopped inside the swap keeps its lock, and its update is good when it goes on', async (t) => {
  const place = scratch(t);
  const storage = await open(t, place);
  const to = place.git('rev-parse', 'HEAD');
  const other = place.git('commit-tree', '-m', 'other', 'HEAD^{tree}');
  const worker = await Worker.start(t, place, { faults: 'ref.move:rename:before=stop' });
  worker.tell({ do: 'update', change: { move: { ref: TASK, from: null, to } } });
  await until('stopped', () => stateOf(worker.pid) === 'T');
  const error = await t.throwsAsync(storage.refs.update({ move: { ref: TASK, from: null, to: other } }, 300));
  t.true(hasCode(error, 'ref-locked') && error.fields.owner.includes(String(worker.pid)));
  t.not((await git(place, 'update-ref', TASK, other)).code, 0, 'git respects the lock too');
  worker.signal('SIGCONT');
  t.deepEqual(await worker.answer(), { moved: true });
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: null, to: other } }), {
    moved: false,
    ref: TASK,
    was: to,
  });
  t.deepEqual(leftLocks(storage), []);
});

const STEPS = [
  'ticket.write:mkdir',
  'ticket.write:write',
  'ticket.write:fsync',
  'ref.lock:mkdir',
  'ref.lock:link',
  'ref.value:write',
  'ref.value:fsync',
  'ref.move:rename',
  'ref.move:fsync',
  'ref.unlock:unlink',
].flatMap((step) => [`${step}:before`, `${step}:after`]);

test('an owner killed at any step leaves the ref whole, and the next update works without help', async (t) => {
  const place = scratch(t);
  const storage = await open(t, place);
  const to = place.git('rev-parse', 'HEAD');
  const next = place.git('commit-tree', '-m', 'next', 'HEAD^{tree}');
  place.git('update-ref', LEASE, to);
  for (const [at, point] of STEPS.entries()) {
    const ref = `refs/durable/folder-${String(at)}/task`;
    rmSync(storage.layout.shared, { recursive: true, force: true });
    const worker = await Worker.start(t, place, { faults: `${point}=kill` });
    const change = { verify: [{ ref: LEASE, oid: to }], move: { ref, from: null, to } };
    t.is(await worker.ask({ do: 'update', change }), null, `${point} was never reached`);
    t.is((await worker.ended).signal, 'SIGKILL');
    const from = storage.refs.read(ref);
    t.is(from, afterTheMove(point) ? to : null, point);
    const moved = await storage.refs.update({ verify: change.verify, move: { ref, from, to: next } }, 2000);
    t.deepEqual(moved, { moved: true }, point);
    t.is(place.git('rev-parse', ref), next);
    t.deepEqual(leftLocks(storage), [], point);
    t.is(
      existsSync(join(storage.layout.shared, 'claims'))
        ? readdirSync(join(storage.layout.shared, 'claims')).length
        : 0,
      0,
    );
  }
  place.git('fsck', '--strict', '--full');
});

const afterTheMove = (point: string): boolean =>
  point === 'ref.move:rename:after' || point.startsWith('ref.move:fsync') || point.startsWith('ref.unlock');

const OBJECT_STEPS = [
  'object.temp:write',
  'object.temp:fsync',
  'object.journal:mkdir',
  'object.journal:rename',
  'object.journal:fsync',
  'object.publish:link',
  'object.publish:mkdir',
  'object.publish:fsync',
].flatMap((step) => [`${step}:before`, `${step}:after`]);

test('a writer killed at any step leaves no torn object, and the next write works', async (t) => {
  const place = scratch(t);
  const storage = await open(t, place);
  for (const point of OBJECT_STEPS) {
    rmSync(storage.layout.shared, { recursive: true, force: true });
    place.git('prune', '--expire=now');
    const text = textWithoutFolder(storage);
    const worker = await Worker.start(t, place, { faults: `${point}=kill` });
    t.is(await worker.ask({ do: 'write', text }), null, `${point} was never reached`);
    await worker.ended;
    place.git('fsck', '--strict', '--full');
    const oid = storage.objects.hash('blob', Buffer.from(text));
    const read = await storage.objects.read(oid);
    if (point.startsWith('object.publish')) t.is(read?.body.toString(), text, point);
    t.is(await storage.objects.write('blob', Buffer.from(text)), oid);
    t.is(place.git('cat-file', 'blob', oid), text, point);
    const mine = storage.tickets.id;
    sweepLitter(storage);
    t.deepEqual(readdirSync(join(storage.layout.shared, 'tickets')), [mine], point);
    place.git('fsck', '--strict', '--full');
  }
});

/** A text whose object needs a folder that is not there yet. */
function textWithoutFolder({ objects, layout }: Storage): string {
  for (let at = 0; ; at += 1) {
    const text = `kept ${String(at)}`;
    const folder = objects.hash('blob', Buffer.from(text)).slice(0, 2);
    if (!existsSync(join(layout.commonDir, 'objects', folder))) return text;
  }
}
