import { linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'ava';
import { until } from '../helpers/processes.js';
import { Worker } from '../helpers/worker.js';
import { TASK, SHORT_MS, opened, fails, litter } from '../helpers/opened-refs.js';

test('a lock of git is waited for, never removed, and the refusal says how long', async (t) => {
  const at = await opened(t);
  const { storage, commits, path } = at;
  const change = { verify: [], move: { ref: TASK, from: null, to: commits[0] } };
  for (const content of ['', commits[1], '{"v":1,"id":"abc"']) {
    mkdirSync(dirname(path(TASK)), { recursive: true });
    writeFileSync(path(`${TASK}.lock`), content);
    t.true((await fails(t, 'ref-locked', () => storage.refs.update(change, SHORT_MS))).includes('git'));
    t.is(readFileSync(path(`${TASK}.lock`), 'utf8'), content);
  }
  const waiting = storage.refs.update(change);
  rmSync(path(`${TASK}.lock`));
  t.deepEqual(await waiting, { moved: true });
  t.deepEqual(litter(at), []);
});

test('a refusal does not wait for a lock', async (t) => {
  const { storage, commits, place, path } = await opened(t);
  const [a, b, c] = commits;
  place.git('update-ref', TASK, a);
  writeFileSync(path(`${TASK}.lock`), '');
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: b, to: c } }, 0), {
    moved: false,
    ref: TASK,
    was: a,
  });
});

test('a lock whose owner is alive is never removed, and the refusal names the owner', async (t) => {
  const at = await opened(t);
  const { storage, commits, path, place } = at;
  const worker = await Worker.start(t, place);
  mkdirSync(dirname(path(TASK)), { recursive: true });
  t.deepEqual(await worker.ask({ do: 'take', lock: path(`${TASK}.lock`) }), { taken: 'taken' });
  const change = { move: { ref: TASK, from: null, to: commits[0] } };
  const message = await fails(t, 'ref-locked', () => storage.refs.update(change, SHORT_MS));
  t.true(message.includes(`process ${String(worker.pid)}`), message);
  const waiting = storage.refs.update(change);
  t.deepEqual(await worker.ask({ do: 'release', lock: path(`${TASK}.lock`) }), { released: true });
  t.deepEqual(await waiting, { moved: true });
  await worker.finish();
  t.deepEqual(litter(at), []);
});

test('a lock whose owner was killed is removed by the next update, with all that the owner left', async (t) => {
  const at = await opened(t);
  const { storage, commits, path, place } = at;
  const worker = await Worker.start(t, place);
  mkdirSync(dirname(path(TASK)), { recursive: true });
  await worker.ask({ do: 'take', lock: path(`${TASK}.lock`) });
  worker.signal('SIGKILL');
  await worker.ended;
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: null, to: commits[0] } }), {
    moved: true,
  });
  t.deepEqual(litter(at), []);
  t.deepEqual(readdirSync(join(storage.layout.shared, 'claims')), []);
  t.deepEqual(readdirSync(join(storage.layout.shared, 'tickets')), [storage.tickets.id]);
});

test('a lock from before the machine was started again is removed, one of another machine never', async (t) => {
  const at = await opened(t);
  const { storage, commits, path, place } = at;
  mkdirSync(dirname(path(TASK)), { recursive: true });
  const change = { move: { ref: TASK, from: null, to: commits[0] } };
  const elsewhere = await Worker.start(t, place, { identity: { hostId: 'elsewhere', bootId: 'x' } });
  await elsewhere.ask({ do: 'take', lock: path(`${TASK}.lock`) });
  elsewhere.signal('SIGKILL');
  await elsewhere.ended;
  t.true(
    (await fails(t, 'ref-locked', () => storage.refs.update(change, SHORT_MS))).includes('another host'),
  );
  rmSync(path(`${TASK}.lock`));
  const before = await Worker.start(t, place, { identity: { bootId: 'before' } });
  await before.ask({ do: 'take', lock: path(`${TASK}.lock`) });
  t.deepEqual(await storage.refs.update(change, SHORT_MS), { moved: true });
  t.deepEqual(litter(at), []);
});

for (const point of ['ref.value:write:before', 'ref.value:fsync:before', 'ref.move:rename:before'] as const) {
  test(`no space at ${point} leaves the ref as it was and no lock`, async (t) => {
    const disk = { full: false };
    const at = await opened(t, {
      faults: {
        hit: (hit) => {
          if (disk.full && hit === point) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
        },
      },
    });
    const { storage, commits, place } = at;
    const [a, b] = commits;
    place.git('update-ref', TASK, a);
    disk.full = true;
    await fails(t, 'out-of-space', () => storage.refs.update({ move: { ref: TASK, from: a, to: b } }));
    t.is(place.git('rev-parse', TASK), a);
    t.deepEqual(litter(at), []);
    disk.full = false;
    t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: a, to: b } }), { moved: true });
  });
}

test('a lock taken away by hand and taken by another is not removed at the end of ours', async (t) => {
  const lock: { path?: string } = {};
  const at = await opened(t, {
    faults: {
      hit: (point) => {
        if (point !== 'ref.move:rename:after' || lock.path === undefined) return;
        rmSync(lock.path);
        writeFileSync(lock.path, 'of git');
      },
    },
  });
  lock.path = at.path(`${TASK}.lock`);
  await at.storage.refs.update({ move: { ref: TASK, from: null, to: at.commits[0] } });
  t.is(readFileSync(lock.path, 'utf8'), 'of git');
});

test('closing removes the ticket, and a storage that goes on writes another', async (t) => {
  const { storage, commits } = await opened(t);
  const [a, b] = commits;
  await storage.refs.update({ move: { ref: TASK, from: null, to: a } });
  const tickets = join(storage.layout.shared, 'tickets');
  t.is(readdirSync(tickets).length, 1);
  await storage.close();
  t.deepEqual(readdirSync(tickets), []);
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: a, to: b } }), { moved: true });
});

test('a ticket that somebody removed is written again', async (t) => {
  const { storage, commits } = await opened(t);
  const [a, b] = commits;
  await storage.refs.update({ move: { ref: TASK, from: null, to: a } });
  rmSync(storage.layout.shared, { recursive: true });
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: a, to: b } }), { moved: true });
});

test('tickets and temporary files of the living stay, those of the dead go', async (t) => {
  const { storage, place } = await opened(t);
  const tickets = join(storage.layout.shared, 'tickets');
  const [alive, dead] = [await Worker.start(t, place), await Worker.start(t, place)];
  for (const worker of [alive, dead]) await worker.ask({ do: 'write', text: String(worker.pid) });
  const all = readdirSync(tickets);
  t.is(all.length, 2);
  for (const id of all) linkSync(join(tickets, id), join(tickets, `${id}.1`));
  dead.signal('SIGKILL');
  await dead.ended;
  await until('swept', () => storage.tickets.sweep() === 0);
  const left = readdirSync(tickets).filter((name) => !name.startsWith(storage.tickets.id));
  t.deepEqual(
    left.map((name) => name.split('.').length),
    [1, 2],
  );
  t.true(readFileSync(join(tickets, left[0] ?? ''), 'utf8').includes(`process ${String(alive.pid)}`));
});
