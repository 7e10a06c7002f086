import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { hasCode } from '../../lib/errors.js';
import { acquire } from '../../lib/lease/acquire.js';
import { recordBehind } from '../../lib/lease/refusal.js';
import { takeOver } from '../../lib/lease/takeover.js';
import { Ledger } from '../../lib/ledger/ledger.js';
import { HolderProcess, isAlive } from '../helpers/holder-process.js';
import { at } from '../helpers/json.js';
import { openAs, quickChallenge, TURN } from '../helpers/lease-place.js';
import { scratch } from '../helpers/scratch.js';

test('a dead holder whose turn is open needs recovery: acquiring says so, taking over goes through it', async (t) => {
  const place = scratch(t);
  const holder = await HolderProcess.start(t, place);
  const started = await holder.must('turn', { turn: 'turn-one' });
  await holder.kill();
  const storage = await openAs(t, place);
  const error = await t.throwsAsync(acquire(storage, TURN));
  t.true(hasCode(error, 'recovery-needed'), String(error));
  t.deepEqual(at(error, 'fields'), {
    task: at(started, 'task'),
    turn: 'turn-one',
    objective: 'do something',
  });
  t.is(recordBehind(error)?.turn, 'turn-one');
  const held = await takeOver(storage, TURN);
  t.is(held.token.epoch, 2);
  t.is(held.record.recovering?.turn, 'turn-one');
});

test('a recovery that dies, or gives up, leaves the turn to the next one', async (t) => {
  const place = scratch(t);
  const holder = await HolderProcess.start(t, place);
  await holder.must('turn', { turn: 'turn-one' });
  await holder.kill();
  const taker = await HolderProcess.start(t, place);
  await taker.must('take-over', { kind: 'operation' });
  await taker.kill();
  const storage = await openAs(t, place);
  t.true(hasCode(await t.throwsAsync(acquire(storage, TURN)), 'recovery-needed'));
  const held = await takeOver(storage, TURN);
  await held.release();
  t.true(hasCode(await t.throwsAsync(acquire(storage, TURN)), 'recovery-needed'));
  const again = await takeOver(storage, TURN);
  t.is(again.record.recovering?.turn, 'turn-one');
  t.is(again.token.epoch, 4);
  await Ledger.open(storage, again.record.recovering?.task ?? '').append(
    () => [
      {
        type: 'turn.finished',
        turn: 'turn-one',
        outcome: 'abandoned',
        summary: '',
        result: null,
        claim: null,
        exit: null,
        checkpoint: null,
        survivors: [],
      },
    ],
    { lease: again.token, agent: 'tester', workspace: null },
  );
  await again.release();
  t.is((await acquire(storage, TURN)).record.recovering, null);
});

test('a taker that dies at any step is taken over the same way, and older stages are revoked in the end', async (t) => {
  const points = [
    'ref.move:rename:after',
    'stage.revoke:rename:before',
    'stage.revoke:rename:after',
    'stage.make:mkdir:before',
  ];
  for (const point of points) {
    const place = scratch(t);
    const holder = await HolderProcess.start(t, place);
    await holder.must('turn', { turn: 'turn-one' });
    await holder.kill();
    const taker = await HolderProcess.start(t, place, { faults: `${point}=kill` });
    t.is((await taker.ask('take-over')).error, 'ended', point);
    const held = await takeOver(await openAs(t, place), TURN);
    t.is(held.token.epoch, 3, point);
    t.is(held.record.recovering?.turn, 'turn-one');
    t.deepEqual(
      readdirSync(join(place.dir, '.git/durable/stage')).filter((name) => /^\d+$/.test(name)),
      ['3'],
    );
  }
});

test('a takeover by force ends the agent, its keeper and its marked processes first, and says which', async (t) => {
  const place = scratch(t);
  place.git('config', 'durable.ttl', '1');
  const holder = await HolderProcess.start(t, place);
  await holder.must('acquire', { marker: 'the secret of the forced one' });
  await holder.must('keeper');
  const background = Number(
    await holder.must('spawn', { marker: 'the secret of the forced one', detached: true }),
  );
  const bystander = Number(await holder.must('spawn', { marker: 'another secret', detached: true }));
  t.teardown(() => isAlive(bystander) && process.kill(bystander, 'SIGKILL'));
  holder.stop();
  await holder.stopped();
  const held = await takeOver(await openAs(t, place), { ...TURN, force: true });
  t.is(held.token.epoch, 2);
  t.deepEqual([isAlive(holder.pid), isAlive(background)], [false, false]);
  // A descendant of the agent is its process too, whatever it carries.
  t.false(isAlive(bystander));
  const ended = held.takenOver?.ended.map(({ pid }) => pid) ?? [];
  t.true([holder.pid, background].every((pid) => ended.includes(pid)));
  t.deepEqual(
    ended.filter((pid) => isAlive(pid)),
    [],
  );
});

test('what a dead holder left running is ended before the taker returns, also when it ignores TERM', async (t) => {
  const place = scratch(t);
  const holder = await HolderProcess.start(t, place);
  await holder.must('acquire', { marker: 'a secret' });
  const stubborn = spawn('sh', ['-c', "trap '' TERM; while :; do sleep 0.1; done"], {
    detached: true,
    stdio: 'ignore',
    env: { ...place.env, DURABLE_MARKER: 'a secret' },
  });
  const pid = stubborn.pid ?? 0;
  t.teardown(() => stubborn.kill('SIGKILL'));
  await holder.kill();
  t.true(isAlive(pid));
  const held = await takeOver(await openAs(t, place), TURN);
  t.false(isAlive(pid));
  t.true(held.takenOver?.ended.some((one) => one.pid === pid && one.command.startsWith('sh -c')));
});

