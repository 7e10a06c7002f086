/**
 * A look at the work tree that is thrown away again (`diff`, a preview, the recovery report).
 *
 * It needs a private git dir and a quarantine. Those of the git dir serve where nothing would have to be set up there and the
 * git dir takes a quarantine; else (no checkpoint was ever taken here, a read-only file system, another user's repository, a full
 * disk) both lie in the system's folder for temporary files (TMPDIR) and start from a copy of the private index, so that
 * no file is read for nothing. Either way nothing of it stays; a process that is killed leaves a quarantine to the next
 * snapshot's sweep, and a temporary folder to whatever empties TMPDIR. It holds the contents of changed files: only its user may look in.
 */
import { join } from 'node:path';
import { hasCode } from '../errors.js';
import { freshId } from '../host.js';
import { Disk } from './disk.js';
import { PrivateDir } from './private-dir.js';
import { removeScratch } from './quarantine.js';
import type { Storage } from './storage.js';
import { Tickets } from './tickets.js';

/** `look` must publish nothing. Errors: those of `look`. */
export async function looking<T>(storage: Storage, look: (storage: Storage) => Promise<T>): Promise<T> {
  if (new PrivateDir(storage).isPrepared()) {
    try {
      return await look(storage);
    } catch (error) {
      if (!isRefusal(storage, error)) throw error;
    }
  }
  const { TMPDIR } = storage.host.env;
  const dir = join(
    TMPDIR === undefined || TMPDIR === '' ? '/tmp' : TMPDIR,
    `git-durable-${freshId(storage.host)}`,
  );
  const scratch = new Disk(storage.host.faults, false);
  const elsewhere = movedTo(dir, storage);
  scratch.makePassingDir('quarantine.make', dir);
  try {
    copyIndex(storage, elsewhere);
    return await look(elsewhere);
  } finally {
    removeScratch(scratch, dir);
  }
}

/** Where it may not be read, every file is read instead. */
function copyIndex(from: Storage, to: Storage): void {
  try {
    new PrivateDir(to).copyFrom(new PrivateDir(from));
  } catch (error) {
    if (!hasCode(error, 'permission-denied')) throw error;
  }
}

/** Refused by our own part of the git dir, not by a file of the work tree. */
function isRefusal({ layout }: Storage, error: unknown): boolean {
  if (!hasCode(error, 'permission-denied') && !hasCode(error, 'out-of-space')) return false;
  return [layout.local, layout.shared].some(
    (dir) => error.fields.path.startsWith(`${dir}/`) || error.fields.path === dir,
  );
}

/** The same storage with what is ours in another folder. */
function movedTo(dir: string, storage: Storage): Storage {
  const { host, identity } = storage;
  const layout = { ...storage.layout, local: dir, shared: dir };
  return { ...storage, layout, tickets: new Tickets({ layout, host, identity }) };
}
