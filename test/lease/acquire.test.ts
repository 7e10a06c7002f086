import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { hasCode } from '../../lib/errors.js';
import { acquire } from '../../lib/lease/acquire.js';
import { entryOf } from '../../lib/lease/processes.js';
import { leaseOf, readLease } from '../../lib/lease/record.js';
import { recordBehind } from '../../lib/lease/refusal.js';
import { takeOver } from '../../lib/lease/takeover.js';
import { workspaceId } from '../../lib/lease/workspace.js';
import { HolderProcess } from '../helpers/holder-process.js';
import { at } from '../helpers/json.js';
import { openAs, OPERATION, quickChallenge, TURN } from '../helpers/lease-place.js';
import { stateOf, until } from '../helpers/processes.js';
import { scratch } from '../helpers/scratch.js';

test('a lease that was never held is held at epoch 1, and each later acquisition has the next epoch', async (t) => {
  const storage = await openAs(t, scratch(t));
  const epochs: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    const held = await acquire(storage, TURN);
    epochs.push(held.token.epoch);
    await held.release();
  }
  t.deepEqual(epochs, [1, 2, 3]);
});

test('a release writes a free record that keeps the epoch, and the ref stays', async (t) => {
  const place = scratch(t);
  const storage = await openAs(t, place);
  const held = await acquire(storage, TURN);
  await held.release();
  await held.release();
  const ref = held.token.ref;
  t.is(place.git('for-each-ref', '--format=%(refname)', 'refs/durable/leases'), ref);
  const line: unknown = JSON.parse(
    place.git('log', '-1', '--format=%B', ref).trimEnd().split('\n').at(-1) ?? '',
  );
  t.is(at(line, 'state'), 'free');
  t.is(at(line, 'epoch'), 1);
});

test('records pass git fsck --strict, have no parent and the empty tree, and a readable subject', async (t) => {
  const place = scratch(t);
  const storage = await openAs(t, place);
  const held = await acquire(storage, { ...TURN, turn: 'turn-one', agent: 'an agent' });
  t.is(place.run('git', ['fsck', '--strict', '--no-dangling']).code, 0);
  t.is(place.git('rev-list', '--parents', held.token.ref).split(' ').length, 1);
  t.is(place.git('ls-tree', '-r', held.token.ref), '');
  t.is(
    place.git('log', '-1', '--format=%s|%an', held.token.ref),
    'lease held: an agent, turn turn-one, epoch 1|git-durable',
  );
});

test('renewals leave no litter: superseded records are removed, and every id is new', async (t) => {
  const place = scratch(t);
  const storage = await openAs(t, place);
  const held = await acquire(storage, TURN);
  const before = place.git('count-objects');
  const seen = new Set<string>();
  for (let round = 0; round < 10; round += 1) seen.add((await held.renew()).oid);
  t.is(seen.size, 10);
  t.is(place.git('count-objects'), before);
  t.is(place.git('fsck', '--unreachable'), '');
});

test('a live holder is told about with the whole record, and keeps the lease', async (t) => {
  const place = scratch(t);
  const holder = await HolderProcess.start(t, place);
  await holder.must('acquire', { turnKey: 'the key', objective: 'rename a symbol' });
  const storage = await openAs(t, place);
  const error = await t.throwsAsync(acquire(storage, TURN));
  t.true(hasCode(error, 'lease-held'));
  t.is(at(error, 'fields', 'holder', 'pid'), holder.pid);
  t.is(at(error, 'fields', 'holder', 'objective'), 'rename a symbol');
  t.is(recordBehind(error)?.turnKey, 'the key');
  t.true(hasCode(await t.throwsAsync(takeOver(storage, TURN)), 'lease-held'));
  await holder.must('assert');
});

