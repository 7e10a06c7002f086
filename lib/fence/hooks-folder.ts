/**
 * A hooks folder that several may use at once: linked work trees, and with `core.hooksPath` for all of a user's repositories any of those.
 *
 * Hooks are placed and taken by one process at a time, under `.durable-lock` in the folder itself (a link of its owner's ticket, as every lock
 * of ours: a dead owner's goes). A hook of the user's has one name while ours is put in front of it, and two processes at that at once could
 * lose it. A folder outside of the repository holds `.durable-uses` as well: git dirs of the work trees whose turns need the hooks, one a
 * line. Whoever of them ends last takes the hooks away; one without a turn of a living holder (`durable/fence` says whose) counts for nothing.
 *
 * Caveats: the claims on a dead owner's lock are a repository's own, so that two repositories which find the same one at the same
 * moment exclude each other by its last look only. Where links cannot be made there is no lock.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDurableError } from '../errors.js';
import { isAbsence } from '../git/disk.js';
import type { Storage } from '../git/storage.js';
import { isRunning } from '../lease/processes.js';

const LOCK = '.durable-lock';
const USES = '.durable-uses';

/** Names of ours in such a folder, beside the hooks. */
export const FOLDER_FILES: readonly string[] = [LOCK, USES];

const PATIENCE_MS = 2000;
const POLL_MS = 5;

/** Null, and nothing done, where another process is at work there for longer than that should take. Errors: those of `act`. */
export function aloneIn<T>(storage: Storage, dir: string, act: () => T): T | null {
  const lock = join(dir, LOCK);
  const taken = take(storage, lock);
  if (taken === 'busy') return null;
  try {
    return act();
  } finally {
    if (taken === 'taken') storage.locks.release(lock);
  }
}

/** 'missing': no such folder, or no links there. */
function take(storage: Storage, lock: string): 'taken' | 'busy' | 'missing' {
  const until = storage.host.monotonicMs() + PATIENCE_MS;
  try {
    for (;;) {
      const outcome = storage.locks.take(lock);
      if (outcome !== 'busy') return outcome;
      if (storage.locks.heal(lock).state === 'removed') continue;
      if (storage.host.monotonicMs() >= until) return 'busy';
      pauseHere(POLL_MS);
    }
  } catch (error) {
    if (!isDurableError(error)) throw error;
    return 'missing';
  }
}

/** The turn's end is no place to give way to other work: what is under the lock takes milliseconds. */
function pauseHere(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Under the lock: this work tree's turn needs the hooks. */
export function use(storage: Storage, dir: string): void {
  if (isOwn(storage, dir)) return;
  const uses = usesOf(dir);
  if (!uses.includes(storage.layout.gitDir)) writeUses(storage, dir, [...uses, storage.layout.gitDir]);
}

/** Under the lock: it needs them no more. True when nobody else does. */
export function leave(storage: Storage, dir: string): boolean {
  if (isOwn(storage, dir)) return true;
  const uses = usesOf(dir);
  const others = usedBy(storage, dir);
  if (others.length !== uses.length) writeUses(storage, dir, others);
  return others.length === 0;
}

/** Git dirs of other repositories' work trees with an open turn that has its hooks there. */
export function usedBy(storage: Storage, dir: string): string[] {
  if (isOwn(storage, dir)) return [];
  return usesOf(dir).filter((gitDir) => gitDir !== storage.layout.gitDir && hasTurn(gitDir));
}

function hasTurn(gitDir: string): boolean {
  const [pid = '', start = ''] = linesOf(join(gitDir, 'durable', 'fence'));
  return start !== '' && isRunning({ pid: Number(pid), start });
}

/** A folder within the repository is for nobody else; its own work trees are looked at one by one. */
function isOwn({ layout }: Storage, dir: string): boolean {
  return [layout.commonDir, layout.workTree].some((folder) => `${dir}/`.startsWith(`${folder}/`));
}

const usesOf = (dir: string): string[] => linesOf(join(dir, USES)).filter(Boolean);

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch (error) {
    if (isAbsence(error)) return [];
    throw error;
  }
}

function writeUses({ disk }: Storage, dir: string, uses: readonly string[]): void {
  const file = join(dir, USES);
  if (uses.length === 0) {
    disk.unlink('fence.hook', file);
    return;
  }
  disk.unlink('fence.hook', `${file}.new`);
  disk.createPassing('fence.hook', `${file}.new`, Buffer.from(uses.map((one) => `${one}\n`).join('')), 0o600);
  disk.rename('fence.hook', `${file}.new`, file);
}
