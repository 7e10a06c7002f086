/** What the system tells of one process: /proc on Linux, ps(1) on macOS and the BSDs. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Variables that the process was started with, in the order of `names`; undefined when it has none, is gone or is another user's. */
export function variablesOf(pid: number, names: readonly string[]): (string | undefined)[] {
  return process.platform === 'linux' ? linuxVariables(pid, names) : psVariables(pid, names);
}

function linuxVariables(pid: number, names: readonly string[]): (string | undefined)[] {
  const variables = readProc(pid, 'environ')?.toString('utf8').split('\0') ?? [];
  return names.map((name) => variables.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1));
}

/** `ps -E` prints variables behind the command, between spaces: neither a marker nor a pid holds one. */
function psVariables(pid: number, names: readonly string[]): (string | undefined)[] {
  const line = ps(['-E', '-p', String(pid), '-o', 'command=']);
  return names.map((name) => new RegExp(`(?:^| )${name}=(\\S+)`).exec(line)?.[1]);
}

/** A file of /proc; undefined when the process is gone or belongs to somebody else. */
export function readProc(pid: number, file: string): Buffer | undefined {
  try {
    return readFileSync(`/proc/${String(pid)}/${file}`);
  } catch {
    return undefined;
  }
}

export function ps(args: readonly string[]): string {
  const ran = spawnSync('ps', args, { encoding: 'utf8', env: { LC_ALL: 'C', PATH: '/bin:/usr/bin' } });
  return ran.stdout;
}
