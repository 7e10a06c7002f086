import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { hasCode } from '../../lib/errors.js';
import type { Event, EventOf } from '../../lib/event.js';
import { listConflicts } from '../../lib/decisions/conflict.js';
import { takeCheckpoint } from '../../lib/files/checkpoint.js';
import { restore } from '../../lib/files/restore.js';
import { runTransaction } from '../../lib/files/transaction.js';
import type { FaultPoint } from '../../lib/git/fault.js';
import type { Storage } from '../../lib/git/storage.js';
import { acquire } from '../../lib/lease/acquire.js';
import { leaseOf, readLease } from '../../lib/lease/record.js';
import { ownWorkspace } from '../../lib/lease/take.js';
import { Ledger } from '../../lib/ledger/ledger.js';
import type { RepairAction } from '../../lib/recovery/document.js';
import { repair } from '../../lib/recovery/repair.js';
import { recoveryReport } from '../../lib/recovery/report.js';
import { OPERATION, openAs } from '../helpers/lease-place.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import {
  allEvents,
  beginCall,
  endCall,
  openTurn,
  walk,
  type Says,
  type TurnPlace,
} from '../helpers/turn-place.js';

const CHILD = fileURLToPath(new URL('../helpers/repair-child.js', import.meta.url));

const text = (content: string): Buffer => Buffer.from(content);
const say = (path: string, expected: string): Says => ({ path, expected: text(expected) });

const FOREIGN = [{ path: 'foreign', why: 'foreign' }];
const NAMES = ['partial', 'emptied', 'written', 'gone', 'foreign', 'untouched'];

/** A turn that died in the middle of one call and of nothing else: every state of a file at once. */
async function half(place: Scratch, storage: Storage): Promise<TurnPlace> {
  for (const name of NAMES) place.write(name, `${name} before\n`);
  const turn = await openTurn(storage, { dead: true });
  await runTransaction(turn, [{ kind: 'write', path: 'by/transaction', bytes: text('t\n') }]);
  await beginCall(turn, { paths: [...NAMES, 'made/by call'].map((name) => say(name, `${name} AFTER\n`)) });
  place.write('partial', 'partial AF');
  place.write('emptied', '');
  place.write('written', 'written AFTER\n');
  place.write('made/by call', 'made/by');
  rmSync(join(place.dir, 'gone'));
  place.write('foreign', 'typed by a person\n');
  return turn;
}

const contents = (place: Scratch): Record<string, string | null> =>
  Object.fromEntries(
    [...NAMES, 'made/by call', 'by/transaction'].map((name) => {
      const file = join(place.dir, name);
      return [name, existsSync(file) ? readFileSync(file, 'utf8') : null];
    }),
  );

async function recovered(storage: Storage): Promise<Event<'turn.recovered'>> {
  const events = await allEvents({ ledger: Ledger.open(storage, 'task') });
  const found = events.map(({ event }) => event).find((event) => event.type === 'turn.recovered');
  if (found?.type !== 'turn.recovered') throw new Error('the turn was not recovered');
  return found;
}

test('roll back puts each touched path back as the turn found it, keeps a foreign one and names it', async (t) => {
  const place = scratch(t);
  await half(place, await openAs(t, place));
  const storage = await openAs(t, place);
  const result = await repair(storage, { action: 'roll-back' });
  t.deepEqual(result.restored, ['emptied', 'gone', 'partial', 'written']);
  t.deepEqual(result.removed, ['by/transaction', 'made/by call']);
  t.deepEqual(result.kept, FOREIGN);
  t.deepEqual(contents(place), {
    ...Object.fromEntries(NAMES.map((name) => [name, `${name} before\n`])),
    foreign: 'typed by a person\n',
    'made/by call': null,
    'by/transaction': null,
  });
  t.false(existsSync(join(place.dir, 'made')) || existsSync(join(place.dir, 'by')));
  t.deepEqual(await recoveryReport(storage), { interrupted: [], foreign: [] });
});

test('roll forward completes each intent, keeps a foreign path and names it', async (t) => {
  const place = scratch(t);
  await half(place, await openAs(t, place));
  const result = await repair(await openAs(t, place), { action: 'roll-forward' });
  t.deepEqual(result.restored, ['emptied', 'gone', 'made/by call', 'partial', 'untouched']);
  t.deepEqual([result.removed, result.kept], [[], FOREIGN]);
  t.deepEqual(contents(place), {
    ...Object.fromEntries([...NAMES, 'made/by call'].map((name) => [name, `${name} AFTER\n`])),
    foreign: 'typed by a person\n',
    'by/transaction': 't\n',
  });
});

