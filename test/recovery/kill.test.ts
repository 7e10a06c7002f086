/**
 * A transaction, and a repair, in a process of their own that gets SIGKILL before and after each of their operations. What
 * is on disk afterwards is judged by our own walk of the tree (SHA-256, modes, links, folders), never by the product.
 *
 * A point is killed at its first and last hit where it changes the work tree, at one of its hits elsewhere; by default a
 * sample of these, mostly of the former, with `DURABLE_TEST_KILLS=all` every one (about 280 kills).
 */
import { execPath } from 'node:process';
import { fileURLToPath } from 'node:url';
import { realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { restore } from '../../lib/files/restore.js';
import { openStorage } from '../../lib/git/storage.js';
import { systemHost } from '../../lib/host.js';
import { acquire } from '../../lib/lease/acquire.js';
import { Ledger } from '../../lib/ledger/ledger.js';
import type { RepairAction, RepairResult } from '../../lib/recovery/document.js';
import { repair } from '../../lib/recovery/repair.js';
import { readFolder, writeFolder, type Folder } from '../helpers/folder-copy.js';
import { OPERATION } from '../helpers/lease-place.js';
import { Random, seedOf } from '../helpers/random.js';
import { bytes } from '../helpers/recording.js';
import { scratch, type Ran, type Scratch } from '../helpers/scratch.js';
import { walk } from '../helpers/turn-place.js';

const CHILD = fileURLToPath(new URL('../helpers/repair-child.js', import.meta.url));

const text = (content: string): string => Buffer.from(content).toString('base64');
const CHANGES = [
  { kind: 'delete', path: 'file' },
  { kind: 'write', path: 'file/inside', bytes: text('a folder now\n') },
  { kind: 'delete', path: 'folder/a' },
  { kind: 'write', path: 'folder', bytes: text('a file now\n') },
  { kind: 'write', path: 'edited', bytes: text('after\n') },
  { kind: 'write', path: 'made/in a/new folder', bytes: text('made\n') },
  { kind: 'rename', from: 'from', to: 'to' },
  { kind: 'chmod', path: 'tool', executable: true },
  { kind: 'symlink', path: 'link', target: 'edited' },
] as const;

class Place {
  readonly scratch: Scratch;
  readonly #changes: string;
  readonly #root: string;

  constructor(place: Scratch) {
    this.scratch = place;
    this.#changes = join(place.top, 'changes.json');
    this.#root = bytes(realpathSync(place.dir));
    writeFileSync(this.#changes, JSON.stringify(CHANGES));
    place.write('file', 'was a file\n', 0o640);
    place.write('folder/a', 'a\n');
    place.write('edited', 'before\n', 0o600);
    place.write('from', 'moved\n', 0o755);
    place.write('tool', '#!/bin/sh\n');
    symlinkSync('nowhere', join(place.dir, 'link'));
  }

  child(stage: string, env: Readonly<Record<string, string>> = {}): Ran {
    return this.scratch.run(execPath, [CHILD, stage, this.scratch.dir, this.#changes], { env });
  }

  save(): Folder {
    return readFolder(this.#root);
  }

  reset(folder: Folder): void {
    writeFolder(this.#root, folder);
  }

  walk(): Record<string, string> {
    return walk(this.scratch.dir);
  }

  async repair(action: RepairAction): Promise<RepairResult | null> {
    const storage = await openStorage(this.scratch.dir, { ...systemHost(), env: this.scratch.env });
    try {
      return await repair(storage, { action });
    } finally {
      await storage.close();
    }
  }

  async undo(checkpoint: string): Promise<void> {
    const storage = await openStorage(this.scratch.dir, { ...systemHost(), env: this.scratch.env });
    const held = await acquire(storage, OPERATION);
    const ledger = Ledger.open(storage, 'task');
    await restore({ storage, ledger, held, agent: 'tester', workspace: null, turn: null }, { checkpoint });
    await held.release();
    await storage.close();
  }

  async isVerified(): Promise<boolean> {
    const storage = await openStorage(this.scratch.dir, { ...systemHost(), env: this.scratch.env });
    const { ok } = await Ledger.open(storage, 'task').verify();
    await storage.close();
    return ok;
  }
}

/** Fault rules such as `stage.publish:rename:before#2` from the points that a whole run named; `most` of them. */
function chosen(ran: Ran, often: RegExp, most: number): string[] {
  const random = new Random(seedOf(process.env));
  const counts = new Map<string, number>();
  for (const line of ran.stderr.split('\n').filter((one) => one.startsWith('point '))) {
    const point = line.slice('point '.length);
    counts.set(point, (counts.get(point) ?? 0) + 1);
  }
  const all = [...counts].flatMap(([point, count]) => {
    const nths = often.test(point) ? new Set([1, count]) : new Set([1 + random.below(count)]);
    return [...nths].map((nth) => `${point}#${String(nth)}`);
  });
  if (process.env['DURABLE_TEST_KILLS'] === 'all') return all;
  const order = all.map((kill) => ({ kill, at: random.next() + (often.test(kill) ? 0 : 0.6) }));
  return order
    .sort((a, b) => a.at - b.at)
    .slice(0, most)
    .map(({ kill }) => kill);
}

/** Paths that are neither as before nor as after; a folder may be there when either has it. */
function outOfPlace(
  now: Record<string, string>,
  before: Record<string, string>,
  after: Record<string, string>,
): string[] {
  const paths = new Set([now, before, after].flatMap((tree) => Object.keys(tree)));
  const isFolder = (what: string | undefined): boolean => what === undefined || what === 'folder';
  return [...paths].filter((path) => {
    if (now[path] === before[path] || now[path] === after[path]) return false;
    // Between a file and a folder of one name there is a moment with neither; between folders, with one less.
    return !(isFolder(now[path]) && (isFolder(before[path]) || isFolder(after[path])));
  });
}

test('a transaction killed anywhere leaves each path before or after, and both ways back and forward are exact', async (t) => {
  const place = new Place(scratch(t));
  const start = place.save();
  const before = place.walk();
  const whole = place.child('change', { POINTS: '1' });
  t.is(whole.code, 0, whole.stderr);
  const after = place.walk();
  const kills = chosen(whole, /^(?:stage|tree)\./, 16);
  t.log(`${String(kills.length)} kills`);
  for (const [index, kill] of kills.entries()) {
    place.reset(start);
    const killed = place.child('change', { DURABLE_FAULTS: `${kill}=kill` });
    t.is(killed.signal, 'SIGKILL', `${kill} was not reached: ${killed.stderr}`);
    t.deepEqual(outOfPlace(place.walk(), before, after), [], kill);
    const isRecorded = place.scratch
      .run('git', ['log', '--format=%s', 'refs/durable/tasks/task'])
      .stdout.includes('transaction.prepared');
    const left = place.save();
    if (index % 2 === 0 || kill.startsWith('stage.')) {
      t.truthy(await place.repair('roll-back'), kill);
      t.deepEqual(place.walk(), before, `rolled back after ${kill}`);
      t.true(await place.isVerified(), kill);
      place.reset(left);
    }
    if (index % 2 === 1 || kill.startsWith('stage.')) {
      await place.repair('roll-forward');
      t.deepEqual(place.walk(), isRecorded ? after : before, `rolled forward after ${kill}`);
      t.true(await place.isVerified(), kill);
    }
  }
  t.is(place.scratch.git('fsck', '--strict', '--no-dangling'), '');
});

for (const action of ['roll-back', 'roll-forward'] as const) {
  test(`a repair (${action}) killed anywhere is finished by the next one as if it had never run`, async (t) => {
    const place = new Place(scratch(t));
    const before = place.walk();
    const start = place.save();
    place.child('change');
    const after = place.walk();
    place.reset(start);
    const cut = place.child('change', { DURABLE_FAULTS: 'stage.publish:rename:after#2=kill' });
    t.is(cut.signal, 'SIGKILL');
    const left = place.save();
    const half = place.walk();
    const wanted = action === 'roll-back' ? before : after;
    const whole = place.child(action, { POINTS: '1' });
    t.is(whole.code, 0, whole.stderr);
    t.deepEqual(place.walk(), wanted);
    const [, json = ''] = /^done (.*)$/m.exec(whole.stdout) ?? [];
    const expected = JSON.parse(json) as RepairResult;
    const kills = chosen(whole, /^(?:stage\.publish|stage\.remove|tree)\./, 7);
    t.log(`${String(kills.length)} kills`);
    for (const kill of kills) {
      place.reset(left);
      const killed = place.child(action, { DURABLE_FAULTS: `${kill}=kill` });
      t.is(killed.signal, 'SIGKILL', `${kill} was not reached: ${killed.stderr}`);
      t.deepEqual(outOfPlace(place.walk(), before, after), [], kill);
      const result = await repaired(place, action);
      t.deepEqual(place.walk(), wanted, kill);
      t.true(await place.isVerified(), kill);
      // Killed after its last event there was nothing left to repair.
      if (result === null) continue;
      t.deepEqual({ ...result, checkpoint: '' }, { ...expected, checkpoint: '' }, kill);
      if (!/^(?:stage\.publish|tree)\./.test(kill)) continue;
      await place.undo(result.checkpoint ?? '');
      t.deepEqual(filesOf(place.walk()), filesOf(half), `undone after ${kill}`);
    }
    t.is(place.scratch.git('fsck', '--strict', '--no-dangling'), '');
  });
}

async function repaired(place: Place, action: RepairAction): Promise<RepairResult | null> {
  try {
    return await place.repair(action);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'not-found') return null;
    throw error;
  }
}

/** What a checkpoint holds: no folders, and of permission bits the execute bit. */
function filesOf(tree: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(tree)
      .filter(([, what]) => what !== 'folder')
      .map(([path, what]) => [
        path,
        what.replace(/^file ([0-7])\d\d/, (_, owner: string) => `file ${String(Number(owner) % 2)}`),
      ]),
  );
}
