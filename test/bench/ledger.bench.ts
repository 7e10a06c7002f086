/**
 * The ledger's promises of speed: appending with and without flushes, reading and folding, size when packed.
 *
 * The mix is a turn of test/helpers/event-mix.ts: 48 events, 12 calls. The packed size is that of a pack made by `git repack -adf`, as
 * a clone or a gc makes it, index included, divided by the events.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { digest } from '../../lib/canonical.js';
import { systemHost } from '../../lib/host.js';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { acquire } from '../../lib/lease/acquire.js';
import { Folding, initialState } from '../../lib/ledger/fold.js';
import { Ledger, openTask } from '../../lib/ledger/ledger.js';
import { importLedger } from '../helpers/ledger-import.js';
import { leaseRequest, startOf, steering } from '../helpers/turn.js';
import { scratchAt, type Scratch } from '../helpers/scratch.js';
import { inTurns, ratioRow, timed, type Row } from './row.js';

export async function measure(): Promise<readonly Row[]> {
  const top = mkdtempSync(join(tmpdir(), 'durable bench '));
  try {
    mkdirSync(join(top, 'flushed'));
    mkdirSync(join(top, 'unflushed'));
    mkdirSync(join(top, 'long'));
    return [
      await durableAppend(scratchAt(join(top, 'flushed'))),
      await plainAppend(scratchAt(join(top, 'unflushed'))),
      ...(await longLedger(scratchAt(join(top, 'long')))),
    ];
  } finally {
    rmSync(top, { recursive: true, force: true });
  }
}

async function durableAppend(scratch: Scratch): Promise<Row> {
  const { storage, append, size } = await openTurn(scratch);
  let n = 0;
  const base = (): void => {
    n += 1;
    flushedWrite(join(scratch.top, `plain-${String(n)}`), Buffer.alloc(size, 'x'), scratch.top);
  };
  const times = await inTurns(append, base, { rounds: 301, warm: 20 });
  await storage.close();
  return ratioRow('durable append / write, fsync, rename, fsync of the folder', times, 5);
}

/** The least that makes as many bytes durable under a name. */
function flushedWrite(path: string, bytes: Buffer, folder: string): void {
  const fd = openSync(`${path}.tmp`, 'wx');
  writeSync(fd, bytes);
  fsyncSync(fd);
  closeSync(fd);
  renameSync(`${path}.tmp`, path);
  const dir = openSync(folder, 'r');
  fsyncSync(dir);
  closeSync(dir);
}

const APPENDS = 1000;

async function plainAppend(scratch: Scratch): Promise<Row> {
  scratch.git('config', 'durable.fsync', 'false');
  const { storage, append } = await openTurn(scratch);
  const heap = process.memoryUsage().heapUsed;
  const spent = await timed(async () => {
    for (let n = 0; n < APPENDS; n += 1) await append();
  });
  const grown = (process.memoryUsage().heapUsed - heap) / APPENDS;
  await storage.close();
  const rate = (APPENDS * 1000) / spent;
  return {
    what: `appends a second without fsync (heap grew by ${grown.toFixed(0)} bytes an event, uncollected)`,
    ours: rate,
    base: null,
    unit: '1/s',
    ratio: rate,
    limit: 300,
    rule: 'at least',
  };
}

async function openTurn(scratch: Scratch) {
  const storage = await openStorage(scratch.dir, { ...systemHost(), env: scratch.env });
  const ledger = await openTask(storage, { objective: 'Bench', agent: 'bench', workspace: null });
  const held = await acquire(storage, leaseRequest(ledger.task, 'turn-1'));
  const by = { lease: held.token, agent: 'bench', workspace: null };
  await ledger.append(() => [startOf('turn-1', held)], by);
  let n = 0;
  const append = async (): Promise<void> => {
    n += 1;
    await ledger.append(
      () => [steering(`Please keep the old name as an alias, ${String(n)}`, String(n))],
      by,
    );
  };
  await append();
  const size = Number(scratch.git('cat-file', '-s', ledger.ref));
  return { storage, append, size };
}

const EVENTS = 10_000;

async function longLedger(scratch: Scratch): Promise<Row[]> {
  const storage = await openStorage(scratch.dir, { ...systemHost(), env: scratch.env });
  const { task, ref, events } = await importLedger(storage, { task: 'long', events: EVENTS });
  scratch.git('repack', '-adfq');
  const oids = scratch.git('rev-list', ref);
  const catFile = (): void => {
    const { status } = spawnSync('git', ['cat-file', '--batch'], {
      cwd: scratch.dir,
      env: scratch.env,
      input: `${oids}\n`,
      maxBuffer: 1 << 30,
    });
    if (status !== 0) throw new Error('git cat-file failed');
  };
  const folding = await inTurns(() => foldAll(storage, task), catFile);
  const chain = await inTurns(
    () => {
      chained(events, digest);
    },
    () => {
      chained(events, (text) => createHash('sha256').update(text).digest('hex'));
    },
    { rounds: 5 },
  );
  await storage.close();
  const size = packSize(scratch) / events;
  return [
    ratioRow(`reading and folding ${String(events)} packed events / git cat-file --batch`, folding, 2),
    {
      what: 'packed size of an event of the mix',
      ours: size,
      base: null,
      unit: 'bytes',
      ratio: size,
      limit: 500,
      rule: 'at most',
    },
    { ...ratioRow('SHA-256 chain over them: @noble/hashes / node:crypto', chain, 0), rule: null },
  ];
}

async function foldAll(storage: Storage, task: string): Promise<void> {
  const folding = new Folding(initialState(task));
  for await (const recorded of Ledger.open(storage, task).forwards()) folding.add(recorded);
  folding.state();
}

function chained(events: number, hash: (text: string) => string): void {
  const line = 'x'.repeat(800);
  for (let n = 0, chain = ''; n < events; n += 1) chain = hash(`${chain}\n${line}`);
}

function packSize(scratch: Scratch): number {
  const dir = join(scratch.dir, '.git/objects/pack');
  return readdirSync(dir).reduce((sum, name) => sum + statSync(join(dir, name)).size, 0);
}
