/**
 * Starts a command that does not begin before it is told to.
 *
 * A process that may write has to be findable (PROTOCOL.md 13), so its pid must be in the ledger before its first
 * instruction. A shell stands in its place, waits for one line on descriptor 3, and becomes the command by exec: same pid,
 * same start time, standard streams of the caller, same process group (so that the terminal's job control reaches it).
 * When the caller dies with the gate shut, the shell reads the end of the pipe and the command never begins.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { Writable } from 'node:stream';
import { DurableError } from '../../lib/errors.js';
import { errno } from '../../lib/git/disk.js';

const GATE = 'IFS= read -r go <&3 || exit 125; exec 3<&-; unset go; exec "$@"';

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Gated {
  readonly pid: number;
  /** Lets the command begin. */
  readonly open: () => void;
  /** Ends the shell at the gate; the command never begins. */
  readonly dismiss: () => void;
  readonly kill: (signal: NodeJS.Signals) => void;
  /** When the command itself has ended, whatever it left running. */
  readonly ended: Promise<Ending>;
}

export interface Place {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Throws 'io-failed' when no process can be started (no memory, too many processes, no /bin/sh). */
export async function startAtGate(command: readonly string[], place: Place): Promise<Gated> {
  const child = spawn('/bin/sh', ['-c', GATE, 'sh', ...command], {
    cwd: place.cwd,
    env: { ...place.env },
    stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
  });
  const ended = new Promise<Ending>((resolve) => {
    child.once('exit', (code, signal) => {
      resolve({ code, signal });
    });
  });
  const pid = await started(child);
  const gate = child.stdio[3];
  if (!(gate instanceof Writable)) throw new TypeError('a pipe of a child is not writable');
  // A command killed at the gate closes the pipe: its end tells, not the write.
  gate.on('error', () => undefined);
  return {
    pid,
    open: () => gate.end('\n'),
    dismiss: () => gate.destroy(),
    kill: (signal) => {
      child.kill(signal);
    },
    ended,
  };
}

function started(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', (error) => {
      reject(new DurableError('io-failed', { path: '/bin/sh', errno: errno(error) }, error));
    });
    child.once('spawn', () => {
      resolve(child.pid ?? 0);
    });
  });
}
