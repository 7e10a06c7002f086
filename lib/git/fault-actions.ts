/**
 * What a fault plan does to this process. Handed to `plannedFaults` by the entry points of programs only (cli, keeper,
 * test children): a library that is imported by somebody else's program never ends or stops it.
 */
import { accessSync } from 'node:fs';
import { errno } from './disk.js';
import type { FaultActions } from './fault.js';

/** Longest time a signal to the own process takes to stop all of its threads. */
const SIGNAL_MS = 20;

export function processFaultActions(pid: number): FaultActions {
  return {
    kill: () => {
      process.kill(pid, 'SIGKILL');
      spin(Number.POSITIVE_INFINITY);
    },
    // Another thread may take the signal: this one runs on for some microseconds, and must not leave the point.
    stop: () => {
      process.kill(pid, 'SIGSTOP');
      spin(SIGNAL_MS);
    },
    enospc: (point) => {
      throw Object.assign(new Error(`ENOSPC: no space left on device, at ${point}`), { code: 'ENOSPC' });
    },
    trace: (point) => {
      try {
        accessSync(`/durable-point/${point}`);
      } catch (error) {
        if (errno(error) !== 'ENOENT') throw error;
      }
    },
  };
}

function spin(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}
