import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { acquire } from '../../lib/lease/acquire.js';
import type { Held } from '../../lib/lease/hold.js';
import { revokedStages } from '../../lib/lease/staging.js';
import { takeOver } from '../../lib/lease/takeover.js';
import { HolderProcess } from '../helpers/holder-process.js';
import { at } from '../helpers/json.js';
import { openAs, quickChallenge, TURN } from '../helpers/lease-place.js';
import { until } from '../helpers/processes.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

async function holding(t: ExecutionContext): Promise<{ place: Scratch; held: Held }> {
  const place = scratch(t);
  return { place, held: await acquire(await openAs(t, place), TURN) };
}

test('a published file replaces the old one whole, missing folders are made, and the old one is kept to compare', async (t) => {
  const { place, held } = await holding(t);
  const made = await held.stage.publish(held.stage.write(Buffer.from('new\n'), 0o666), 'a/b c/ü.txt');
  t.is(made.kept, null);
  const again = await held.stage.publish(held.stage.write(Buffer.from('newer\n'), 0o777), 'a/b c/ü.txt');
  t.is(readFileSync(join(place.dir, 'a/b c/ü.txt'), 'utf8'), 'newer\n');
  t.is(statSync(join(place.dir, 'a/b c/ü.txt')).mode & 0o100, 0o100);
  t.is(readFileSync(again.kept ?? '', 'utf8'), 'new\n');
  held.stage.discard(again.kept);
  t.deepEqual(readdirSync(held.stageDir), []);
});

test('a file name that is not UTF-8 is written byte for byte', async (t) => {
  const { place, held } = await holding(t);
  await held.stage.publish(held.stage.write(Buffer.from('x'), 0o666), 'd\udcff/f\udcfe');
  const [folder] = readdirSync(place.dir, 'buffer').filter((name) => name.includes(0xff));
  t.deepEqual(folder, Buffer.from([0x64, 0xff]));
  t.is(place.run('git', ['status', '--porcelain', '-z', '-uall']).stdout.includes('�'), true);
});

test('a removed file lies in the stage, and removing what is not there is no error', async (t) => {
  const { place, held } = await holding(t);
  const removed = await held.stage.remove('README');
  t.false(existsSync(join(place.dir, 'README')));
  t.is(readFileSync(removed.kept ?? '', 'utf8'), 'hello\n');
  t.deepEqual(await held.stage.remove('README'), { kept: null });
});

test('a link is replaced itself, not what it leads to', async (t) => {
  const { place, held } = await holding(t);
  symlinkSync('README', join(place.dir, 'link'));
  const written = await held.stage.publish(held.stage.write(Buffer.from('file\n'), 0o666), 'link');
  t.is(readFileSync(join(place.dir, 'README'), 'utf8'), 'hello\n');
  t.true(lstatSync(join(place.dir, 'link')).isFile());
  t.is(readlinkSync(written.kept ?? ''), 'README');
  await held.stage.publish(held.stage.link('nowhere'), 'link');
  t.is(readlinkSync(join(place.dir, 'link')), 'nowhere');
});

test('an edit in place that comes after the check is in the file that was kept', async (t) => {
  const { place, held } = await holding(t);
  const editor = openSync(join(place.dir, 'README'), 'r+');
  const published = await held.stage.publish(held.stage.write(Buffer.from('ours\n'), 0o666), 'README', () => {
    writeSync(editor, 'late!\n');
  });
  closeSync(editor);
  t.is(readFileSync(join(place.dir, 'README'), 'utf8'), 'ours\n');
  t.is(readFileSync(published.kept ?? '', 'utf8'), 'late!\n');
});

test('a precondition that throws stops the write, and the target is untouched', async (t) => {
  const { place, held } = await holding(t);
  const refuse = (): void => {
    throw new Error('changed');
  };
  await t.throwsAsync(held.stage.publish(held.stage.write(Buffer.from('x'), 0o666), 'README', refuse), {
    message: 'changed',
  });
  await t.throwsAsync(held.stage.remove('README', refuse), { message: 'changed' });
  t.is(readFileSync(join(place.dir, 'README'), 'utf8'), 'hello\n');
});

const refused: readonly (readonly [string, string])[] = [
  ['../beside', 'path-outside'],
  ['/etc/passwd', 'path-outside'],
  ['a/../../beside', 'path-outside'],
  ['', 'path-refused'],
  ['out/file', 'path-outside'],
  ['dangling/file', 'path-outside'],
  ['in/file', 'path-refused'],
  ['README/file', 'path-refused'],
  ['.git/config', 'path-refused'],
  ['sub/.GIT/config', 'path-refused'],
  ['a//b', 'path-refused'],
  ['./a', 'path-refused'],
  ['folder', 'path-refused'],
];