test('a live holder that is paused past its TTL is not taken by time', async (t) => {
  const place = scratch(t);
  place.git('config', 'durable.ttl', '1');
  const holder = await HolderProcess.start(t, place);
  await holder.must('acquire');
  holder.stop();
  await holder.stopped();
  // A day passes on every clock of the challenger.
  const later = (): number => performance.now() + 24 * 3600 * 1000;
  const storage = await openAs(t, place, { monotonicMs: later, uptimeMs: later });
  const error = await t.throwsAsync(takeOver(storage, { ...TURN, challenge: quickChallenge() }));
  t.true(hasCode(error, 'lease-held'), String(error));
  t.true(hasCode(await t.throwsAsync(acquire(storage, TURN)), 'lease-held'));
  holder.resume();
  await holder.must('assert');
});

test('a holder that was killed is taken at once when it left no open turn', async (t) => {
  const place = scratch(t);
  const holder = await HolderProcess.start(t, place);
  await holder.must('acquire', { kind: 'operation' });
  await holder.kill();
  const held = await acquire(await openAs(t, place), OPERATION);
  t.is(held.token.epoch, 2);
  t.is(held.takenOver?.epoch, 1);
  t.regex(held.takenOver?.proof ?? '', /is gone/);
});

const judged: readonly (readonly [string, Parameters<typeof openAs>[2], string])[] = [
  ['another boot id on the same host proves the holder dead', { identity: { bootId: 'another' } }, 'taken'],
  [
    'a holder on another host is not judged by its pid',
    { identity: { hostId: 'another' } },
    'lease-unproven',
  ],
  [
    'a holder in another pid namespace is not judged by its pid',
    { identity: { pidNamespace: 'another' } },
    'lease-unproven',
  ],
];

for (const [title, identity, outcome] of judged) {
  test(title, async (t) => {
    const place = scratch(t);
    await acquire(await openAs(t, place), OPERATION);
    const other = await openAs(t, place, identity);
    const result = await acquire(other, OPERATION).then(
      () => 'taken',
      (error: unknown) => at(error, 'code'),
    );
    t.is(result, outcome);
  });
}

test('a pid that was used again by another process does not keep a lease', async (t) => {
  const storage = await openAs(t, scratch(t));
  await acquire(storage, { ...OPERATION, holderProcess: { pid: process.pid, start: '1' } });
  const held = await acquire(storage, OPERATION);
  t.is(held.token.epoch, 2);
  t.regex(held.takenOver?.proof ?? '', /another process by now/);
  // Nothing was ended: this very process has the pid.
  t.deepEqual(held.takenOver?.ended, []);
});

