/** What a dead or a finished turn, or an operation whose program was killed, left running: a process, or a container. */
import { readFileSync } from 'node:fs';
import { errno } from '../git/disk.js';
import type { Storage } from '../git/storage.js';

export interface Orphan {
  readonly kind: 'process' | 'container';
  /** Of a process: pid and start time; of a container: its own id. */
  readonly id: string;
  /** Of a container: of its first process, as the client gives it (in a virtual machine it is that machine's). */
  readonly pid: number;
  /** Start time as the system, or the client, gives it. */
  readonly start: string;
  /** ISO 8601; null where nobody knows. */
  readonly startedAt: string | null;
  readonly command: string;
  readonly task: string;
  /** Null for what an operation (`op`) of a person's left. */
  readonly turn: string | null;
  /** The program that answers for a container; null for a process. */
  readonly client: string | null;
}

const TICK_MS = 10;

/**
 * Start time as the system gives it (Linux: ticks since boot; elsewhere: text) as ISO 8601, the same each time it is asked and
 * true to the second; null when it is neither.
 */
export function startTime(storage: Storage, start: string): string | null {
  if (/^\d+$/.test(start)) return new Date(bootTime(storage) + Number(start) * TICK_MS).toISOString();
  const time = Date.parse(start);
  return Number.isNaN(time) ? null : new Date(time).toISOString();
}

/** Milliseconds. Clock less uptime is another one at each look, so the system's own word comes first (proc_stat(5)). */
function bootTime({ host }: Storage): number {
  try {
    const seconds = /^btime (\d+)$/m.exec(readFileSync('/proc/stat', 'latin1'))?.[1];
    if (seconds !== undefined) return Number(seconds) * 1000;
  } catch (error) {
    if (errno(error) === '') throw error;
  }
  return host.now().getTime() - host.uptimeMs();
}

/** Each once, by what it is; the first one stands. */
export function distinct(orphans: readonly Orphan[]): Orphan[] {
  const once = new Map<string, Orphan>();
  for (const one of orphans) {
    const key = `${one.kind} ${one.id}`;
    if (!once.has(key)) once.set(key, one);
  }
  return [...once.values()];
}
