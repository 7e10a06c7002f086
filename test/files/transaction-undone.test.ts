/** Transactions that meet somebody else, a full disk or a missing permission half way: all of it is put back, or said not to be. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { hasCode, isDurableError } from '../../lib/errors.js';
import { runTransaction, type Change } from '../../lib/files/transaction.js';
import type { FaultPoint } from '../../lib/git/fault.js';
import { text, write } from '../helpers/changes.js';
import { openAs } from '../helpers/lease-place.js';
import { at } from '../helpers/json.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { allEvents, eventTypes, openTurn, walk } from '../helpers/turn-place.js';

/** Runs `act` at one fault point, once armed: what another program does at that very moment. */
function interruption() {
  let point: FaultPoint | null = null;
  let act: () => void = () => undefined;
  let left = 0;
  return {
    faults: {
      hit: (at: FaultPoint): void => {
        if (at !== point) return;
        left -= 1;
        if (left !== 0) return;
        point = null;
        act();
      },
    },
    at: (when: FaultPoint, nth: number, what: () => void): void => {
      point = when;
      left = nth;
      act = what;
    },
  };
}

const noSpace = (): void => {
  throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
};

const NINETEEN = Array.from({ length: 19 }, (_, index) => `f${String(index).padStart(2, '0')}`);

test('a file changed by somebody else in the middle of nineteen: the others go back, his bytes stay', async (t) => {
  const place = scratch(t);
  for (const name of NINETEEN) place.write(name, `${name} old\n`);
  const { faults, at } = interruption();
  const turn = await openTurn(await openAs(t, place, { faults }));
  const before = walk(place.dir);
  at('stage.publish:rename:after', 7, () => {
    place.write('f11', 'somebody else\n');
  });
  const error = await t.throwsAsync(
    runTransaction(
      turn,
      NINETEEN.map((name) => write(name, `${name} new\n`)),
    ),
  );
  t.true(hasCode(error, 'conflict') && error.fields.path === 'f11', String(error));
  const after = walk(place.dir);
  t.is(readFileSync(join(place.dir, 'f11'), 'utf8'), 'somebody else\n');
  t.deepEqual({ ...after, f11: '' }, { ...before, f11: '' });
  t.deepEqual((await eventTypes(turn)).slice(-3), [
    'transaction.prepared',
    'transaction.rolled-back',
    'conflict.detected',
  ]);
  const conflict = (await allEvents(turn)).at(-1)?.event;
  t.true(conflict?.type === 'conflict.detected' && conflict.why === 'changed-since-read');
});

test('an edit in place between check and rename is found, put back and named', async (t) => {
  const place = scratch(t);
  place.write('a', 'a old\n');
  place.write('b', 'b old\n');
  const { faults, at } = interruption();
  const turn = await openTurn(await openAs(t, place, { faults }));
  at('stage.publish:rename:before', 2, () => {
    writeFileSync(join(place.dir, 'b'), 'typed by the user\n');
  });
  const error = await t.throwsAsync(runTransaction(turn, [write('a', 'a new\n'), write('b', 'b new\n')]));
  t.true(hasCode(error, 'conflict'), String(error));
  t.is(readFileSync(join(place.dir, 'a'), 'utf8'), 'a old\n');
  t.is(readFileSync(join(place.dir, 'b'), 'utf8'), 'typed by the user\n');
  const conflict = (await allEvents(turn)).at(-1)?.event;
  t.true(conflict?.type === 'conflict.detected' && conflict.why === 'late-write');
});

test('a path that became a folder in the middle: everything goes back, and the error says where', async (t) => {
  const place = scratch(t);
  for (const name of NINETEEN) place.write(name, 'old\n');
  const { faults, at } = interruption();
  const turn = await openTurn(await openAs(t, place, { faults }));
  at('stage.publish:rename:after', 3, () => {
    renameSync(join(place.dir, 'f09'), join(place.dir, 'moved'));
    mkdirSync(join(place.dir, 'f09'));
    place.write('f09/inside', 'x');
  });
  const error = await t.throwsAsync(
    runTransaction(
      turn,
      NINETEEN.map((name) => write(name, 'new\n')),
    ),
  );
  t.true(hasCode(error, 'conflict') && error.fields.path === 'f09', String(error));
  for (const name of NINETEEN) {
    if (name !== 'f09') t.is(readFileSync(join(place.dir, name), 'utf8'), 'old\n');
  }
});

