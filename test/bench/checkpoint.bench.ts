/**
 * Checkpoints of a work tree of 50,000 files: with 10 of them changed against `git status`, and the first one against
 * `git add -A` into a fresh index. Ratios in one run, in turns; caches are warm.
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { takeCheckpoint } from '../../lib/files/checkpoint.js';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { systemHost } from '../../lib/host.js';
import { openTask, type Ledger } from '../../lib/ledger/ledger.js';
import { removeTree, scratchAt, type Scratch } from '../helpers/scratch.js';
import { manyFiles } from './many-files.js';
import { inTurns, ratioRow, type Row } from './row.js';

const CHANGED = 10;

export async function measure(): Promise<readonly Row[]> {
  const top = mkdtempSync(join(tmpdir(), 'durable bench '));
  try {
    const place = scratchAt(top);
    manyFiles(place.dir);
    place.git('add', '-A');
    place.git('commit', '-q', '-m', 'all');
    return [await changedFew(place), await first(place), await manyNew(top)];
  } finally {
    await removeTree(top);
  }
}

async function changedFew(place: Scratch): Promise<Row> {
  const { storage, ledger } = await opened(place);
  await checkpoint(storage, ledger);
  place.git('status', '--short');
  let round = 0;
  const times = await inTurns(
    async () => {
      round += 1;
      change(place, round);
      await checkpoint(storage, ledger);
    },
    () => {
      run(place, ['--no-optional-locks', 'status']);
    },
  );
  await storage.close();
  return ratioRow('checkpoint, 10 of 50,000 changed, by git status', times, 1.8);
}

async function first(place: Scratch): Promise<Row> {
  const index = join(place.top, 'fresh-index');
  const { storage } = await opened(place);
  let ledger: Ledger;
  const times = await inTurns(
    () => checkpoint(storage, ledger),
    () => {
      run(place, ['add', '-A'], { GIT_INDEX_FILE: index });
    },
    {
      rounds: 7,
      warm: 1,
      before: async () => {
        rmSync(join(place.dir, '.git/durable/snapshot'), { recursive: true, force: true });
        rmSync(index, { force: true });
        ledger = await newTask(storage);
      },
    },
  );
  await storage.close();
  return ratioRow('first checkpoint of 50,000 files, by git add -A into a fresh index', times, 1.3);
}

/** Nothing is known to git: every blob has to be written by both. One round, as it takes seconds. */
async function manyNew(top: string): Promise<Row> {
  const [ours, base] = ['ours', 'base'].map((side) => {
    mkdirSync(join(top, side));
    const place = scratchAt(join(top, side));
    manyFiles(place.dir);
    return place;
  });
  if (ours === undefined || base === undefined) throw new Error('no place');
  const { storage, ledger } = await opened(ours);
  const once = { rounds: 1, warm: 0 };
  const index = { GIT_INDEX_FILE: join(base.top, 'fresh-index') };
  const times = await inTurns(
    () => checkpoint(storage, ledger),
    () => {
      run(base, ['add', '-A'], index);
    },
    once,
  );
  await storage.close();
  return ratioRow('first checkpoint of 50,000 new files, by git add -A into a fresh index', times, 1.3);
}

async function opened(place: Scratch): Promise<{ storage: Storage; ledger: Ledger }> {
  const storage = await openStorage(place.dir, { ...systemHost(), env: place.env });
  return { storage, ledger: await newTask(storage) };
}

function newTask(storage: Storage): Promise<Ledger> {
  return openTask(storage, { objective: 'measure', agent: 'bench', workspace: null });
}

function checkpoint(storage: Storage, ledger: Ledger): Promise<unknown> {
  const by = { agent: 'bench', workspace: null };
  return takeCheckpoint(storage, ledger, { message: 'measured', reason: 'manual', by });
}

function change(place: Scratch, round: number): void {
  for (let file = 0; file < CHANGED; file += 1)
    appendFileSync(join(place.dir, `src/d${String(file)}/e${String(file)}/f1.ts`), `// ${String(round)}\n`);
}

function run(place: Scratch, args: readonly string[], env: Readonly<Record<string, string>> = {}): void {
  const child = spawnSync('git', args, { cwd: place.dir, env: { ...place.env, ...env } });
  if (child.status !== 0) throw new Error(child.stderr.toString());
}
