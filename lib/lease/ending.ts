/**
 * Ending recorded processes and waiting for the proof of their death (PROTOCOL.md 12).
 *
 * Only by pid with the matching start time, looked at just before each signal. TERM first, so that a program can tidy
 * up, then KILL; a stopped process gets KILL at once, since it cannot answer TERM, and continuing it would let it run
 * the very write that it was stopped before.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { errno } from '../git/disk.js';
import type { Host } from '../host.js';
import { entryOf, isRunning, type ProcessIdentity } from './processes.js';

export interface EndingTimes {
  /** How long TERM is given. Milliseconds. */
  readonly termMs: number;
  /** How long KILL is given. Milliseconds. */
  readonly killMs: number;
}

export const ENDING_TIMES: EndingTimes = { termMs: 2000, killMs: 5000 };
const POLL_MS = 10;

/** Ends the processes; returns those that are still there: another user's, or stuck in the kernel. */
export async function endProcesses<P extends ProcessIdentity>(
  host: Host,
  processes: readonly P[],
  times: EndingTimes = ENDING_TIMES,
): Promise<P[]> {
  for (const one of processes) signal(host, one, entryOf(one.pid)?.stopped === true ? 'SIGKILL' : 'SIGTERM');
  const stubborn = await awaitDeath(host, processes, times.termMs);
  for (const one of stubborn) signal(host, one, 'SIGKILL');
  return awaitDeath(host, stubborn, times.killMs);
}

async function awaitDeath<P extends ProcessIdentity>(
  host: Host,
  processes: readonly P[],
  budgetMs: number,
): Promise<P[]> {
  const until = host.monotonicMs() + budgetMs;
  for (;;) {
    const alive = processes.filter((one) => isRunning(one));
    if (alive.length === 0 || host.monotonicMs() >= until) return alive;
    await pause(POLL_MS);
  }
}

/** Nothing stands between the look and the signal: what reuses the pid in these microseconds cannot be told (kill(2) takes no start time). */
function signal({ faults }: Host, one: ProcessIdentity, name: NodeJS.Signals): void {
  faults.hit('process.end:signal:before');
  try {
    if (isRunning(one)) process.kill(one.pid, name);
  } catch (error) {
    // Gone in between, or another user's: the wait for the proof tells.
    if (errno(error) !== 'ESRCH' && errno(error) !== 'EPERM') throw error;
  }
  faults.hit('process.end:signal:after');
}
