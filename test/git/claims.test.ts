/** Two and more healers of one dead lock, stopped and killed where it hurts. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { identityOf } from '../../lib/git/identity.js';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { parseTicket } from '../../lib/git/tickets.js';
import { freshId, systemHost } from '../../lib/host.js';
import { stateOf, until } from '../helpers/processes.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { Worker } from '../helpers/worker.js';

const host = systemHost();

interface Opened {
  readonly place: Scratch;
  readonly storage: Storage;
  readonly lock: string;
  readonly claims: () => string[];
}

async function opened(t: ExecutionContext): Promise<Opened> {
  const place = scratch(t);
  const storage = await openStorage(place.dir, { ...host, env: place.env });
  t.teardown(() => storage.close());
  const claims = join(storage.layout.shared, 'claims');
  return {
    place,
    storage,
    lock: join(storage.layout.gitDir, 'index.lock'),
    claims: () => (existsSync(claims) ? readdirSync(claims) : []),
  };
}

/** The lock of a process that is dead: ours, with a start time that nobody has any more. */
function leaveDeadLock(lock: string): string {
  const id = freshId(host);
  const { hostId, bootId, pidNamespace, hostname } = identityOf(host).here();
  const owner = { pid: process.pid, start: '1', host: hostId, boot: bootId, pidNamespace, hostname };
  writeFileSync(lock, JSON.stringify({ v: 1, id, text: 'of a dead process', ...owner }), { flag: 'wx' });
  return id;
}

const ownerOf = (lock: string): number | undefined => parseTicket(readFileSync(lock))?.pid;

test('healing says what it found: nothing, a lock of git, a living owner, a dead one', async (t) => {
  const { storage, lock, claims } = await opened(t);
  t.deepEqual(storage.locks.heal(lock), { state: 'gone' });
  writeFileSync(lock, '');
  t.deepEqual(storage.locks.heal(lock), { state: 'foreign' });
  rmSync(lock);
  t.is(storage.locks.take(lock), 'taken');
  t.is(storage.locks.take(lock), 'busy');
  t.like(storage.locks.heal(lock), { state: 'held', owner: { id: storage.tickets.id } });
  t.true(storage.locks.release(lock));
  t.false(storage.locks.release(lock));
  const dead = leaveDeadLock(lock);
  t.like(storage.locks.heal(lock), { state: 'removed', owner: { id: dead } });
  t.false(existsSync(lock));
  t.deepEqual(claims(), []);
});

test('what the dead owner could still publish is revoked before its lock goes, under the claim', async (t) => {
  const { storage, lock, claims } = await opened(t);
  const dead = leaveDeadLock(lock);
  let seen = 0;
  storage.locks.heal(lock, (owner) => {
    seen += 1;
    t.is(owner.id, dead);
    t.true(existsSync(lock));
    t.is(claims().length, 1);
  });
  t.is(seen, 1);
});

test('a healer that fails while it revokes leaves lock and claim, and heals at the next try', async (t) => {
  const { storage, lock, claims } = await opened(t);
  leaveDeadLock(lock);
  t.throws(() =>
    storage.locks.heal(lock, () => {
      throw new Error('cannot revoke');
    }),
  );
  t.true(existsSync(lock));
  t.is(claims().length, 1);
  t.is(storage.locks.heal(lock).state, 'removed');
  t.deepEqual(claims(), []);
});

test('a healer that was stopped before its claim does not remove the fresh lock of another', async (t) => {
  const { place, storage, lock, claims } = await opened(t);
  leaveDeadLock(lock);
  const slow = await Worker.start(t, place, { faults: 'claim.link:link:before=stop' });
  slow.tell({ do: 'heal', lock });
  await until('stopped', () => stateOf(slow.pid) === 'T');
  t.is(storage.locks.heal(lock).state, 'removed');
  t.is(storage.locks.take(lock), 'taken');
  slow.signal('SIGCONT');
  t.deepEqual(await slow.answer(), { state: 'gone' });
  t.is(ownerOf(lock), process.pid);
  t.deepEqual(claims(), [], 'the late claim is dropped');
});

test('a healer that is stopped just before it removes the lock is waited for', async (t) => {
  const { place, storage, lock } = await opened(t);
  leaveDeadLock(lock);
  const slow = await Worker.start(t, place, { faults: 'claim.unlock:unlink:before=stop' });
  slow.tell({ do: 'heal', lock });
  await until('stopped', () => stateOf(slow.pid) === 'T');
  t.like(storage.locks.heal(lock), { state: 'held', owner: { pid: slow.pid } });
  t.true(existsSync(lock));
  slow.signal('SIGCONT');
  t.like(await slow.answer(), { state: 'removed' });
  t.is(storage.locks.take(lock), 'taken');
});

const DEATHS = ['claim.link:link:after', 'claim.unlock:unlink:before', 'claim.unlock:unlink:after'];

for (const point of DEATHS) {
  test(`two healers killed one after the other at ${point} are succeeded by a third`, async (t) => {
    const { place, storage, lock, claims } = await opened(t);
    leaveDeadLock(lock);
    mkdirSync(join(storage.layout.shared, 'claims'), { recursive: true });
    for (let death = 0; death < 2; death += 1) {
      // The second healer finds the first one's claim before it makes its own.
      const nth = point.startsWith('claim.link') ? death + 1 : 1;
      const healer = await Worker.start(t, place, { faults: `${point}#${String(nth)}=kill` });
      await healer.ask({ do: 'heal', lock });
      if (existsSync(lock)) t.is((await healer.ended).signal, 'SIGKILL');
    }
    t.true(claims().length > 0);
    const left = storage.locks.heal(lock).state;
    t.is(left, point.endsWith('unlink:after') ? 'gone' : 'removed');
    t.false(existsSync(lock));
    storage.locks.sweep([lock]);
    t.deepEqual(claims(), []);
  });
}

test('sweeping keeps the claims on a lock that is still there', async (t) => {
  const { place, storage, lock, claims } = await opened(t);
  leaveDeadLock(lock);
  mkdirSync(join(storage.layout.shared, 'claims'), { recursive: true });
  const healer = await Worker.start(t, place, { faults: 'claim.link:link:after=kill' });
  await healer.ask({ do: 'heal', lock });
  t.is(storage.locks.sweep([lock]), 0);
  t.is(claims().length, 1);
  t.is(storage.locks.sweep([]), 1);
});

test('two healers of one dead lock at once, 200 times: one gets a fresh lock and keeps it', async (t) => {
  const { place, storage, claims } = await opened(t);
  place.git('config', 'durable.fsync', 'false');
  const healers = [await Worker.start(t, place), await Worker.start(t, place), await Worker.start(t, place)];
  const folder = join(storage.layout.shared, 'locks');
  mkdirSync(folder, { recursive: true });
  for (let round = 0; round < 200; round += 1) {
    const lock = join(folder, `${String(round % 7)}.lock`);
    leaveDeadLock(lock);
    const answers = await Promise.all(healers.map((healer) => healer.ask({ do: 'heal and take', lock })));
    const owners = healers.filter((_, at) => JSON.stringify(answers[at]) === '{"taken":"taken"}');
    t.is(owners.length, 1, `round ${String(round)}: ${JSON.stringify(answers)}`);
    t.is(ownerOf(lock), owners[0]?.pid, `round ${String(round)}`);
    t.deepEqual(await owners[0]?.ask({ do: 'release', lock }), { released: true });
  }
  storage.locks.sweep([]);
  t.deepEqual(claims(), []);
});
