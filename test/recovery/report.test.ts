import { spawn } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { ExactJson } from '../../lib/exact-json.js';
import { takeCheckpoint } from '../../lib/files/checkpoint.js';
import { runTransaction } from '../../lib/files/transaction.js';
import type { InterruptedTurn } from '../../lib/recovery/document.js';
import { recoveryReport } from '../../lib/recovery/report.js';
import { openAs } from '../helpers/lease-place.js';
import { edit, only, say } from '../helpers/reported.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { beginCall, endCall, openTurn } from '../helpers/turn-place.js';

const text = (content: string): Buffer => Buffer.from(content);

const states = (turn: InterruptedTurn): Record<string, string> =>
  Object.fromEntries(turn.files.map(({ path, state }) => [path, state]));

const oid = (place: Scratch, path: string): string => place.git('hash-object', '--no-filters', '--', path);

test('a repository with nothing interrupted reports nothing', async (t) => {
  const place = scratch(t);
  t.deepEqual(await recoveryReport(await openAs(t, place)), { interrupted: [], foreign: [] });
});

test('a turn whose holder is alive is not interrupted', async (t) => {
  const place = scratch(t);
  await openTurn(await openAs(t, place));
  t.deepEqual(await recoveryReport(await openAs(t, place)), { interrupted: [], foreign: [] });
});

test('a turn whose holder is dead is reported with its calls, its files and their images', async (t) => {
  const place = scratch(t);
  for (const name of ['written', 'partial', 'foreign', 'deleted', 'untouched', 'edited'])
    place.write(name, `${name} before\n`);
  place.git('add', '-A');
  place.git('commit', '-q', '-m', 'files');
  const turn = await openTurn(await openAs(t, place), { dead: true });
  await edit(turn, place, 'edited', 'edited after\n');
  await runTransaction(turn, [{ kind: 'write', path: 'written', bytes: text('written after\n') }]);
  const doubt = await beginCall(turn, {
    tool: 'Write',
    paths: ['partial', 'foreign', 'deleted', 'untouched', 'absent'].map((name) =>
      say(name, `${name} AFTER\n`),
    ),
  });
  const before = Object.fromEntries(
    ['partial', 'foreign', 'deleted'].map((name) => [name, oid(place, name)]),
  );
  place.write('partial', 'partial AFT');
  place.write('foreign', 'typed by somebody\n');
  rmSync(join(place.dir, 'deleted'));
  const waiting = await beginCall(turn, { tool: 'Bash', started: false, paths: [say('later', 'x')] });
  const report = await only(await openAs(t, place));
  t.like(report, {
    turn: 'turn',
    task: 'task',
    objective: 'change some files',
    agent: 'tester',
    detectedBy: 'recover',
  });
  t.deepEqual(states(report), {
    absent: 'untouched',
    deleted: 'deleted',
    edited: 'written',
    foreign: 'foreign',
    partial: 'partial',
    untouched: 'untouched',
    written: 'written',
  });
  t.deepEqual(
    report.invocations.map(({ id, state }) => [id === doubt || id === waiting ? id : 'edit', state]),
    [
      ['edit', 'finished'],
      [doubt, 'in-doubt'],
      [waiting, 'not-started'],
    ],
  );
  const partial = report.files.find(({ path }) => path === 'partial');
  t.deepEqual(partial, {
    path: 'partial',
    state: 'partial',
    before: before['partial'] ?? '',
    expected: place.run('git', ['hash-object', '--stdin'], { input: 'partial AFTER\n' }).stdout.trim(),
    now: oid(place, 'partial'),
    beyond: null,
  });
  t.is(report.files.find(({ path }) => path === 'deleted')?.now, null);
  t.is(report.files.find(({ path }) => path === 'absent')?.before, null);
  t.deepEqual([report.gitStatusMatches, report.drift], [true, []]);
});

