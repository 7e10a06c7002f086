/**
 * Running a container client (docker, podman): by an argument array, without the turn's secrets, for a bounded time.
 *
 * A client that hangs (its daemon does not answer) is killed with all it started: it is the leader of a group of its own. Where
 * there is no client, finding that out is one lookup in the folders of PATH.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { errno } from '../git/disk.js';
import type { Site } from '../git/fault.js';
import type { Host } from '../host.js';

export interface ClientAnswer {
  /** null: it was killed, or could not be started. */
  readonly code: number | null;
  readonly stdout: string;
  readonly isLate: boolean;
}

/** For what a client that has ended left in the pipe. */
const REST_MS = 250;

/** More than any list of containers that a person has. */
const MOST_BYTES = 32 * 1024 * 1024;

/** The program's file; null when no absolute folder of PATH has it. A relative one would be the work tree's to fill. */
export function clientOnPath(host: Host, name: string): string | null {
  const folders = (host.env['PATH'] ?? '').split(delimiter).filter((folder) => isAbsolute(folder));
  return folders.map((folder) => join(folder, name)).find(isProgram) ?? null;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch (error) {
    if (errno(error) === '') throw error;
    return false;
  }
}

/** Runs it to its end, or kills it when `budgetMs` have passed. Throws nothing. */
export async function runClient(
  host: Host,
  command: readonly [string, ...string[]],
  { site, budgetMs }: { readonly site: Site; readonly budgetMs: number },
): Promise<ClientAnswer> {
  const [program, ...args] = command;
  host.faults.hit(`${site}:spawn:before`);
  // A group of its own, so that what a hanging client started can be killed with it.
  const child = spawn(program, args, {
    cwd: '/',
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: clientEnvironment(host.env),
  });
  const answer = await answered(child, budgetMs);
  host.faults.hit(`${site}:spawn:after`);
  return answer;
}

function answered(child: ChildProcess, budgetMs: number): Promise<ClientAnswer> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    const end = (code: number | null, isLate: boolean): void => {
      clearTimeout(timer);
      child.stdout?.destroy();
      resolve({ code, stdout: Buffer.concat(pieces).toString('utf8'), isLate });
    };
    const giveUp = (isLate: boolean): void => {
      endGroup(child);
      end(null, isLate);
    };
    let timer = setTimeout(giveUp, Math.max(1, budgetMs), true);
    child.stdout?.on('data', (piece: Buffer) => {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > MOST_BYTES) giveUp(false);
    });
    // What it has left in the background (a machine, a pause process) may hold its output open: no end of that is awaited.
    child.once('exit', (code) => {
      clearTimeout(timer);
      timer = setTimeout(end, REST_MS, code, false);
    });
    child.once('error', () => {
      end(null, false);
    });
    child.once('close', (code) => {
      end(code, false);
    });
  });
}

/** Its number is not given out again before this process, its parent, has seen it end. */
function endGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch (error) {
    if (errno(error) !== 'ESRCH' && errno(error) !== 'EPERM') throw error;
  }
}

/** A client started inside a turn is nothing of that turn's. */
function clientEnvironment(env: Host['env']): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && !name.startsWith('DURABLE_')) kept[name] = value;
  }
  return kept;
}
