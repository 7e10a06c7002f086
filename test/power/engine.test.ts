import { execPath } from 'node:process';
import { mkdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { cutAt, cutsInside, rebuild, recordRun, type Recording } from '../helpers/power-cut.js';
import { Random, seedOf } from '../helpers/random.js';
import { RecordedDisk } from '../helpers/disk-rebuild.js';
import { listing, readFolder } from '../helpers/folder-copy.js';
import { bytes, type Operation } from '../helpers/recording.js';
import { parseTrace } from '../helpers/strace.js';
import { scratch } from '../helpers/scratch.js';

const WRITER = fileURLToPath(new URL('../helpers/small-writer.js', import.meta.url));

async function recorded(t: ExecutionContext, leftOut: string): Promise<Recording> {
  const { dir, top, env } = scratch(t, { repository: false });
  const recording = await recordRun([execPath, WRITER, dir, leftOut], { dir, env, file: join(top, 'trace') });
  t.is(recording.ran.code, 0, recording.ran.stderr);
  return recording;
}

/** Cuts after which an acknowledged file is not there, whole. */
function losses(t: ExecutionContext, recording: Recording, forget?: string): number {
  const random = new Random(seedOf(process.env));
  const places = cutsInside(recording, 'writing');
  t.true(places.length > 60);
  let lost = 0;
  for (let round = 0; round < 300; round += 1) {
    const cut = cutAt(
      recording,
      places[random.below(places.length)] ?? 0,
      random,
      (step) => step.operation.kind === 'sync' && step.operation.path.includes('temp') && forget === 'file',
    );
    rebuild(recording, cut);
    const kept = cut.said
      .filter((line) => line.startsWith('ack'))
      .every((line) => isWhole(recording.dir, line));
    if (!kept) lost += 1;
  }
  return lost;
}

function isWhole(dir: string, line: string): boolean {
  const name = line.slice('ack '.length);
  try {
    const text = readFileSync(join(dir, 'some é', 'folder', name), 'utf8');
    return text === `first second third ${name.slice('file '.length)}\n`;
  } catch {
    return false;
  }
}

test('a writer that flushes the file, then its folder, then says so loses nothing at any cut', async (t) => {
  t.is(losses(t, await recorded(t, 'nothing')), 0);
});

for (const leftOut of ['file-flush', 'folder-flush', 'order']) {
  test(`a writer without the right ${leftOut} loses acknowledged files`, async (t) => {
    t.true(losses(t, await recorded(t, leftOut)) >= 5);
  });
}

test('a flush taken out of the recording is missed as one that was never made', async (t) => {
  t.true(losses(t, await recorded(t, 'nothing'), 'file') >= 5);
});

test('with nothing lost the rebuilt folder is what the programs left', async (t) => {
  const recording = await recorded(t, 'nothing');
  const disk = new RecordedDisk(bytes(recording.dir), recording.before);
  for (const { operation } of recording.steps) disk.apply(operation);
  t.deepEqual(listing(disk.live()).sort(), listing(readFolder(bytes(recording.dir))).sort());
  t.is(readFileSync(join(recording.dir, 'some é', 'kept'), 'utf8'), 'from a child');
});

test('a flush keeps what there was when it began: what changes beside it is lost with the power', (t) => {
  const folder = String.raw`"\x2f\x72\x2f\x64"`;
  const [made, began, beside, ended] = [
    `1 mkdir(${folder}, 0755) = 0`,
    `2 fsync(3<${folder.slice(1, -1)}> <unfinished ...>`,
    `1 mkdir("${folder.slice(1, -1)}\\x2f\\x65", 0755) = 0`,
    '2 <... fsync resumed>) = 0',
  ];
  const calls = parseTrace([made, began, beside, ended].join('\n'));
  t.deepEqual(
    calls.map(({ name }) => name),
    ['mkdir', 'flushing', 'mkdir', 'fsync'],
  );
  const after = (order: readonly Operation[]): string[] => {
    const disk = new RecordedDisk('/r', { kind: 'folder', mode: 0o755, entries: new Map() });
    for (const operation of order) disk.apply(operation);
    return [...disk.afterPowerCut('all-lost', new Random(1)).entries.keys()];
  };
  const make = (name: string): Operation => ({ kind: 'mkdir', path: `/r/${name}`, mode: 0o755 });
  const [first, second] = [make('one'), make('two')];
  const [begin, end] = [{ kind: 'flushing', path: '/r' } as const, { kind: 'sync', path: '/r' } as const];
  t.deepEqual(after([first, begin, second, end]), ['one']);
  t.deepEqual(after([first, begin, second, begin, end]), ['one']);
  t.deepEqual(after([first, begin, second, begin, end, end]), ['one', 'two']);
  t.deepEqual(after([first, second, end]), ['one', 'two']);
});

test("git's own files are followed: a pack, an index and refs come out as git wrote them", async (t) => {
  const { dir, top, env, git, write } = scratch(t);
  for (let number = 0; number < 30; number += 1)
    write(`file ${String(number)}`, `content ${String(number)}\n`);
  const script = [
    'git add -A',
    'git -c core.fsync=all commit -q -m "two"',
    'git -c core.fsync=all repack -adq',
    'git pack-refs --all',
    'git checkout -q -b other',
    'git rm -q "file 3"',
    'git commit -q -m three',
  ].join(' && ');
  mkdirSync(join(dir, 'folder'));
  const recording = await recordRun(['sh', '-c', script], { dir, env, file: join(top, 'trace') });
  t.is(recording.ran.code, 0, recording.ran.stderr);
  const disk = new RecordedDisk(bytes(recording.dir), recording.before);
  for (const { operation } of recording.steps) disk.apply(operation);
  t.deepEqual(listing(disk.live()).sort(), listing(readFolder(bytes(recording.dir))).sort());
  t.is(git('fsck', '--strict'), '');
});
