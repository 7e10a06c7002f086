import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { acquire } from '../../lib/lease/acquire.js';
import { entryOf } from '../../lib/lease/processes.js';
import { readLease, type LeaseRecord } from '../../lib/lease/record.js';
import { takeOver } from '../../lib/lease/takeover.js';
import { Ledger } from '../../lib/ledger/ledger.js';
import { HolderProcess, isAlive, type StartOptions } from '../helpers/holder-process.js';
import { at } from '../helpers/json.js';
import { openAs, quickChallenge, TURN } from '../helpers/lease-place.js';
import { stateOf, until } from '../helpers/processes.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Kept {
  readonly place: Scratch;
  readonly holder: HolderProcess;
  readonly task: string;
  readonly keeper: number;
  /** The lease record as it is now. */
  readonly record: () => LeaseRecord;
}

const lineAt = (place: Scratch, ref: string): unknown =>
  JSON.parse(place.git('log', '-1', '--format=%B', ref).trimEnd().split('\n').at(-1) ?? 'null');

/** A turn of one second's TTL with its keeper at work. */
async function kept(t: ExecutionContext, options: StartOptions & { marker?: string } = {}): Promise<Kept> {
  const place = scratch(t);
  place.git('config', 'durable.ttl', '1');
  const { marker, ...start } = options;
  const holder = await HolderProcess.start(t, place, start);
  const started = await holder.must('turn', {
    turn: 'turn-one',
    ...(marker === undefined ? {} : { marker }),
  });
  await holder.must('keeper');
  const ref = `refs/durable/leases/${String(at(started, 'record', 'lease'))}`;
  const record = (): LeaseRecord => lineAt(place, ref) as LeaseRecord;
  await until('the keeper has renewed', () => record().keeper !== null);
  const keeper = record().keeper?.pid ?? 0;
  t.teardown(() => {
    if (isAlive(keeper)) process.kill(keeper, 'SIGKILL');
  });
  return { place, holder, task: String(at(started, 'task')), keeper, record };
}

const events = (place: Scratch, task: string): unknown[] =>
  place
    .git('log', '--format=%B%x00', `refs/durable/tasks/${task}`)
    .split('\0')
    .map((message) => message.split('\n').find((line) => line.startsWith('{')))
    .flatMap((line): unknown[] => (line === undefined ? [] : [JSON.parse(line)]));

const types = (place: Scratch, task: string): unknown[] => events(place, task).map((one) => at(one, 'type'));

test('a keeper renews, each time with a fresh nonce, and leaves no litter', async (t) => {
  const { place, record, holder } = await kept(t);
  const objects = (): number => Number.parseInt(place.git('count-objects'), 10);
  const before = objects();
  const seen = new Set<string>();
  await until('four renewals', () => seen.add(record().nonce).size >= 4);
  // In the middle of a renewal there is one more: the record that it supersedes.
  await until('no object more than before', () => objects() <= before);
  t.is(seen.size, 4);
  await holder.must('append');
});

test('when the agent dies its keeper records the turn as interrupted, says what still runs, and ends', async (t) => {
  const marker = 'the secret of an agent that dies';
  const { place, holder, task, keeper, record } = await kept(t, { marker });
  const background = Number(await holder.must('spawn', { marker, detached: true }));
  t.teardown(() => process.kill(background, 'SIGKILL'));
  await holder.kill();
  await until('it is recorded', () => types(place, task)[0] === 'turn.interrupted');
  const [interrupted] = events(place, task);
  t.is(at(interrupted, 'detectedBy'), 'keeper');
  const survivors = at(interrupted, 'survivors');
  t.deepEqual(Array.isArray(survivors) ? survivors.map((one) => at(one, 'pid')) : [], [background]);
  await until('the keeper has ended', () => !isAlive(keeper));
  // The lease is left as it is: taking over goes through recovery.
  t.is(record().state, 'held');
  const storage = await openAs(t, place);
  t.is(at(await t.throwsAsync(acquire(storage, TURN)), 'code'), 'recovery-needed');
  t.true((await Ledger.open(storage, task).verify()).ok);
});

test('a turn that was finished is not interrupted by the death of its agent', async (t) => {
  const { place, holder, task, keeper } = await kept(t);
  await holder.must('finish');
  await holder.kill();
  await until('the keeper has ended', () => !isAlive(keeper));
  t.is(types(place, task)[0], 'turn.finished');
  t.is((await acquire(await openAs(t, place), TURN)).token.epoch, 2);
});

test('a release has seen its keeper end, and nothing of ours runs or is locked afterwards', async (t) => {
  const { place, holder, keeper, record } = await kept(t);
  await holder.must('finish');
  await holder.must('release');
  t.false(isAlive(keeper));
  t.is(record().state, 'free');
  t.false(existsSync(join(place.dir, '.git/gc.pid')));
});

test('a keeper whose lease was taken over ends, and records nothing', async (t) => {
  const { place, holder, task, keeper } = await kept(t, { identity: { hostId: 'another' } });
  const before = types(place, task).length;
  // The keeper is judged as another host's: it renews, so the challenger has to be lucky; a paused one is not.
  process.kill(keeper, 'SIGSTOP');
  await takeOver(await openAs(t, place), { ...TURN, challenge: quickChallenge() });
  process.kill(keeper, 'SIGCONT');
  await until('the keeper has ended', () => !isAlive(keeper));
  t.is(types(place, task).length, before);
  t.is((await holder.ask('append')).error, 'lease-lost');
});