test('a folder on the way that became a link is not followed', async (t) => {
  const place = scratch(t);
  place.write('folder/a', 'old\n');
  const { faults, at } = interruption();
  const turn = await openTurn(await openAs(t, place, { faults }));
  mkdirSync(join(place.top, 'outside'));
  at('stage.temp:fsync:after', 1, () => {
    renameSync(join(place.dir, 'folder'), join(place.dir, 'aside'));
    symlinkSync(join(place.top, 'outside'), join(place.dir, 'folder'));
  });
  const error = await t.throwsAsync(runTransaction(turn, [write('folder/a', 'new\n')]));
  t.true(isDurableError(error));
  t.deepEqual(readdirSync(join(place.top, 'outside')), []);
  t.is(readFileSync(join(place.dir, 'aside/a'), 'utf8'), 'old\n');
});

for (const point of ['stage.temp:write:before', 'object.temp:write:before'] as const) {
  test(`a disk that is full at ${point} is an error before anything is recorded or changed`, async (t) => {
    const place = scratch(t);
    for (const name of NINETEEN) place.write(name, 'old\n');
    const { faults, at } = interruption();
    const turn = await openTurn(await openAs(t, place, { faults }));
    const [before, types] = [walk(place.dir), await eventTypes(turn)];
    at(point, 12, noSpace);
    const changes = NINETEEN.map((name) => write(name, `${name} new\n`));
    t.true(hasCode(await t.throwsAsync(runTransaction(turn, changes)), 'out-of-space'));
    t.deepEqual(walk(place.dir), before);
    t.deepEqual(await eventTypes(turn), types);
    t.deepEqual(readdirSync(turn.held.stageDir), []);
    await runTransaction(turn, changes);
    t.is(readFileSync(join(place.dir, 'f18'), 'utf8'), 'f18 new\n');
  });
}

test('a disk that is full at the tenth rename: everything is put back, recorded and said', async (t) => {
  const place = scratch(t);
  for (const name of NINETEEN) place.write(name, 'old\n');
  const { faults, at } = interruption();
  const turn = await openTurn(await openAs(t, place, { faults }));
  const before = walk(place.dir);
  at('stage.publish:rename:before', 10, noSpace);
  const changes = [...NINETEEN.map((name) => write(name, 'new\n')), write('a made/here/x', 'x')];
  const error = await t.throwsAsync(runTransaction(turn, changes));
  t.true(hasCode(error, 'transaction-failed') && error.fields.state === 'rolled-back', String(error));
  t.true(hasCode(error.cause, 'out-of-space'));
  t.deepEqual(walk(place.dir), before);
  t.is((await eventTypes(turn)).at(-1), 'transaction.rolled-back');
  t.deepEqual(readdirSync(turn.held.stageDir), []);
});

test("a failure after the rename, at the folder's flush, is put back too", async (t) => {
  const place = scratch(t);
  place.write('a', 'old\n');
  place.write('gone', 'old\n');
  const { faults, at } = interruption();
  const turn = await openTurn(await openAs(t, place, { faults }));
  const before = walk(place.dir);
  at('stage.publish:fsync:before', 1, noSpace);
  const changes: Change[] = [{ kind: 'delete', path: 'gone' }, write('a', 'new\n')];
  t.true(hasCode(await t.throwsAsync(runTransaction(turn, changes)), 'transaction-failed'));
  t.deepEqual(walk(place.dir), before);
});

test('retyped paths and made folders go back as well', async (t) => {
  const place = scratch(t);
  place.write('file', 'f', 0o640);
  place.write('folder/a', 'a');
  place.write('folder/below/b', 'b');
  place.write('z', 'z');
  const { faults, at } = interruption();
  const turn = await openTurn(await openAs(t, place, { faults }));
  const before = walk(place.dir);
  at('stage.publish:rename:before', 4, noSpace);
  const changes: Change[] = [
    { kind: 'delete', path: 'file' },
    write('file/inside/deep', 'now a folder'),
    { kind: 'delete', path: 'folder/a' },
    { kind: 'delete', path: 'folder/below/b' },
    write('folder', 'now a file'),
    write('new/folder/x', 'x'),
    write('z', 'Z'),
  ];
  t.true(hasCode(await t.throwsAsync(runTransaction(turn, changes)), 'transaction-failed'));
  t.deepEqual(walk(place.dir), before);
});