test('a transaction that was rolled back is no intent of the turn', async (t) => {
  const place = scratch(t);
  const turn = await openTurn(
    await openAs(t, place, {
      faults: {
        hit: (point) => {
          if (point === 'stage.publish:rename:after') throw new Error('as if it died');
        },
      },
    }),
    { dead: true },
  );
  const changes = ['a', 'b', 'c'].map((path) => ({ kind: 'write' as const, path, bytes: text(path) }));
  await t.throwsAsync(runTransaction(turn, changes));
  const { files } = await only(await openAs(t, place));
  t.deepEqual(
    files.map(({ path }) => path),
    [],
  );
});

test('reading the report writes nothing: not an object, not a ref, not a file', async (t) => {
  const place = scratch(t);
  const turn = await openTurn(await openAs(t, place), { dead: true });
  await edit(turn, place, 'a', 'a\n');
  const listing = (): string => place.run('find', ['.', '-type', 'f', '-printf', '%p %T@ %s\\n']).stdout;
  await turn.storage.close();
  const before = listing();
  const storage = await openAs(t, place);
  await only(storage);
  await storage.close();
  t.is(listing(), before);
});

test('a pending approval comes back with its exact arguments, an answered one does not', async (t) => {
  const place = scratch(t);
  const turn = await openTurn(await openAs(t, place), { dead: true });
  const args = { command: 'rm -rf "a b"\n', list: [1, 2.5, null], deep: { é: '\u0000' } };
  const [kept] = await turn.ledger.contents.keep([text(JSON.stringify(args))]);
  if (kept === undefined) throw new Error('nothing kept');
  const request = (approval: string) => ({
    type: 'approval.requested' as const,
    turn: turn.turn,
    approval,
    invocation: null,
    tool: 'Bash',
    summary: 'rm',
    args: kept,
    command: null,
    cwd: '.',
    fingerprint: 'f'.repeat(64),
    checkpoint: null,
    expiresAt: null,
    invalidOnChange: false,
  });
  const by = { lease: turn.held.token, agent: 'tester', workspace: turn.workspace };
  await turn.ledger.append(() => [request('first'), request('second')], by);
  await turn.ledger.append(
    () => [
      {
        type: 'approval.resolved',
        approval: 'second',
        decision: 'rejected',
        by: 'me',
        feedback: null,
        feedbackSummary: '',
      },
    ],
    { ...by, lease: null },
  );
  const { approvals } = await only(await openAs(t, place));
  t.deepEqual(
    approvals.map(({ id, tool, args: exact, fingerprint }) => ({ id, tool, exact, fingerprint })),
    [{ id: 'first', tool: 'Bash', exact: new ExactJson(JSON.stringify(args)), fingerprint: 'f'.repeat(64) }],
  );
});

test('a process that the dead turn left running is found by the marker in its environment', async (t) => {
  const place = scratch(t);
  await openTurn(await openAs(t, place), { dead: true, marker: 'a secret of this turn' });
  const orphan = spawn('sleep', ['60'], {
    detached: true,
    stdio: 'ignore',
    env: { ...place.env, DURABLE_MARKER: 'a secret of this turn' },
  });
  const other = spawn('sleep', ['60'], { stdio: 'ignore', env: { ...place.env, DURABLE_MARKER: 'another' } });
  t.teardown(() => {
    orphan.kill('SIGKILL');
    other.kill('SIGKILL');
  });
  const host = { pid: endedPid(orphan.pid) };
  const { orphans } = await only(await openAs(t, place, host));
  t.deepEqual(
    orphans.map(({ pid, command }) => ({ pid, command })),
    [{ pid: orphan.pid ?? 0, command: 'sleep 60' }],
  );
  t.true(Math.abs(Date.parse(orphans[0]?.startedAt ?? '') - Date.now()) < 60_000);
});

/** A caller that is not the parent of the process asked about: children of the caller are never orphans. */
function endedPid(pid: number | undefined): number {
  return (pid ?? 0) + 1_000_000;
}

test('names that are not UTF-8, links and folders in the way are reported', async (t) => {
  const place = scratch(t);
  const turn = await openTurn(await openAs(t, place), { dead: true });
  const odd = 'caf\udce9';
  await runTransaction(turn, [
    { kind: 'write', path: odd, bytes: text('x') },
    { kind: 'symlink', path: 'link', target: 'nowhere' },
    { kind: 'write', path: 'folder', bytes: text('x') },
  ]);
  rmSync(join(place.dir, 'folder'));
  mkdirSync(join(place.dir, 'folder'));
  rmSync(join(place.dir, 'link'));
  symlinkSync('elsewhere', join(place.dir, 'link'));
  const report = await only(await openAs(t, place));
  t.deepEqual(states(report), { [odd]: 'written', folder: 'untouched', link: 'foreign' });
  t.deepEqual(report.drift, []);
});

