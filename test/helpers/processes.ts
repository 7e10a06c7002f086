/** Waiting for what a process does, by looking at it. */
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

/** Looks until `seen` is true; fails after 20 s, which no state that these tests wait for takes. */
export async function until(what: string, seen: () => boolean): Promise<void> {
  const end = performance.now() + 20_000;
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
