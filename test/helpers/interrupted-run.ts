/** A `run` that was killed, the way the tests of recovery need it. */
import type { ExecutionContext } from 'ava';
import { document, events, last, type Line } from './events.js';
import { killKeeper } from './keeper.js';
import { processesNaming, stateOf, until } from './processes.js';
import { startDurable } from './program.js';
import type { Scratch } from './scratch.js';

export interface InterruptedRun {
  /** What the command does before the kill. Default: README is changed, `made` is made. */
  readonly script?: string;
  /** A work tree. */
  readonly cwd?: string;
  /** null: the command line. */
  readonly objective?: string | null;
  readonly keeper?: 'lives' | 'dies';
}

/** A turn whose holder got SIGKILL after its command had written; the command is gone too. */
export async function interrupted(
  t: ExecutionContext,
  place: Scratch,
  options: InterruptedRun = {},
): Promise<void> {
  const { script = 'echo changed > README; echo made > made', cwd = place.dir, keeper = 'lives' } = options;
  const { objective = 'rename it' } = options;
  const command = ['--', 'sh', '-c', `${script}; echo written; read -r _`];
  const named = objective === null ? [] : ['--objective', objective];
  const running = startDurable(t, place, ['run', ...named, ...command], { cwd });
  const line = await running.line();
  if (line !== 'written') throw new Error(`the command said ${String(line)}: ${running.said}`);
  if (keeper === 'dies') await killKeeper(place);
  process.kill(running.pid, 'SIGKILL');
  await running.ended;
  running.child.stdin.end('\n');
  const started = last(events(place), 'process.started') as unknown as { process: { pid: number } };
  await until('the command ended', () => ['', 'Z'].includes(stateOf(started.process.pid)));
}

/** The same, its keeper having recorded the death. `script` (for sh) is whole when its holder dies. */
export async function interruptedRun(
  t: ExecutionContext,
  place: Scratch,
  script: string,
  cwd = place.dir,
): Promise<void> {
  await interrupted(t, place, { script, cwd, objective: null });
  await until('the keeper is gone', () => processesNaming(cwd).length === 0);
}

interface Lease {
  readonly renewedAt: string;
}

export function leaseIn(place: Scratch): Lease {
  const ref = place.git('for-each-ref', '--format=%(refname)', 'refs/durable/leases');
  const lines = place.git('log', '-1', '--format=%B', ref).split('\n');
  return JSON.parse(lines.find((one) => one.startsWith('{')) ?? '{}') as Lease;
}

/** What the tests read of `recover --json`. */
export interface Report {
  readonly interrupted: readonly {
    readonly turn: string;
    readonly task: string;
    readonly objective: string;
    readonly invocations: readonly Line[];
    readonly files: readonly Line[];
    readonly approvals: readonly Line[];
    readonly orphans: readonly { readonly pid: number }[];
    readonly gitStatusMatches: boolean;
  }[];
}

export const report = (place: Scratch, ...words: readonly string[]): Report =>
  document<Report>(place, ['recover', ...words], { codes: [0, 3] });

/** Of the only interrupted turn: each path with its state. */
export const statesIn = (place: Scratch): unknown[] =>
  (report(place).interrupted[0]?.files ?? []).map(({ path, state }) => [path, state]);
