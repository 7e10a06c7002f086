import { spawn } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { ExactJson } from '../../lib/exact-json.js';
import { takeCheckpoint } from '../../lib/files/checkpoint.js';
import { runTransaction } from '../../lib/files/transaction.js';
import type { InterruptedTurn } from '../../lib/recovery/document.js';
import { recoveryReport } from '../../lib/recovery/report.js';
import type { Storage } from '../../lib/git/storage.js';
import { readFolder, writeFolder } from '../helpers/disk-rebuild.js';
import { openAs } from '../helpers/lease-place.js';
import { bytes } from '../helpers/recording.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { beginCall, endCall, openTurn, type Says, type TurnPlace } from '../helpers/turn-place.js';

const text = (content: string): Buffer => Buffer.from(content);

async function only(storage: Storage): Promise<InterruptedTurn> {
  const [turn, ...others] = (await recoveryReport(storage)).interrupted;
  if (turn === undefined || others.length > 0) throw new Error('not one interrupted turn');
  return turn;
}

const states = (turn: InterruptedTurn): Record<string, string> =>
  Object.fromEntries(turn.files.map(({ path, state }) => [path, state]));

const oid = (place: Scratch, path: string): string => place.git('hash-object', '--no-filters', '--', path);

const say = (path: string, expected: string): Says => ({ path, expected: text(expected) });

/** An edit that went through: call, write, end. */
async function edit(turn: TurnPlace, place: Scratch, path: string, content: string): Promise<void> {
  const call = await beginCall(turn, { paths: [say(path, content)] });
  place.write(path, content);
  await endCall(turn, call);
}

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

const DRIFTS: readonly { says: string; plant: (place: Scratch) => void; drift: string[] }[] = [
  { says: 'nothing', plant: () => undefined, drift: [] },
  {
    says: 'an edit of an unreported file',
    plant: (place) => {
      place.write('other', 'edited\n');
    },
    drift: ['other'],
  },
  {
    says: 'a new file',
    plant: (place) => {
      place.write('new file', 'x');
    },
    drift: ['new file'],
  },
  {
    says: 'a deleted unreported file',
    plant: (place) => {
      rmSync(join(place.dir, 'other'));
    },
    drift: ['other'],
  },
  {
    says: 'a file that was dirty before and is clean now',
    plant: (place) => {
      place.git('checkout', '--', 'dirty');
    },
    drift: ['dirty'],
  },
  {
    says: 'another edit of a file that was dirty before',
    plant: (place) => {
      place.write('dirty', 'again\n');
    },
    drift: [],
  },
  {
    says: 'an edit of a reported file',
    plant: (place) => {
      place.write('touched', 'typed over\n');
    },
    drift: [],
  },
  {
    says: 'a reported file staged',
    plant: (place) => {
      place.git('add', 'touched');
    },
    drift: [],
  },
  {
    says: 'a reported file put back as in HEAD',
    plant: (place) => {
      place.git('checkout', '--', 'touched');
    },
    drift: [],
  },
  {
    says: 'a reported file committed',
    plant: (place) => {
      place.git('commit', '-q', '-m', 'x', '--', 'touched');
    },
    drift: [],
  },
  {
    says: 'a reported file as in HEAD taken out of the index',
    plant: (place) => {
      place.git('checkout', '--', 'touched');
      place.git('rm', '-q', '--cached', 'touched');
    },
    drift: ['touched'],
  },
  {
    says: 'a file that was dirty before committed',
    plant: (place) => {
      place.git('commit', '-q', '-m', 'x', '--', 'dirty');
    },
    drift: ['dirty'],
  },
  {
    says: 'an unreported rename',
    plant: (place) => {
      place.git('mv', 'other', 'elsewhere');
    },
    drift: ['elsewhere', 'other'],
  },
];

test('drift names the paths on which git status and the report disagree', async (t) => {
  const place = scratch(t);
  for (const name of ['touched', 'other', 'dirty', 'staged']) place.write(name, `${name}\n`);
  place.write('.gitignore', 'ignored\n');
  place.git('add', '-A');
  place.git('commit', '-q', '-m', 'files');
  place.write('dirty', 'dirty\nmore\n');
  place.write('staged', 'staged\nmore\n');
  place.git('add', 'staged');
  place.write('untracked', 'u\n');
  const turn = await openTurn(await openAs(t, place), { dead: true });
  await edit(turn, place, 'touched', 'after\n');
  await edit(turn, place, 'made', 'after\n');
  await edit(turn, place, 'ignored', 'after\n');
  await edit(turn, place, 'staged', 'staged\n');
  await edit(turn, place, 'untracked', '');
  rmSync(join(place.dir, 'untracked'));
  const root = bytes(realpathSync(place.dir));
  const before = readFolder(root);
  for (const { says, plant, drift } of DRIFTS) {
    writeFolder(root, before);
    plant(place);
    const report = await only(await openAs(t, place));
    t.deepEqual([report.drift, report.gitStatusMatches], [drift, drift.length === 0], says);
  }
});

test('a file is compared with HEAD as git would store it', async (t) => {
  const place = scratch(t);
  place.git('config', 'filter.shout.clean', 'tr a-z A-Z');
  place.git('config', 'filter.shout.smudge', 'tr A-Z a-z');
  place.write('.gitattributes', '*.txt text eol=crlf\n*.up filter=shout\nold.crlf -text\n');
  place.write('lines.txt', 'one\r\ntwo\r\n');
  place.write('word.up', 'word\n');
  place.write('tool', 'x');
  place.write('odd "name"\n\\é', 'x\n');
  place.write('hidden', 'x\n');
  place.git('add', '-A');
  place.git('commit', '-q', '-m', 'files');
  place.git('update-index', '--assume-unchanged', 'hidden');
  const turn = await openTurn(await openAs(t, place), { dead: true });
  for (const name of ['lines.txt', 'word.up', 'odd "name"\n\\é']) {
    const content = readFileSync(join(place.dir, name), 'utf8');
    await edit(turn, place, name, 'something else\n');
    await edit(turn, place, name, content);
  }
  await edit(turn, place, 'hidden', 'not looked at\n');
  place.write('lines.txt', 'one\ntwo\n');
  await edit(turn, place, 'lines.txt', 'one\ntwo\n');
  const report = await only(await openAs(t, place));
  t.deepEqual(report.drift, []);
  chmodSync(join(place.dir, 'tool'), 0o755);
  t.deepEqual((await only(await openAs(t, place))).drift, ['tool']);
});

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
