/**
 * Which maintenance is at work on a repository now (Linux: /proc). A git whose repository cannot be told is taken for
 * one of ours; a git of another user, or in another pid namespace, is not seen.
 */
import { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const MAINTENANCE = new Set(['gc', 'maintenance', 'prune', 'prune-packed', 'repack', 'pack-objects']);
/** USER_HZ: Linux gives start times to user space in hundredths of a second on every architecture in use. */
const TICK_MS = 10;

/**
 * Start, in milliseconds since boot, of the maintenance process of this repository that has run longest: Infinity when
 * none runs, null where processes cannot be listed.
 */
export function oldestMaintenance(commonDir: string): number | null {
  const pids = processes();
  if (pids.length === 0) return null;
  const ours = realOr(commonDir);
  let oldest = Number.POSITIVE_INFINITY;
  for (const pid of pids) {
    const words = readOr(`/proc/${pid}/cmdline`).split('\0');
    if (!/(?:^|\/)git[^/]*$/.test(words[0] ?? '') || !words.some((word) => isMaintenance(word))) continue;
    const repository = repositoryOf(pid, words);
    if (repository === null || repository === ours) oldest = Math.min(oldest, startOf(pid));
  }
  return oldest;
}

const isMaintenance = (word: string): boolean => MAINTENANCE.has(word.replace(/^git-/, ''));

/** Field 22 of proc(5), counted from the third, after the name in parentheses. */
function startOf(pid: string): number {
  const fields = readOr(`/proc/${pid}/stat`)
    .replace(/^.*\) /s, '')
    .split(' ');
  return Number(fields[19] ?? '0') * TICK_MS;
}

/** The common git dir that a git works in; null when it cannot be told. */
function repositoryOf(pid: string, words: readonly string[]): string | null {
  const cwd = linkOr(`/proc/${pid}/cwd`);
  if (cwd === null) return null;
  const option = words.findIndex((word) => word.startsWith('--git-dir'));
  const named =
    option === -1
      ? /(?:^|\0)GIT_DIR=([^\0]*)/.exec(readOr(`/proc/${pid}/environ`))?.[1]
      : (words[option]?.split('=')[1] ?? words[option + 1]);
  if (named !== undefined) return commonOf(resolve(cwd, named));
  for (let at = cwd; ; at = dirname(at)) {
    if (existsSync(join(at, 'HEAD')) && existsSync(join(at, 'objects'))) return commonOf(at);
    const entry = join(at, '.git');
    if (existsSync(entry)) {
      const file = /^gitdir: (.*?)\n?$/s.exec(readOr(entry))?.[1];
      return commonOf(file === undefined ? entry : resolve(at, file));
    }
    if (dirname(at) === at) return null;
  }
}

function commonOf(gitDir: string): string {
  const common = readOr(join(gitDir, 'commondir')).trim();
  return realOr(common === '' ? gitDir : resolve(gitDir, common));
}

function processes(): string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    // No /proc here.
    return [];
  }
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // The process has ended, is hidden from us, or it is a folder.
    return '';
  }
}

function linkOr(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    // As above.
    return null;
  }
}

function realOr(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // Gone: it equals nothing but itself.
    return path;
  }
}