test('what a shell command in doubt changed is found against the checkpoint before it', async (t) => {
  const place = scratch(t);
  place.write('.gitignore', 'ignored\n');
  place.write('known', 'known\n');
  place.write('gone', 'gone\n');
  const storage = await openAs(t, place);
  const turn = await openTurn(storage, { dead: true });
  const { checkpoint } = await takeCheckpoint(storage, turn.ledger, {
    message: 'before Bash',
    reason: 'before-tool',
    turn: turn.turn,
    by: { agent: 'tester', workspace: turn.workspace },
  });
  await beginCall(turn, { tool: 'Bash', checkpoint });
  await edit(turn, place, 'known', 'known after\n');
  place.write('made', 'by the shell\n');
  place.write('README', 'changed by the shell\n');
  rmSync(join(place.dir, 'gone'));
  const report = await only(await openAs(t, place));
  t.deepEqual(states(report), { README: 'changed', gone: 'changed', known: 'written', made: 'changed' });
  t.deepEqual(report.files.find(({ path }) => path === 'gone')?.now, null);
  t.deepEqual(report.drift, []);
});

test('what a finished shell command changed is the difference of its two checkpoints', async (t) => {
  const place = scratch(t);
  const storage = await openAs(t, place);
  const turn = await openTurn(storage, { dead: true });
  const snapshot = async (): Promise<string> =>
    (
      await takeCheckpoint(storage, turn.ledger, {
        message: 'around Bash',
        reason: 'manual',
        turn: turn.turn,
        by: { agent: 'tester', workspace: turn.workspace },
      })
    ).checkpoint;
  const call = await beginCall(turn, { tool: 'Bash', checkpoint: await snapshot() });
  place.write('made', 'by the shell\n');
  place.write('README', 'changed by the shell\n');
  await endCall(turn, call, await snapshot());
  place.write('README', 'typed by somebody\n');
  const report = await only(await openAs(t, place));
  t.deepEqual(states(report), { README: 'foreign', made: 'written' });
});

test('a work tree that was initialised again under a new id still shows the old interrupted turn', async (t) => {
  const place = scratch(t);
  const turn = await openTurn(await openAs(t, place), { dead: true });
  rmSync(join(turn.storage.layout.local, 'workspace'));
  const storage = await openAs(t, place);
  t.is((await only(storage)).turn, 'turn');
});

test('an interrupted turn of another work tree is shown there, and here only when all are asked for', async (t) => {
  const place = scratch(t);
  const linked = join(place.top, 'linked tree');
  place.git('worktree', 'add', '-q', '-b', 'linked', linked);
  const turn = await openTurn(await openAs(t, place, { dir: linked }), { dead: true });
  const call = await beginCall(turn, { paths: [say('there', 'x\n')] });
  writeFileSync(join(linked, 'there'), 'x\n');
  await endCall(turn, call);
  const here = await openAs(t, place);
  t.deepEqual(await recoveryReport(here), { interrupted: [], foreign: [] });
  const [found] = (await recoveryReport(here, { all: true })).interrupted;
  t.deepEqual(found === undefined ? null : states(found), { there: 'written' });
  t.deepEqual(found?.drift, []);
  t.is((await only(await openAs(t, place, { dir: linked }))).turn, 'turn');
});

test('in a SHA-256 repository without a commit the report is the same', async (t) => {
  const place = scratch(t, { objectFormat: 'sha256', commit: false });
  const turn = await openTurn(await openAs(t, place), { dead: true });
  await edit(turn, place, 'a', 'a\n');
  const report = await only(await openAs(t, place));
  t.is(report.files[0]?.now?.length, 64);
  t.deepEqual([states(report), report.drift], [{ a: 'written' }, []]);
});