test('keep changes no byte, and records the verdicts, the report and the checkpoint', async (t) => {
  const place = scratch(t);
  await half(place, await openAs(t, place));
  const before = walk(place.dir);
  const storage = await openAs(t, place);
  const [report] = (await recoveryReport(storage)).interrupted;
  const result = await repair(storage, { action: 'keep' });
  t.deepEqual(walk(place.dir), before);
  t.deepEqual([result.restored, result.removed, result.kept], [[], [], FOREIGN]);
  const event = await recovered(storage);
  t.like(event, {
    action: 'keep',
    files: { untouched: 1, written: 2, partial: 3, foreign: 1, deleted: 1, changed: 0 },
    checkpoint: result.checkpoint,
  });
  t.deepEqual(
    event.invocations.map(({ state }) => state),
    ['in-doubt'],
  );
  const kept = JSON.parse(place.git('cat-file', 'blob', event.report.oid)) as typeof report;
  t.deepEqual(kept, report);
});

test('restoring the checkpoint of a repair undoes it', async (t) => {
  for (const action of ['roll-back', 'roll-forward'] as const) {
    const place = scratch(t);
    place.write('.gitignore', 'gone\npartial\n');
    await half(place, await openAs(t, place));
    const before = contents(place);
    const storage = await openAs(t, place);
    const { checkpoint } = await repair(storage, { action });
    t.notDeepEqual(contents(place), before);
    const held = await acquire(storage, OPERATION);
    const context = {
      storage,
      ledger: Ledger.open(storage, 'task'),
      held,
      agent: 't',
      workspace: null,
      turn: null,
    };
    await restore(context, { checkpoint: checkpoint ?? '' });
    t.deepEqual(contents(place), before, action);
  }
});

test('after a repair the turn is over, the lease free, the processes ended, and nothing is left to repair', async (t) => {
  const place = scratch(t);
  const marker = 'marker of the dead turn';
  await openTurn(await openAs(t, place), { dead: true, marker });
  const orphan = spawn('sleep', ['60'], {
    detached: true,
    stdio: 'ignore',
    env: { ...place.env, DURABLE_MARKER: marker },
  });
  const ended = new Promise((resolve) =>
    orphan.on('exit', (_, signal) => {
      resolve(signal);
    }),
  );
  const storage = await openAs(t, place, { pid: 4_000_000 });
  await repair(storage, { action: 'keep' });
  t.is(await ended, 'SIGTERM');
  t.deepEqual(
    (await recovered(storage)).ended.map(({ pid }) => pid),
    [orphan.pid ?? 0],
  );
  t.is((await readLease(storage, leaseOf(ownWorkspace(storage))))?.record.state, 'free');
  t.true(hasCode(await t.throwsAsync(repair(storage, { action: 'keep' })), 'not-found'));
  t.true((await Ledger.open(storage, 'task').verify()).ok);
});

test('a turn whose holder is alive is not repaired', async (t) => {
  const place = scratch(t);
  const turn = await openTurn(await openAs(t, place));
  place.write('a', 'x');
  const before = walk(place.dir);
  const error = await t.throwsAsync(repair(await openAs(t, place), { action: 'roll-back' }));
  t.true(hasCode(error, 'lease-held'), String(error));
  t.deepEqual(walk(place.dir), before);
  await turn.held.assert();
});

