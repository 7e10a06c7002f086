/** Waiting for what a process does, by looking at it. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

/** Looks until `seen` is true; fails after 20 s, or `bound` ms, which no state that these tests wait for takes. */
export async function until(what: string, seen: () => boolean, bound = 20_000): Promise<void> {
  const end = performance.now() + bound;
  while (!seen()) {
    if (performance.now() > end) throw new Error(`never seen: ${what}`);
    await pause(5);
  }
}

/** The state letter of a process (proc(5)), '' when it is gone. */
export function stateOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
    return stat.charAt(stat.lastIndexOf(')') + 2);
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH'))
      return '';
    throw error;
  }
}

/** Command lines of the processes that name `text` (a folder of the test's own), this process left out. */
export function processesNaming(text: string): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  return pids.map(commandLine).filter((line) => line.includes(text));
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    // It ended while the list was read.
    return '';
  }
}
