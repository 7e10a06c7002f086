/** Turns that leave processes running, and what the program says of those. */
import { readFileSync } from 'node:fs';
import type { ExecutionContext } from 'ava';
import { entryOf } from '../../lib/lease/processes.js';
import { document, events, last } from './events.js';
import { stateOf, until } from './processes.js';
import { durable, startDurable } from './program.js';
import type { Scratch } from './scratch.js';

export interface Orphan {
  readonly pid: number;
  readonly startedAt: string;
  readonly command: string;
  readonly turn: string;
  readonly kind: string;
  readonly id: string;
}

export const isOver = (pid: number): boolean => ['', 'Z'].includes(stateOf(pid));
export const orphans = (place: Scratch, ...words: readonly string[]): Orphan[] =>
  document<Orphan[]>(place, ['orphans', ...words]);
export const pids = (found: readonly Orphan[]): number[] => found.map(({ pid }) => pid).sort((a, b) => a - b);
export const outcomes = (place: Scratch): unknown[] =>
  events(place, '--type', 'process.reconciled').map((event) => [
    (event['process'] as { pid: number }).pid,
    event['outcome'],
  ]);

/** At the test's end it is gone, whatever became of it. */
export function endAfter(t: ExecutionContext, pid: number): number {
  const start = entryOf(pid)?.start;
  t.teardown(() => {
    if (start !== undefined && entryOf(pid)?.start === start) process.kill(pid, 'SIGKILL');
  });
  return pid;
}

/** Runs a turn to its end; its script prints the pids of what it leaves. */
export function leave(
  t: ExecutionContext,
  place: Scratch,
  script: string,
  words: readonly string[] = [],
): number[] {
  const ran = durable(place, ['run', ...words, '--', 'sh', '-c', script]);
  if (ran.code !== 0) throw new Error(`run ended with ${String(ran.code)}: ${ran.stderr}`);
  return ran.stdout
    .trim()
    .split(/\s+/)
    .map((pid) => endAfter(t, Number(pid)));
}

/** Standard streams of its own: the caller of `run` reads them to their end. */
export const BACKGROUND = 'sleep 1000 </dev/null >/dev/null 2>&1 & echo $!';

/** A turn whose `run` gets SIGKILL after the script's first line, the pids of what it leaves; the script itself ends. */
export async function killed(t: ExecutionContext, place: Scratch, script: string): Promise<number[]> {
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', `${script}; read -r _`]);
  const line = (await running.line()) ?? '';
  process.kill(running.pid, 'SIGKILL');
  await running.ended;
  const { process: command } = last(events(place), 'process.started') as unknown as {
    process: { pid: number };
  };
  running.child.stdin.end('\n');
  await until('the command ended', () => isOver(command.pid));
  await until('the keeper has seen it', () => last(events(place), 'turn.interrupted') !== undefined);
  return line
    .trim()
    .split(/\s+/)
    .map((pid) => endAfter(t, Number(pid)));
}

/** What a file holds, trimmed; '' where there is none yet. */
export function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}