test('a process never ends itself: by force on a lease of its own it is refused', async (t) => {
  const place = scratch(t);
  const storage = await openAs(t, place);
  await acquire(storage, TURN);
  const error = await t.throwsAsync(takeOver(storage, { ...TURN, force: true }));
  t.true(hasCode(error, 'lease-held'));
  t.regex(String(at(error, 'fields', 'why')), /this very process/);
});

test('a holder on another host is taken after the challenger counted 1.25 TTL and 5 s, and not before', async (t) => {
  const place = scratch(t);
  place.git('config', 'durable.ttl', '8');
  await acquire(await openAs(t, place, { identity: { hostId: 'another' } }), TURN);
  const storage = await openAs(t, place);
  const error = await t.throwsAsync(takeOver(storage, TURN));
  t.true(hasCode(error, 'lease-unproven'));
  t.is(at(error, 'fields', 'waitMs'), 15_000);
  const challenge = quickChallenge();
  const held = await takeOver(storage, { ...TURN, challenge });
  t.is(challenge.waitedMs(), 15_000);
  t.is(held.token.epoch, 2);
  t.deepEqual(held.takenOver?.ended, []);
});

test('a renewal restarts the challenge, and the count is by the slower of two clocks', async (t) => {
  const place = scratch(t);
  place.git('config', 'durable.ttl', '8');
  const other = await openAs(t, place, { identity: { hostId: 'another' } });
  const holder = await acquire(other, TURN);
  let now = 0;
  const renewals: number[] = [];
  const held = await takeOver(await openAs(t, place), {
    ...TURN,
    challenge: {
      monotonicMs: () => now,
      // Twice as fast: by this clock alone the wait would be over at half of the time.
      uptimeMs: () => 2 * now,
      pause: async (ms) => {
        now += ms;
        if (now >= 10_000 && renewals.length === 0) {
          await holder.renew();
          renewals.push(now);
        }
      },
    },
  });
  t.is(renewals.length, 1);
  t.is(now, (renewals[0] ?? 0) + 15_000);
  t.is(held.token.epoch, 2);
  t.true(hasCode(await t.throwsAsync(holder.renew()), 'lease-lost'));
});

test('of eight takers of one dead holder one gets the lease, the others are told who', async (t) => {
  const place = scratch(t);
  const holder = await HolderProcess.start(t, place);
  await holder.must('turn', { turn: 'turn-one' });
  await holder.kill();
  const takers = await Promise.all(Array.from({ length: 8 }, () => HolderProcess.start(t, place)));
  const answers = await Promise.all(takers.map((one) => one.ask('take-over')));
  const winner = takers.find((_, index) => answers[index]?.error === undefined);
  const told = answers.filter(({ error }) => error === 'lease-held');
  t.is(told.length, 7);
  t.true(told.every(({ fields }) => at(fields, 'holder', 'pid') === winner?.pid));
});

test('an agent that lets go when it is asked to end is still taken over from, and what it left is ended', async (t) => {
  const place = scratch(t);
  const marker = 'the secret of a polite agent';
  const holder = await HolderProcess.start(t, place, { env: { RELEASE_ON_TERM: '1' } });
  await holder.must('turn', { turn: 'turn-one', marker });
  const background = Number(await holder.must('spawn', { marker, detached: true }));
  const held = await takeOver(await openAs(t, place), { ...TURN, force: true });
  t.deepEqual([isAlive(holder.pid), isAlive(background)], [false, false]);
  t.is(held.takenOver?.proof, 'it let go when its processes were ended');
  t.is(held.record.recovering?.turn, 'turn-one');
});

test('what a dead holder left running is ended also when the first taker died before it came to that', async (t) => {
  const place = scratch(t);
  const marker = 'the secret of a holder with two takers';
  const holder = await HolderProcess.start(t, place);
  await holder.must('acquire', { marker });
  const background = Number(await holder.must('spawn', { marker, detached: true }));
  await holder.kill();
  const taker = await HolderProcess.start(t, place, { faults: 'ref.move:rename:after=kill' });
  t.is((await taker.ask('take-over')).error, 'ended');
  t.true(isAlive(background));
  const held = await takeOver(await openAs(t, place), TURN);
  t.false(isAlive(background));
  t.true(held.takenOver?.ended.some(({ pid }) => pid === background));
  await held.release();
  const next = await acquire(await openAs(t, place), TURN);
  t.deepEqual(next.record.older, []);
});

test('background processes of a turn that was finished stay alive, also when its holder died before it let go', async (t) => {
  const place = scratch(t);
  const marker = 'the secret of a holder that finished';
  const holder = await HolderProcess.start(t, place);
  await holder.must('turn', { turn: 'turn-one', marker });
  const background = Number(await holder.must('spawn', { marker, detached: true }));
  t.teardown(() => process.kill(background, 'SIGKILL'));
  await holder.must('finish');
  await holder.kill();
  const held = await acquire(await openAs(t, place), TURN);
  t.is(held.takenOver?.epoch, 1);
  t.true(isAlive(background));
});
