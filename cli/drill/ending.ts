/**
 * What outlived the agent is to be ended, and nothing else: in half of the rounds by `orphans --stop` before the repairs, in the
 * others by the first repair, after which `orphans --stop` must find nothing.
 *
 * A bystander stands beside it: the same command line, the marker of another turn, and nobody's business. Who is alive is told by
 * the system (cli/drill/processes.ts), not by the product.
 */
import { spawn } from 'node:child_process';
import type { Answered, Orphans, Product } from './answers.js';
import type { Complaints } from './judge.js';
import { alive, find, type Seen } from './processes.js';
import { background } from './wording.js';

/** Ends with the round at the latest. Throws when the system does not show it. */
export function startBystander(seed: string): Seen {
  const { program, args } = background(seed);
  const child = spawn(program, args, {
    cwd: '/',
    detached: true,
    stdio: 'ignore',
    env: { ...process.env, DURABLE_MARKER: 'of a turn in another repository' },
  });
  child.on('error', () => undefined);
  child.unref();
  const seen = find(child.pid ?? 0);
  if (seen === undefined) throw new Error('the bystander did not start');
  return { ...seen, command: [program, ...args].join(' ') };
}

export interface Ending {
  readonly when: 'before the repairs' | 'after the repairs';
  readonly listed: Answered<Orphans>;
  readonly stopped: Answered<Orphans>;
  readonly again: Answered<Orphans>;
  /** Of those that outlived the agent, who lives now. */
  readonly left: readonly Seen[];
  readonly bystanderLives: boolean;
}

export async function endOrphans(
  product: Product,
  when: Ending['when'],
  { outlived, bystander }: { readonly outlived: readonly Seen[]; readonly bystander: Seen },
): Promise<Ending> {
  const listed = await product.orphans();
  const stopped = await product.stopOrphans();
  const again = await product.orphans();
  const left = outlived.filter(alive);
  return { when, listed, stopped, again, left, bystanderLives: alive(bystander) };
}

/** `outlived`: background processes of the turn that were alive after the kill. */
export function orphansEnded(outlived: readonly Seen[], ending: Ending): Complaints {
  const { when, listed, stopped, again, left, bystanderLives } = ending;
  const due = when === 'before the repairs' ? pids(outlived) : '';
  const complaints: string[] = [];
  if (pids(listed.document) !== due)
    complaints.push(`orphans ${when} are [${due}], listed are [${pids(listed.document)}]`);
  if (stopped.code !== 0) complaints.push(`orphans --stop ended with ${String(stopped.code)}`);
  if (pids(stopped.document) !== due)
    complaints.push(`orphans --stop has to end [${due}] and says [${pids(stopped.document)}]`);
  if (again.document.length > 0) complaints.push(`after --stop [${pids(again.document)}] are listed`);
  if (left.length > 0) complaints.push(`[${pids(left)}] still run ${when} and --stop`);
  if (!bystanderLives) complaints.push('a process that is nobody of the turn was ended');
  return complaints;
}

const pids = (all: readonly { readonly pid: number }[]): string =>
  all
    .map(({ pid }) => String(pid))
    .sort()
    .join(', ');