test('a path that somebody changed after we wrote it is never put back over: the transaction stays in doubt', async (t) => {
  const place = scratch(t);
  for (const name of NINETEEN) place.write(name, 'old\n');
  const { faults, at } = interruption();
  const turn = await openTurn(await openAs(t, place, { faults }));
  at('stage.publish:rename:before', 10, () => {
    writeFileSync(join(place.dir, 'f02'), 'typed over the new bytes\n');
    noSpace();
  });
  const error = await t.throwsAsync(
    runTransaction(
      turn,
      NINETEEN.map((name) => write(name, 'new\n')),
    ),
  );
  t.true(
    hasCode(error, 'transaction-failed') && error.fields.state === 'in-doubt' && error.fields.path === 'f02',
  );
  t.is(readFileSync(join(place.dir, 'f02'), 'utf8'), 'typed over the new bytes\n');
  t.is(readFileSync(join(place.dir, 'f05'), 'utf8'), 'old\n');
  t.is((await eventTypes(turn)).at(-1), 'transaction.prepared');
});

test('putting back restores the very file: inode and hard links included', async (t) => {
  const place = scratch(t);
  place.write('a', 'old\n');
  linkSync(join(place.dir, 'a'), join(place.top, 'other name'));
  place.write('b', 'old\n');
  const { faults, at } = interruption();
  const turn = await openTurn(await openAs(t, place, { faults }));
  at('stage.publish:rename:before', 2, noSpace);
  await t.throwsAsync(runTransaction(turn, [write('a', 'new\n'), write('b', 'new\n')]));
  writeFileSync(join(place.top, 'other name'), 'through the other name\n');
  t.is(readFileSync(join(place.dir, 'a'), 'utf8'), 'through the other name\n');
});

/** A user whom permission bits hold back: the one who runs the tests, or nobody when that is root. */
function ordinaryUser(place: Scratch): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = { uid: 65_534, gid: 65_534 };
  execFileSync('chown', ['-R', `${String(id.uid)}:${String(id.gid)}`, place.top]);
  return id;
}

/** Runs the changes in a child of that user; what it said it failed with. */
function failedChild(place: Scratch, stage: 'change' | 'sealed', changes: readonly unknown[]): unknown {
  const file = join(place.top, 'changes.json');
  writeFileSync(file, JSON.stringify(changes));
  const user = ordinaryUser(place);
  const ran = spawnSync(process.execPath, [CHILD, stage, place.dir, file], {
    cwd: place.dir,
    env: place.env,
    encoding: 'utf8',
    ...user,
  });
  const [, json = 'null'] = /^error (.*)$/m.exec(ran.stdout) ?? [];
  return JSON.parse(json) ?? `${ran.stdout}${ran.stderr}`;
}

const CHILD = fileURLToPath(new URL('../helpers/repair-child.js', import.meta.url));
const base64 = (content: string): string => text(content).toString('base64');

test('one of nineteen files that may not be replaced: all go back, and the error names it', (t) => {
  const place = scratch(t);
  const paths = NINETEEN.map((name) => (name === 'f11' ? 'locked/f11' : name));
  for (const path of paths) place.write(path, 'old\n');
  chmodSync(join(place.dir, 'locked'), 0o555);
  const before = walk(place.dir);
  const changes = paths.map((path) => ({ kind: 'write', path, bytes: base64('new\n') }));
  const error = failedChild(place, 'change', [
    ...changes,
    { kind: 'write', path: 'a made/x', bytes: base64('x') },
  ]);
  chmodSync(join(place.dir, 'locked'), 0o755);
  t.like(error, { code: 'transaction-failed', cause: 'permission-denied' });
  t.like(at(error, 'fields'), { path: 'locked/f11', state: 'rolled-back' });
  t.deepEqual(walk(place.dir), before);
  const subjects = place.run('git', [
    '-c',
    'safe.directory=*',
    'log',
    '--format=%s',
    'refs/durable/tasks/task',
  ]).stdout;
  t.true(subjects.startsWith('transaction.rolled-back'), subjects);
});

test('a git dir that may not be written is an error with nothing changed', (t) => {
  const place = scratch(t);
  place.write('a', 'old\n');
  const before = walk(place.dir);
  const error = failedChild(place, 'sealed', [{ kind: 'write', path: 'a', bytes: base64('new\n') }]);
  execFileSync('chmod', ['-R', 'u+w', join(place.dir, '.git')]);
  t.like(error, { code: 'permission-denied' });
  t.deepEqual(walk(place.dir), before);
});
