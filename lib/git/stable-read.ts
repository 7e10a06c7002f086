/**
 * Reading a file that somebody may be writing: its bytes as they were at one moment, or 'unstable'.
 *
 * A file that was last changed well before the snapshot began and has the same stat before and after is read once. The
 * kernel's clock for files moves in steps (4 ms and more), so a fresher one is read twice and must be the same, or must
 * have only grown (a log): then the first reading is a past state of it.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  type BigIntStats,
} from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { errno, type DiskPath } from './disk.js';

/** Coarser than the clock of any file system in use but those that count whole seconds. */
export const CLOCK_STEP_NS = 20_000_000n;

const TRIES = 8;
const BETWEEN_MS = 3;

export type StableRead =
  | { readonly is: 'read'; readonly mode: '100644' | '100755' | '120000'; readonly bytes: Buffer }
  | { readonly is: 'gone' | 'special' | 'directory' | 'unreadable' | 'unstable' | 'too-large' };

export interface ReadTerms {
  /** Nanoseconds, file system clock: a change after it may still be going on. */
  readonly since: bigint;
  /** Bytes. */
  readonly limit: number;
}

export async function stableRead(path: DiskPath, terms: ReadTerms): Promise<StableRead> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    if (tries > 0) await pause(BETWEEN_MS);
    const read = readOnce(path, terms);
    if (read.is !== 'unstable') return read;
  }
  return { is: 'unstable' };
}

function readOnce(path: DiskPath, terms: ReadTerms): StableRead {
  try {
    const stat = lstatSync(path);
    if (stat.isSymbolicLink()) return { is: 'read', mode: '120000', bytes: readlinkSync(path, 'buffer') };
    if (stat.isDirectory()) return { is: 'directory' };
    if (!stat.isFile()) return { is: 'special' };
    // Not blocking: what was a file a moment ago may be a fifo now.
    const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      return readOpen(fd, terms);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    const code = errno(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return { is: 'gone' };
    if (code === 'ELOOP' || code === 'EINVAL') return { is: 'unstable' };
    return { is: 'unreadable' };
  }
}

function readOpen(fd: number, terms: ReadTerms): StableRead {
  const before = fstatSync(fd, { bigint: true });
  if (!before.isFile()) return { is: 'special' };
  if (before.size > terms.limit) return { is: 'too-large' };
  const mode = (before.mode & 0o100n) === 0n ? '100644' : '100755';
  const bytes = readAll(fd, Number(before.size));
  if (isQuiet(before, terms.since) && sameStat(before, fstatSync(fd, { bigint: true })))
    return { is: 'read', mode, bytes };
  const again = readAll(fd, bytes.length);
  return again.equals(bytes) ? { is: 'read', mode, bytes } : { is: 'unstable' };
}

/** As many bytes as the file had; fewer when it shrinks. */
function readAll(fd: number, size: number): Buffer {
  const bytes = Buffer.allocUnsafe(size);
  let at = 0;
  while (at < size) {
    const got = readSync(fd, bytes, at, size - at, at);
    if (got === 0) break;
    at += got;
  }
  return bytes.subarray(0, at);
}

/** True when nothing has changed the file since shortly before `since`. */
export function isQuiet(stat: BigIntStats, since: bigint): boolean {
  const limit = since - CLOCK_STEP_NS;
  return stat.mtimeNs < limit && stat.ctimeNs < limit;
}

export function sameStat(a: BigIntStats, b: BigIntStats): boolean {
  return (
    a.ino === b.ino &&
    a.size === b.size &&
    a.mtimeNs === b.mtimeNs &&
    a.ctimeNs === b.ctimeNs &&
    a.mode === b.mode
  );
}
