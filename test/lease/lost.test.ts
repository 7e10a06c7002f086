import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { hasCode } from '../../lib/errors.js';
import { acquire } from '../../lib/lease/acquire.js';
import { leaseRef, readLease } from '../../lib/lease/record.js';
import { takeOver } from '../../lib/lease/takeover.js';
import { Repository } from '../../lib/repository.js';
import { HolderProcess, isAlive } from '../helpers/holder-process.js';
import { at } from '../helpers/json.js';
import { keeperOf } from '../helpers/keeper.js';
import { openAs, quickChallenge, TURN } from '../helpers/lease-place.js';
import { stateOf, until } from '../helpers/processes.js';
import { scratch } from '../helpers/scratch.js';

test('with its keeper killed and its lease taken over a turn is closed: every next step is lease-lost, and nothing takes it again', async (t) => {
  const place = scratch(t);
  place.git('config', 'durable.ttl', '1');
  const holder = await HolderProcess.start(t, place, { identity: { hostId: 'another' } });
  const started = await holder.must('turn', { turn: 'turn-one' });
  await holder.must('keeper');
  const lease = String(at(started, 'record', 'lease'));
  const storage = await openAs(t, place);
  const keeper = await keeperOf(place);
  // Between two renewals: to a holder of another host a lock that it left would be nobody's, for ever.
  const lock = join(place.dir, '.git', `${leaseRef(lease)}.lock`);
  for (let isFree = false; !isFree;) {
    process.kill(keeper, 'SIGSTOP');
    await until('the keeper stands still', () => stateOf(keeper) === 'T');
    isFree = !existsSync(lock);
    process.kill(keeper, isFree ? 'SIGKILL' : 'SIGCONT');
  }
  await until('the keeper is dead', () => !isAlive(keeper));
  await holder.must('append');

  const taken = await takeOver(storage, { ...TURN, challenge: quickChallenge() });
  const refs = (): string => place.git('for-each-ref', 'refs/durable');
  const before = refs();
  for (const [step, given] of [
    ['append', {}],
    ['renew', {}],
    ['assert', {}],
    ['write', { path: 'README', text: 'stale' }],
    ['remove', { path: 'README' }],
    ['finish', {}],
    ['append', {}],
  ] as const) {
    const { error } = await holder.ask(step, given);
    t.true(error === 'lease-lost' || error === 'stage-revoked', `${step}: ${String(error)}`);
  }
  t.is(refs(), before);
  t.is(readFileSync(join(place.dir, 'README'), 'utf8'), 'hello\n');
  await taken.assert();
  t.is((await readLease(storage, lease))?.record.epoch, taken.token.epoch);
});

test('a repository that a file synchroniser has copied to another host: nobody there calls the turn dead, and each side has a lease of its own', async (t) => {
  const place = scratch(t);
  const holder = await HolderProcess.start(t, place);
  const started = await holder.must('turn', { turn: 'turn-one' });
  await holder.must('write', { path: 'written', text: 'by the turn' });
  // The copy lies at the same path, as it does on a second machine; the original is moved away and stays what it was.
  const original = join(place.top, 'original');
  const copy = join(place.top, 'copied');
  execFileSync('cp', ['-a', place.dir, copy]);
  const there = { identity: { hostId: 'second', bootId: 'of the second', hostname: 'second' } };
  renameSync(place.dir, original);
  renameSync(copy, place.dir);
  const repository = new Repository(await openAs(t, place, there));
  const { interrupted } = await repository.recoveryReport({ all: true });
  t.deepEqual(interrupted, []);
  const seen = await repository.status();
  t.deepEqual([seen.lease, seen.interrupted], [null, []]);
  const own = await acquire(repository.storage, TURN);
  t.not(own.token.lease, at(started, 'record', 'lease'));
  t.is(own.token.epoch, 1);
  t.is(readFileSync(join(place.dir, 'written'), 'utf8'), 'by the turn');
  await own.release();

  renameSync(place.dir, copy);
  renameSync(original, place.dir);
  await holder.must('append');
  await holder.must('write', { path: 'again', text: 'by the turn' });
  t.false(existsSync(join(copy, 'again')));
  const error = await t.throwsAsync(acquire(await openAs(t, place), TURN));
  t.true(hasCode(error, 'lease-held'));
});
