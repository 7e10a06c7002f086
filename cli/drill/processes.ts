/**
 * Processes as the system itself shows them: /proc on Linux, `ps` elsewhere. Nothing here comes from the product.
 *
 * A process is known by its pid together with its start time, since a pid is given out again.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

export interface Seen {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** Linux: clock ticks since boot; elsewhere: the text of `ps -o lstart`. */
  readonly start: string;
  readonly command: string;
}

/** Every living process that may be looked at; a zombie is dead. */
export function processes(): Seen[] {
  return process.platform === 'linux' ? fromProc() : fromPs();
}

function fromProc(): Seen[] {
  const seen: Seen[] = [];
  for (const name of readdirSync('/proc')) {
    const one = /^\d+$/.test(name) ? procEntry(Number(name)) : undefined;
    if (one !== undefined) seen.push(one);
  }
  return seen;
}

function procEntry(pid: number): Seen | undefined {
  let stat: string;
  let command: string;
  try {
    stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
    command = readFileSync(`/proc/${String(pid)}/cmdline`, 'utf8')
      .split('\0')
      .join(' ')
      .trim();
  } catch {
    return undefined; // It ended between the listing and the reading.
  }
  // proc(5): the name in field 2 may hold spaces and brackets, so the rest is counted from the last bracket.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, parent, group] = fields;
  if (state === 'Z' || state === 'X') return undefined;
  return { pid, parent: Number(parent), group: Number(group), start: fields[19] ?? '', command };
}

function fromPs(): Seen[] {
  const listing = spawnSync('ps', ['-axo', 'pid=,ppid=,pgid=,state=,lstart=,command='], {
    env: { ...process.env, LC_ALL: 'C' },
    encoding: 'utf8',
  });
  const seen: Seen[] = [];
  for (const line of listing.stdout.split('\n')) {
    const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+ \S+ +\S+ \S+ \S+)\s+(.*)$/.exec(line);
    if (match === null || match[4]?.startsWith('Z') === true) continue;
    const [, pid, parent, group, , start = '', command = ''] = match;
    seen.push({ pid: Number(pid), parent: Number(parent), group: Number(group), start, command });
  }
  return seen;
}

export function find(pid: number): Seen | undefined {
  return process.platform === 'linux' ? procEntry(pid) : fromPs().find((seen) => seen.pid === pid);
}

export function alive(one: Pick<Seen, 'pid' | 'start'>): boolean {
  return find(one.pid)?.start === one.start;
}

/** SIGKILL to exactly that process, never to a later one that got its pid. */
export function end(one: Pick<Seen, 'pid' | 'start'>): void {
  if (!alive(one)) return;
  try {
    process.kill(one.pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

/** Waits until the condition holds; false when it does not within the budget. */
export async function until(condition: () => boolean, budgetMs: number): Promise<boolean> {
  const limit = performance.now() + budgetMs;
  while (!condition()) {
    if (performance.now() > limit) return false;
    await pause(10);
  }
  return true;
}