test('a zombie is dead', async (t) => {
  const storage = await openAs(t, scratch(t));
  // The shell starts a process, becomes `sleep` and never reaps it.
  const parent = spawn('sh', ['-c', 'sleep 0.5 & echo $!; exec sleep 1000'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  t.teardown(() => parent.kill('SIGKILL'));
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const pid = Number(line.toString());
  await acquire(storage, { ...OPERATION, holderProcess: { pid, start: entryOf(pid)?.start ?? '' } });
  await until('the process is a zombie', () => stateOf(pid) === 'Z');
  const held = await acquire(storage, OPERATION);
  t.is(held.token.epoch, 2);
});

test('a wall clock that is stepped by a day, either way, wins and loses no lease', async (t) => {
  const day = 24 * 3600 * 1000;
  for (const stepMs of [-day, day]) {
    const place = scratch(t);
    const holder = await HolderProcess.start(t, place, { stepMs });
    await holder.must('acquire');
    const now = (): Date => new Date(Date.now() - stepMs);
    const stepped = await openAs(t, place, { now });
    t.true(hasCode(await t.throwsAsync(acquire(stepped, TURN)), 'lease-held'));
    await holder.must('renew');
    const other = await openAs(t, place, { now, identity: { hostId: 'another' } });
    t.true(hasCode(await t.throwsAsync(acquire(other, TURN)), 'lease-unproven'));
    const challenge = quickChallenge();
    await takeOver(other, { ...TURN, challenge });
    t.is(challenge.waitedMs(), 1.25 * 30_000 + 5000);
    await holder.kill();
  }
});

test('a copied repository has a lease of its own, and the original keeps its holder', async (t) => {
  const place = scratch(t);
  const holder = await HolderProcess.start(t, place);
  await holder.must('acquire');
  const copy = join(place.top, 'copy');
  execFileSync('cp', ['-a', place.dir, copy]);
  const original = await openAs(t, place);
  const copied = await openAs(t, place, { dir: copy });
  const held = await acquire(copied, TURN);
  t.not(held.token.lease, leaseOf(workspaceId(original, { create: false }) ?? ''));
  t.is(held.token.epoch, 1);
  t.true(hasCode(await t.throwsAsync(acquire(original, TURN)), 'lease-held'));
  await holder.must('assert');
});

test('eight processes that acquire at once: one holds, seven are told who', async (t) => {
  const place = scratch(t);
  const all = await Promise.all(Array.from({ length: 8 }, () => HolderProcess.start(t, place)));
  const answers = await Promise.all(all.map((one) => one.ask('acquire')));
  const winners = all.filter((_, index) => answers[index]?.error === undefined);
  t.is(winners.length, 1);
  const told = answers.filter(({ error }) => error !== undefined);
  t.deepEqual(
    told.map(({ error }) => error),
    Array<string>(7).fill('lease-held'),
  );
  t.true(told.every(({ fields }) => at(fields, 'holder', 'pid') === winners[0]?.pid));
});

test('sixteen long-lived workers race for one lease, 25 rounds: exactly one holds in each, all others name it', async (t) => {
  const place = scratch(t);
  place.git('config', 'durable.fsync', 'false');
  const all = await Promise.all(Array.from({ length: 16 }, () => HolderProcess.start(t, place)));
  for (let round = 1; round <= 25; round += 1) {
    const answers = await Promise.all(all.map((one) => one.ask('acquire')));
    const winners = all.filter((_, index) => answers[index]?.error === undefined);
    const wrong = answers.filter(
      ({ error, fields }) =>
        error !== undefined && (error !== 'lease-held' || at(fields, 'holder', 'pid') !== winners[0]?.pid),
    );
    t.deepEqual([winners.length, wrong], [1, []], `round ${String(round)}`);
    await winners[0]?.must('release');
  }
  const ref = place.git('for-each-ref', '--format=%(refname)', 'refs/durable/leases');
  const last = await readLease(await openAs(t, place), ref.split('/').at(-1) ?? '');
  t.is(last?.record.epoch, 25);
});

test('a failed step after the swap hands the lease back: the next one finds what this one found', async (t) => {
  const place = scratch(t);
  const holder = await HolderProcess.start(t, place, { faults: 'stage.make:mkdir:before=enospc' });
  t.is((await holder.ask('acquire')).error, 'out-of-space');
  const held = await acquire(await openAs(t, place), TURN);
  t.is(held.token.epoch, 2);
  t.is(held.takenOver, null);
});

async function epochAfterDeathAt(t: ExecutionContext, faults: string): Promise<number> {
  const place = scratch(t);
  const holder = await HolderProcess.start(t, place, { faults });
  const answer = await holder.ask('acquire');
  t.is(answer.error, 'ended', faults);
  t.is(answer.detail, 'SIGKILL');
  const held = await acquire(await openAs(t, place), TURN);
  t.is(place.run('git', ['fsck', '--strict', '--no-dangling']).code, 0);
  await held.release();
  return held.token.epoch;
}

test('a death at any point of an acquisition leaves a lease that the next one takes', async (t) => {
  t.is(await epochAfterDeathAt(t, 'workspace.place:link:before=kill'), 1);
  t.is(await epochAfterDeathAt(t, 'object.publish:link:after=kill'), 1);
  t.is(await epochAfterDeathAt(t, 'ref.move:rename:before=kill'), 1);
  t.is(await epochAfterDeathAt(t, 'ref.move:rename:after=kill'), 2);
  t.is(await epochAfterDeathAt(t, 'stage.make:mkdir:before=kill'), 2);
  t.is(await epochAfterDeathAt(t, 'maintenance.hold:link:before=kill'), 2);
});
