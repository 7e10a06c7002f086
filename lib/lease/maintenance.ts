/**
 * `gc.pid`: keeps `git gc` and `git maintenance` away while a turn is open (DESIGN.md, invariant 5).
 *
 * Git refuses to start a gc while `<common git dir>/gc.pid` is younger than 12 hours and names a live pid on this host
 * (builtin/gc.c, lock_repo_for_gc). We write the pid of the turn's holder, so that the file means nothing once that
 * process is dead, and refresh it with each renewal. It is a courtesy that saves work; what keeps events from being
 * lost is the journal. So it never waits and never fights: a file of somebody who is alive is left alone (another
 * work tree's turn, or a gc at work), and the next renewal looks again.
 *
 * Calling order: `holdMaintenance` at acquisition and with each renewal, `dropMaintenance` at the end. Git reads two words and no
 * further; behind them stands who the pid is, so that whoever comes later tells ours from another git's and a dead holder's from a
 * living one's: `healMaintenance`, at every verb, takes ours away once its holder is proven dead.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { errno, diskError } from '../git/disk.js';
import { hasCode } from '../errors.js';
import type { NamedProcess } from '../git/identity.js';
import type { Storage } from '../git/storage.js';
import { isPidTaken } from './processes.js';

/** Well before the twelve hours after which git takes the file for a left-over. Wall clock, since git judges by it. */
const REFRESH_MS = 3600 * 1000;

/** Puts the file there when none stands, or refreshes ours; true when it names `holder` now. */
export function holdMaintenance(storage: Storage, holder: NamedProcess): boolean {
  const file = gcFile(storage);
  const found = readHolder(file);
  const isOwn = found?.who?.pid === holder.pid && found.who.start === holder.start;
  if (found !== null && found.host !== hostName(storage)) return false;
  if (found !== null && !isOwn && !isOver(storage, found)) return false;
  if (isOwn && Math.abs(storage.host.now().getTime() - found.writtenAt) < REFRESH_MS) return true;
  const { host, boot, pidNamespace, pid, start } = holder;
  const who = JSON.stringify({ host, boot, pidNamespace, pid, start });
  const temp = storage.tickets.temp();
  const text = `${String(pid)} ${hostName(storage)} ${MARK} ${who}`;
  storage.disk.createPassing('maintenance.hold', temp, Buffer.from(text, 'utf8'), 0o644);
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

/** Takes the file of a turn that nobody could end away: its path, or []. One that cannot be read or taken stays. */
export function healMaintenance(storage: Storage): string[] {
  const file = gcFile(storage);
  try {
    const who = readHolder(file)?.who ?? null;
    if (who === null || storage.identity.judge(who).verdict !== 'dead') return [];
    return storage.disk.unlink('maintenance.drop', file) ? [file] : [];
  } catch (error) {
    if (hasCode(error, 'permission-denied') || hasCode(error, 'io-failed')) return [];
    throw error;
  }
}

interface GcHolder {
  readonly pid: number;
  readonly host: string;
  /** Null in a file that is not of ours. */
  readonly who: NamedProcess | null;
  /** Wall clock, milliseconds. */
  readonly writtenAt: number;
}

const MARK = 'git-durable';

const WHO = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({
    host: v.string(),
    boot: v.string(),
    pidNamespace: v.string(),
    pid: v.number(),
    start: v.string(),
  }),
);

const gcFile = (storage: Storage): string => join(storage.layout.commonDir, 'gc.pid');
const hostName = (storage: Storage): string => storage.identity.here().hostname;

function readHolder(file: string): GcHolder | null {
  try {
    const [first = '', more] = readFileSync(file, 'utf8').split(` ${MARK} `);
    const [, pid = '0', host = ''] = /^(\d+) (\S+)/.exec(first) ?? [];
    const who = v.safeParse(WHO, more);
    const writtenAt = statSync(file).mtimeMs;
    return { pid: Number(pid), host, who: who.success ? who.output : null, writtenAt };
  } catch (error) {
    if (errno(error) === 'ENOENT') return null;
    throw diskError(error, file);
  }
}

/** Ours by its holder; another git's as git judges it. */
function isOver(storage: Storage, { who, pid }: GcHolder): boolean {
  return who === null ? !isPidTaken(pid) : storage.identity.judge(who).verdict === 'dead';
}
