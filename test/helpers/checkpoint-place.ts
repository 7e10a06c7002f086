/** A repository with a task, and what a person at the command line does with its work tree: checkpoint, restore, undo. */
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { takeCheckpoint, type CheckpointRequest, type TakenCheckpoint } from '../../lib/files/checkpoint.js';
import { restore, type Restored } from '../../lib/files/restore.js';
import { CLOCK_STEP_NS } from '../../lib/git/stable-read.js';
import type { Storage } from '../../lib/git/storage.js';
import type { Host } from '../../lib/host.js';
import { acquire } from '../../lib/lease/acquire.js';
import { openTask, type Ledger } from '../../lib/ledger/ledger.js';
import { openAs, OPERATION } from './lease-place.js';
import { scratch, type Scratch, type ScratchOptions } from './scratch.js';

export interface CheckpointPlace extends Scratch {
  readonly storage: Storage;
  readonly ledger: Ledger;
  readonly checkpoint: (request?: Partial<CheckpointRequest>) => Promise<TakenCheckpoint>;
  /** Under an operation lease of its own. */
  readonly restore: (checkpoint: string, paths?: readonly string[]) => Promise<Restored>;
  /** Opens the repository once more, as a later process does. */
  readonly again: () => Promise<CheckpointPlace>;
}

type Test = Pick<ExecutionContext, 'teardown'>;

export async function checkpointPlace(
  t: Test,
  options: ScratchOptions & {
    readonly prepare?: (place: Scratch) => void;
    readonly host?: Partial<Host>;
  } = {},
): Promise<CheckpointPlace> {
  const place = scratch(t, options);
  options.prepare?.(place);
  return placeIn(t, place, options.host ?? {});
}

export async function placeIn(
  t: Test,
  place: Scratch,
  host: Partial<Host> & { readonly dir?: string } = {},
): Promise<CheckpointPlace> {
  const storage = await openAs(t, place, host);
  const by = { agent: 'tester', workspace: null };
  const ledger = await openTask(storage, { objective: 'test checkpoints', ...by });
  return {
    ...place,
    storage,
    ledger,
    checkpoint: (request) =>
      takeCheckpoint(storage, ledger, { message: 'a test', reason: 'manual', by, ...request }),
    restore: async (checkpoint, paths) => {
      const held = await acquire(storage, OPERATION);
      try {
        const request = paths === undefined ? { checkpoint } : { checkpoint, paths };
        return await restore({ storage, ledger, held, turn: null, ...by }, request);
      } finally {
        await held.release();
      }
    },
    again: () => placeIn(t, place, host),
  };
}

/**
 * Lets the file system's clock take a step: what was written before is then read by git itself, and what is written a
 * moment before a checkpoint by us. Both ways have to be as exact.
 */
export async function settle(): Promise<void> {
  await pause(2 * Number(CLOCK_STEP_NS / 1_000_000n));
}

/** Path bytes as latin1 to `<kind> <digest of the bytes>`: every file, link and special file of a folder but git's own. */
export type Walk = ReadonlyMap<string, string>;

/** Judges a work tree without git: walks it and hashes what it finds. */
export function walk(dir: string, skip: (path: string) => boolean = () => false): Walk {
  const found = new Map<string, string>();
  const enter = (folder: Buffer, prefix: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true, encoding: 'buffer' })) {
      const path = `${prefix}${entry.name.toString('latin1')}`;
      const place = Buffer.concat([folder, Buffer.from('/'), entry.name]);
      if (path === '.git' || path.endsWith('/.git') || skip(path)) continue;
      if (entry.isDirectory()) enter(place, `${path}/`);
      else found.set(path, describe(place));
    }
  };
  enter(Buffer.from(dir), '');
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function describe(place: Buffer): string {
  const stat = lstatSync(place);
  if (stat.isSymbolicLink()) return `link ${readlinkSync(place, 'buffer').toString('latin1')}`;
  if (!stat.isFile()) return 'special';
  const digest = createHash('sha256').update(readFileSync(place)).digest('hex');
  return `${(stat.mode & 0o100) === 0 ? 'file' : 'program'} ${digest}`;
}

/** Digest of every file of the user's in the git dir: all but objects and what is ours. */
export function gitDirDigest(gitDir: string): Walk {
  return walk(gitDir, (path) =>
    /^(?:objects|(?:worktrees\/[^/]+\/)?durable|refs\/durable)(?:\/|$)/.test(path),
  );
}