test('no write leaves the work tree, enters a git dir, or goes beyond a link or a file', async (t) => {
  const { place, held } = await holding(t);
  mkdirSync(join(place.dir, 'folder'));
  mkdirSync(join(place.top, 'elsewhere'));
  symlinkSync('../elsewhere', join(place.dir, 'out'));
  symlinkSync('nowhere', join(place.dir, 'dangling'));
  symlinkSync('folder', join(place.dir, 'in'));
  const before = place.git('status', '--porcelain');
  for (const [path, code] of refused) {
    const temp = held.stage.write(Buffer.from('x'), 0o666);
    t.is(at(await t.throwsAsync(held.stage.publish(temp, path)), 'code'), code, `write ${path}`);
    t.is(at(await t.throwsAsync(held.stage.remove(path)), 'code'), code, `remove ${path}`);
  }
  t.deepEqual(readdirSync(join(place.top, 'elsewhere')), []);
  t.is(place.git('status', '--porcelain'), before);
});

test('a full disk at any step of a write leaves the old file, and the next write works', async (t) => {
  for (const point of [
    'stage.temp:write:before',
    'stage.temp:fsync:before',
    'stage.keep:link:before',
    'stage.publish:rename:before',
  ]) {
    const place = scratch(t);
    const holder = await HolderProcess.start(t, place, { faults: `${point}=enospc` });
    await holder.must('acquire');
    t.is((await holder.ask('write', { path: 'README', text: 'x' })).error, 'out-of-space', point);
    t.is(place.git('status', '--porcelain'), '');
    await holder.must('write', { path: 'README', text: 'x' });
    t.is(place.git('status', '--porcelain'), ' M README');
    await holder.end();
  }
});

/** A work tree on another file system than its git dir. */
function splitPlace(t: ExecutionContext): Scratch {
  const place = scratch(t, { repository: false });
  const tree = mkdtempSync('/dev/shm/durable té ');
  t.teardown(() => {
    rmSync(tree, { recursive: true, force: true });
  });
  const made = place.run('git', ['init', '-q', `--separate-git-dir=${join(place.top, 'git')}`, tree]);
  if (made.code !== 0) throw new Error(made.stderr);
  const git = (...args: string[]): string => place.git('-C', tree, ...args);
  const split = { ...place, dir: tree, git };
  t.not(statSync(tree).dev, statSync(join(place.top, 'git')).dev);
  return split;
}

const WRITING = (place: Scratch): string => join(place.top, 'git/durable/writing');

test('on another file system a write goes by ticket: whole, and neither ticket nor temp is left', async (t) => {
  const place = splitPlace(t);
  const held = await acquire(await openAs(t, place), TURN);
  await held.stage.publish(held.stage.write(Buffer.from('one\n'), 0o777), 'deep/file');
  const again = await held.stage.publish(held.stage.write(Buffer.from('two\n'), 0o666), 'deep/file');
  t.is(readFileSync(join(place.dir, 'deep/file'), 'utf8'), 'two\n');
  t.is(readFileSync(again.kept ?? '', 'utf8'), 'one\n');
  await held.stage.publish(held.stage.write(Buffer.from('two\n'), { exact: 0o666 }), 'deep/file');
  t.is(statSync(join(place.dir, 'deep/file')).mode & 0o777, 0o666);
  await held.stage.publish(held.stage.link('file'), 'deep/link');
  t.is(readlinkSync(join(place.dir, 'deep/link')), 'file');
  const removed = await held.stage.remove('deep/file');
  t.is(readFileSync(removed.kept ?? '', 'utf8'), 'two\n');
  t.deepEqual(readdirSync(join(place.dir, 'deep')), ['link']);
  t.deepEqual(readdirSync(WRITING(place)), []);
});

test('the ticket of a writer that was killed is broken by the taker, its temp with it', async (t) => {
  const place = splitPlace(t);
  const holder = await HolderProcess.start(t, place, { faults: 'writing.publish:rename:before=kill' });
  await holder.must('acquire');
  t.is((await holder.ask('write', { path: 'file', text: 'x' })).error, 'ended');
  t.is(readdirSync(WRITING(place)).length, 1);
  t.is(readdirSync(place.dir).length, 2);
  const held = await takeOver(await openAs(t, place), TURN);
  t.deepEqual(readdirSync(WRITING(place)), []);
  t.deepEqual(readdirSync(place.dir), ['.git']);
  await held.release();
});