test('with its keeper killed a turn goes on while the lease can be renewed, and another start is still refused', async (t) => {
  const { place, holder, keeper } = await kept(t);
  process.kill(keeper, 'SIGKILL');
  await until('the keeper is dead', () => !isAlive(keeper));
  t.is(at(await t.throwsAsync(acquire(await openAs(t, place), TURN)), 'code'), 'lease-held');
  await holder.must('append');
  await holder.must('renew');
  await holder.must('write', { path: 'README', text: 'still' });
  await holder.must('release');
});

test('a keeper that was stopped past the TTL renews against its own record, and says how late', async (t) => {
  const { place, task, keeper, record, holder } = await kept(t);
  process.kill(keeper, 'SIGSTOP');
  const { nonce } = record();
  // The machine's own clock has to pass here: it is what the keeper counts by.
  const end = performance.now() + 1500;
  await until('more than a TTL has passed', () => performance.now() > end);
  process.kill(keeper, 'SIGCONT');
  await until('it says so', () => types(place, task)[0] === 'git.observed');
  t.not(record().nonce, nonce);
  t.regex(String(at(events(place, task)[0], 'what')), /renewed [1-9]\d* s after/);
  await holder.must('append');
});

test('a full disk or a locked ref does not end a keeper: it renews when it can again', async (t) => {
  const { place, keeper, record, holder } = await kept(t, {
    keeperFaults: 'ref.value:write:before#2=enospc,object.temp:write:before#4=enospc',
  });
  const seen = new Set<string>();
  await until('it renewed again', () => seen.add(record().nonce).size >= 4);
  t.true(isAlive(keeper));
  await holder.must('append');
  t.is(place.run('git', ['fsck', '--strict', '--no-dangling']).code, 0);
});

test('a keeper that is killed at any point of a renewal blocks nobody', async (t) => {
  for (const point of [
    'ref.lock:link:after',
    'ref.value:write:after',
    'ref.move:rename:after',
    'object.drop:unlink:before',
  ]) {
    const { place, holder, keeper } = await kept(t, { keeperFaults: `${point}#2=kill` });
    await until(`the keeper died at ${point}`, () => !isAlive(keeper));
    await holder.must('append');
    await holder.must('renew');
    await holder.must('release');
    t.is(place.run('git', ['fsck', '--strict', '--no-dangling']).code, 0, point);
    t.is(place.run('find', ['.git', '-name', '*.lock']).stdout, '', point);
  }
});

test('a keeper ends when its repository is deleted', async (t) => {
  const { place, keeper } = await kept(t);
  const away = join(place.top, 'away');
  renameSync(place.dir, away);
  rmSync(away, { recursive: true, force: true });
  await until('the keeper has ended', () => !isAlive(keeper));
  t.false(isAlive(keeper));
});

test('no secret stands on the command line or in the environment of a keeper, and it is in a session of its own', async (t) => {
  const marker = 'the secret of an agent with a keeper';
  const { keeper, holder } = await kept(t, { marker, env: { DURABLE_MARKER: marker } });
  const read = (file: string): string => readFileSync(`/proc/${String(keeper)}/${file}`, 'latin1');
  t.false(read('cmdline').includes(marker));
  t.false(read('environ').includes(marker));
  t.is(entryOf(keeper)?.session, keeper);
  t.is(spawnSync('readlink', [`/proc/${String(keeper)}/cwd`]).stdout.toString(), '/\n');
  await holder.must('release');
});

test('git gc refuses to run during a turn, and runs after it', async (t) => {
  const { place, holder } = await kept(t);
  const during = place.run('git', ['gc', '--auto']);
  const refused = place.run('git', ['gc']);
  t.is(during.code, 0);
  t.not(refused.code, 0);
  t.regex(refused.stderr, new RegExp(`already running.*pid ${String(holder.pid)}`, 's'));
  await holder.must('finish');
  await holder.must('release');
  t.is(place.run('git', ['gc', '--quiet']).code, 0);
  const lease = place.git('for-each-ref', '--format=%(refname:lstrip=3)', 'refs/durable/leases');
  t.is((await readLease(await openAs(t, place), lease))?.record.epoch, 1);
});

test("a gc.pid of somebody who is alive is left alone, and a dead one's is replaced", async (t) => {
  const place = scratch(t);
  const storage = await openAs(t, place);
  const file = join(place.dir, '.git/gc.pid');
  const hostname = storage.identity.here().hostname;
  place.write('.git/gc.pid', `1 ${hostname}`);
  const first = await acquire(storage, TURN);
  t.is(readFileSync(file, 'utf8'), `1 ${hostname}`);
  await first.release();
  t.is(readFileSync(file, 'utf8'), `1 ${hostname}`);
  place.write('.git/gc.pid', `4194303 ${hostname}`);
  const second = await acquire(storage, TURN);
  t.true(readFileSync(file, 'utf8').startsWith(`${String(process.pid)} ${hostname} git-durable {`));
  await second.release();
  t.false(existsSync(file));
});

test('a keeper that is paused on the lock of the lease does not stand in the way of a release', async (t) => {
  const { place, holder, keeper, record } = await kept(t, { keeperFaults: 'ref.lock:link:after#2=stop' });
  await until('the keeper is stopped', () => stateOf(keeper) === 'T');
  await holder.must('release');
  t.false(isAlive(keeper));
  t.is(record().state, 'free');
  t.is(place.run('find', ['.git', '-name', '*.lock']).stdout, '');
});
