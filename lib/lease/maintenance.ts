/**
 * `gc.pid`: keeps `git gc` and `git maintenance` away while a turn is open (DESIGN.md, invariant 5).
 *
 * Git refuses to start a gc while `<common git dir>/gc.pid` is younger than 12 hours and names a live pid on this host
 * (builtin/gc.c, lock_repo_for_gc). We write the pid of the turn's holder, so that the file means nothing once that
 * process is dead, and refresh it with each renewal. It is a courtesy that saves work; what keeps events from being
 * lost is the journal. So it never waits and never fights: a file of somebody who is alive is left alone (another
 * work tree's turn, or a gc at work), and the next renewal looks again.
 *
 * Calling order: `holdMaintenance` at acquisition and with each renewal, `dropMaintenance` at the end.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { errno, diskError } from '../git/disk.js';
import type { Storage } from '../git/storage.js';
import { freshId } from '../host.js';

/** Well before the twelve hours after which git takes the file for a left-over. Wall clock, since git judges by it. */
const REFRESH_MS = 3600 * 1000;

/** Puts the file there when none stands, or refreshes ours; true when it names `pid` now. */
export function holdMaintenance(storage: Storage, pid: number): boolean {
  const file = gcFile(storage);
  const found = readHolder(file);
  if (found !== null && found.host !== hostName(storage)) return false;
  if (found !== null && found.pid !== pid && isThere(found.pid)) return false;
  if (found?.pid === pid && Math.abs(storage.host.now().getTime() - found.writtenAt) < REFRESH_MS)
    return true;
  const temp = `${file}.${freshId(storage.host, 10)}`;
  storage.disk.createPassing(
    'maintenance.hold',
    temp,
    Buffer.from(`${String(pid)} ${hostName(storage)}`),
    0o644,
  );
  if (found !== null) return storage.disk.rename('maintenance.hold', temp, file) === 'done';
  const linked = storage.disk.link('maintenance.hold', temp, file) === 'done';
  storage.disk.unlink('maintenance.hold', temp);
  return linked;
}

/** Takes the file away if it names `pid`. */
export function dropMaintenance(storage: Storage, pid: number): void {
  const file = gcFile(storage);
  const found = readHolder(file);
  if (found?.pid === pid && found.host === hostName(storage)) storage.disk.unlink('maintenance.drop', file);
}

interface GcHolder {
  readonly pid: number;
  readonly host: string;
  /** Wall clock, milliseconds. */
  readonly writtenAt: number;
}

const gcFile = (storage: Storage): string => join(storage.layout.commonDir, 'gc.pid');
const hostName = (storage: Storage): string => storage.identity.here().hostname;

function readHolder(file: string): GcHolder | null {
  try {
    const match = /^(\d+) (\S+)/.exec(readFileSync(file, 'latin1'));
    return { pid: Number(match?.[1] ?? '0'), host: match?.[2] ?? '', writtenAt: statSync(file).mtimeMs };
  } catch (error) {
    if (errno(error) === 'ENOENT') return null;
    throw diskError(error, file);
  }
}

/** As git judges it: a pid that may be signalled, or that is another user's. */
function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errno(error) !== 'ESRCH';
  }
}