test('a writer by ticket on another host is waited for: its rename lands before the taker may read', async (t) => {
  const place = splitPlace(t);
  const identity = { hostId: 'another' };
  const holder = await HolderProcess.start(t, place, {
    identity,
    faults: 'writing.publish:rename:before=stop',
  });
  await holder.must('acquire');
  const writing = holder.ask('write', { path: 'file', text: 'late' });
  await holder.stopped();
  let seen: string | undefined;
  const taking = takeOver(await openAs(t, place), { ...TURN, challenge: quickChallenge() }).then(() => {
    seen = readFileSync(join(place.dir, 'file'), 'utf8');
  });
  // The taker has swapped and waits: the epoch is its own, and it has not returned.
  const subject = (): string => place.git('for-each-ref', '--format=%(subject)', 'refs/durable/leases');
  await until('the taker has swapped', () => subject().endsWith('epoch 2'));
  t.is(seen, undefined);
  t.false(existsSync(join(place.dir, 'file')));
  holder.resume();
  t.is((await writing).error, undefined);
  await taking;
  t.is(seen, 'late');
  t.is((await holder.ask('write', { path: 'file', text: 'later' })).error, 'stage-revoked');
});

/** Where the old holder is paused, what its write then says, and what is in the file. */
const pauses: readonly (readonly [string, string | undefined, string])[] = [
  ['stage.temp:write:before', 'stage-revoked', 'hello\n'],
  ['stage.temp:write:after', 'stage-revoked', 'hello\n'],
  ['stage.temp:fsync:after', 'lease-lost', 'hello\n'],
  ['stage.keep:link:before', 'stage-revoked', 'hello\n'],
  ['stage.keep:link:after', 'stage-revoked', 'hello\n'],
  ['stage.publish:rename:before', 'stage-revoked', 'hello\n'],
  ['stage.publish:rename:after', undefined, 'stale'],
];

for (const [point, error, content] of pauses) {
  test(`a holder paused at ${point}, taken over and resumed, changes nothing after recovery may read`, async (t) => {
    const place = scratch(t);
    const holder = await HolderProcess.start(t, place, {
      identity: { hostId: 'another' },
      faults: `${point}=stop`,
    });
    await holder.must('turn', { turn: 'turn-one' });
    const writing = holder.ask('write', { path: 'README', text: 'stale' });
    await holder.stopped();
    const held = await takeOver(await openAs(t, place), { ...TURN, challenge: quickChallenge() });
    const seen = readFileSync(join(place.dir, 'README'), 'utf8');
    holder.resume();
    t.is((await writing).error, error);
    t.is(readFileSync(join(place.dir, 'README'), 'utf8'), seen);
    t.is(seen, content);
    t.is((await holder.ask('append')).error, 'lease-lost');
    t.is((await holder.ask('write', { path: 'README', text: 'stale' })).error, 'stage-revoked');
    t.is((await holder.ask('renew')).error, 'lease-lost');
    t.is((await holder.ask('release')).error, 'lease-lost');
    t.is(readFileSync(join(place.dir, 'README'), 'utf8'), seen);
    await held.assert();
  });
}

test('a deletion paused before its rename is fenced the same way', async (t) => {
  const place = scratch(t);
  const identity = { hostId: 'another' };
  const holder = await HolderProcess.start(t, place, { identity, faults: 'stage.remove:rename:before=stop' });
  await holder.must('acquire');
  const removing = holder.ask('remove', { path: 'README' });
  await holder.stopped();
  await takeOver(await openAs(t, place), { ...TURN, challenge: quickChallenge() });
  holder.resume();
  t.is((await removing).error, 'stage-revoked');
  t.is(readFileSync(join(place.dir, 'README'), 'utf8'), 'hello\n');
});

test('a taker revokes the stages of all older epochs, and they are swept at its orderly end', async (t) => {
  const place = scratch(t);
  const storage = await openAs(t, place);
  for (let round = 0; round < 2; round += 1) {
    // Each dies after its swap, before it revokes what was there.
    const holder = await HolderProcess.start(t, place, { faults: 'stage.temp:fsync:after=kill' });
    await holder.must('acquire');
    await holder.ask('write', { path: 'README', text: 'x' });
  }
  const held = await takeOver(storage, TURN);
  t.deepEqual(
    readdirSync(join(place.dir, '.git/durable/stage'))
      .map((name) => name.replace(/-\w+$/, ''))
      .sort(),
    ['3', 'revoked-1', 'revoked-2'],
  );
  t.is(revokedStages(storage, held.token.epoch).length, 2);
  await held.release();
  t.deepEqual(readdirSync(join(place.dir, '.git/durable/stage')), []);
});