test('a paused holder is ended when a person says so, and only then', async (t) => {
  const place = scratch(t);
  place.write('a', 'before\n');
  const child = spawn(process.execPath, [CHILD, 'hold', place.dir], {
    env: place.env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const ended = new Promise((resolve) =>
    child.on('exit', (_, signal) => {
      resolve(signal);
    }),
  );
  await new Promise((resolve) => child.stdout.once('data', resolve));
  child.kill('SIGSTOP');
  // Another program asks: not the parent of the paused one, whose children are never ended.
  const storage = await openAs(t, place, { pid: 4_000_000 });
  t.deepEqual(await recoveryReport(storage), { interrupted: [], foreign: [] });
  t.true(hasCode(await t.throwsAsync(repair(storage, { action: 'roll-back' })), 'lease-held'));
  const result = await repair(storage, { action: 'roll-back', takeOver: true });
  t.is(result.turn, 'turn');
  t.is(await ended, 'SIGKILL');
});

test('of several interrupted turns one must be named, by id or its beginning', async (t) => {
  const place = scratch(t);
  await openTurn(await openAs(t, place), { dead: true, task: 'first', turn: 'abcd' });
  rmSync(join(place.dir, '.git/durable/workspace'));
  await openTurn(await openAs(t, place), { dead: true, task: 'second', turn: 'abce' });
  const storage = await openAs(t, place);
  for (const turn of [undefined, 'abc']) {
    const request = { action: 'keep' as RepairAction, ...(turn === undefined ? {} : { turn }) };
    const error = await t.throwsAsync(repair(storage, request));
    t.true(hasCode(error, 'ambiguous') && error.fields.candidates.length === 2, String(error));
  }
  t.true(hasCode(await t.throwsAsync(repair(storage, { action: 'keep', turn: 'x' })), 'not-found'));
  t.is((await repair(storage, { action: 'keep', turn: 'abcd' })).turn, 'abcd');
  t.is((await repair(storage, { action: 'keep' })).turn, 'abce');
});

/** Runs `act` once, at the nth hit of a fault point. */
function interruption(point: FaultPoint, nth: number, act: () => void) {
  let left = nth;
  return {
    hit: (at: FaultPoint): void => {
      if (at !== point) return;
      left -= 1;
      if (left === 0) act();
    },
  };
}

test('a write that comes after the finding and before the rename is met, not overwritten', async (t) => {
  const place = scratch(t);
  await half(place, await openAs(t, place));
  const faults = interruption('stage.publish:rename:after', 1, () => {
    writeFileSync(join(place.dir, 'written'), 'typed in the middle of the repair\n');
  });
  const storage = await openAs(t, place, { faults });
  const result = await repair(storage, { action: 'roll-back' });
  t.deepEqual(result.kept, [...FOREIGN, { path: 'written', why: 'foreign' }]);
  t.is(readFileSync(join(place.dir, 'written'), 'utf8'), 'typed in the middle of the repair\n');
  t.is(readFileSync(join(place.dir, 'partial'), 'utf8'), 'partial before\n');
  const [met, ...more] = await conflictsOf(storage);
  t.deepEqual(more, []);
  t.deepEqual([met?.path, met?.state, met?.by], ['written', 'use-latest', 'recover']);
});

/** Types into `written` in the middle of a repair, and once that is recorded as a conflict does `then`. */
function meeting(place: Scratch, then: (file: string) => void): { hit: (at: FaultPoint) => void } {
  const file = join(place.dir, 'written');
  let isTyped = false;
  let isMet = false;
  const typing = interruption('stage.publish:rename:after', 1, () => {
    isTyped = true;
    writeFileSync(file, 'typed in the middle of the repair\n');
  });
  const hit = (at: FaultPoint): void => {
    typing.hit(at);
    if (!isTyped || isMet) return;
    isMet = place.git('log', '--format=%s', 'refs/durable/tasks/task').includes('conflict.detected');
    if (isMet) then(file);
  };
  return { hit };
}

test('a write that is met and gone again is decided too: the path has what the repair put there', async (t) => {
  const place = scratch(t);
  await half(place, await openAs(t, place));
  const faults = meeting(place, (file) => {
    writeFileSync(file, 'written AFTER\n');
  });
  const storage = await openAs(t, place, { faults });
  const result = await repair(storage, { action: 'roll-back' });
  t.deepEqual(result.kept, FOREIGN);
  t.is(readFileSync(join(place.dir, 'written'), 'utf8'), 'written before\n');
  const states = (await conflictsOf(storage)).map(({ path, state }) => `${path} ${state}`);
  t.deepEqual([...new Set(states)], ['written keep-mine']);
});

test('a conflict that a killed repair had met is decided by the one that ends the work', async (t) => {
  const place = scratch(t);
  await half(place, await openAs(t, place));
  const faults = meeting(place, () => {
    throw new Error('died');
  });
  const dying = await openAs(t, place, { faults });
  await t.throwsAsync(repair(dying, { action: 'roll-back' }), { message: 'died' });
  t.deepEqual(
    (await conflictsOf(dying)).map(({ state }) => state),
    ['open'],
  );
  const storage = await openAs(t, place);
  const result = await repair(storage, { action: 'roll-back' });
  t.deepEqual(result.kept, [...FOREIGN, { path: 'written', why: 'foreign' }]);
  t.deepEqual(
    (await conflictsOf(storage)).map(({ state, by }) => [state, by]),
    [['use-latest', 'recover']],
  );
});

test('a write that comes after the repair has put a path back is a conflict with both sides kept', async (t) => {
  const place = scratch(t);
  await half(place, await openAs(t, place));
  const faults = interruption('stage.drop:unlink:after', 1, () => {
    writeFileSync(join(place.dir, 'written'), 'late\n');
  });
  const storage = await openAs(t, place, { faults });
  await repair(storage, { action: 'roll-back' });
  t.is(readFileSync(join(place.dir, 'written'), 'utf8'), 'late\n');
  const events = (await allEvents({ ledger: Ledger.open(storage, 'task') })).map(({ event }) => event);
  const conflicts = events.filter((event) => event.type === 'conflict.detected');
  t.is(conflicts.length, 1);
  const [conflict] = conflicts;
  if (conflict?.type !== 'conflict.detected') return;
  t.like(conflict, { path: 'written', why: 'late-write' });
  t.is(place.git('cat-file', 'blob', oidOf(conflict.theirs) ?? ''), 'late');
  t.is(place.git('cat-file', 'blob', conflict.base?.oid ?? ''), 'written before');
  t.is((await conflictsOf(storage))[0]?.state, 'open');
});

test('a shell command in doubt is rolled back to the checkpoint before it; rolling forward leaves it', async (t) => {
  for (const action of ['roll-back', 'roll-forward'] as const) {
    const place = scratch(t);
    place.write('gone', 'gone\n');
    const storage = await openAs(t, place);
    const turn = await openTurn(storage, { dead: true });
    const { checkpoint } = await takeCheckpoint(storage, turn.ledger, {
      message: 'before Bash',
      reason: 'before-tool',
      turn: turn.turn,
      by: { agent: 'tester', workspace: turn.workspace },
    });
    const before = walk(place.dir);
    await beginCall(turn, { tool: 'Bash', checkpoint });
    place.write('README', 'by the shell\n');
    place.write('new/made', 'by the shell\n');
    rmSync(join(place.dir, 'gone'));
    const changed = walk(place.dir);
    await repair(await openAs(t, place), { action });
    t.deepEqual(walk(place.dir), action === 'roll-back' ? before : changed);
  }
});

test('a folder that stands where a file is to go is kept and named, the rest is put back', async (t) => {
  const place = scratch(t);
  place.write('file', 'before\n');
  place.write('other', 'before\n');
  const turn = await openTurn(await openAs(t, place), { dead: true });
  const call = await beginCall(turn, { paths: [{ path: 'file', expected: null }, say('other', 'after\n')] });
  rmSync(join(place.dir, 'file'));
  place.write('other', 'after\n');
  await endCall(turn, call);
  mkdirSync(join(place.dir, 'file'));
  place.write('file/of somebody', 'x');
  const result = await repair(await openAs(t, place), { action: 'roll-back' });
  t.deepEqual(
    [result.restored, result.removed, result.kept],
    [['other'], [], [{ path: 'file', why: 'in-the-way' }]],
  );
  t.is(readFileSync(join(place.dir, 'file/of somebody'), 'utf8'), 'x');
});

test('several intents on one path: back is as the turn found it, forward is the last intent', async (t) => {
  for (const [action, content] of [
    ['roll-back', 'zero\n'],
    ['roll-forward', 'three\n'],
  ] as const) {
    const place = scratch(t);
    place.write('a', 'zero\n', 0o600);
    const turn = await openTurn(await openAs(t, place), { dead: true });
    await runTransaction(turn, [{ kind: 'write', path: 'a', bytes: text('one\n') }]);
    const second = await beginCall(turn, { paths: [say('a', 'two\n')] });
    writeFileSync(join(place.dir, 'a'), 'two\n');
    await endCall(turn, second);
    await beginCall(turn, { paths: [say('a', 'three\n')] });
    writeFileSync(join(place.dir, 'a'), 'thr');
    await runTransaction(turn, [{ kind: 'write', path: 'b', bytes: text('one\n') }]);
    await beginCall(turn, { paths: [say('b', 'two\n')] });
    await repair(await openAs(t, place), { action });
    t.is(readFileSync(join(place.dir, 'a'), 'utf8'), content);
    t.is(walk(place.dir)['a']?.split(' ')[1], '600');
    const b = join(place.dir, 'b');
    t.is(existsSync(b) ? readFileSync(b, 'utf8') : null, action === 'roll-back' ? null : 'two\n');
  }
});

async function conflictsOf(storage: Storage): Promise<{ path: string; state: string; by: string | null }[]> {
  const listed = await listConflicts(storage);
  return listed.map(({ conflict: { state, detected, resolved } }) => {
    return { path: detected.event.path, state, by: resolved?.event.by ?? null };
  });
}

const oidOf = (theirs: EventOf<'conflict.detected'>['theirs']): string | undefined =>
  typeof theirs === 'string' ? undefined : theirs?.oid;
