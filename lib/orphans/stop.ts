/**
 * Ending orphans: exactly those that are found, TERM first, then KILL, and a record of each.
 *
 *   1. find               processes and containers of turns that are interrupted or over
 *   2. announce           those that no event names yet are recorded as left running
 *   3. end                each by pid and start time, looked at just before each signal (lib/lease/ending.ts); a container by its id
 *   4. find again         what they had started meanwhile: 2 and 3 for that, three times at most
 *   5. record             one append a turn: stopped, left running (it did not end), gone (recorded earlier, and not there)
 *
 * Killed anywhere, nothing is lost: what was ended and not recorded was recorded as running, and whoever looks next (this verb, or the
 * start of a turn for what the lease record names) finds it gone and records that, once. No lease is needed: no byte of the work
 * tree changes, and a turn may be under way beside it.
 */
import type { ProcessRecord } from '../event.js';
import type { Storage } from '../git/storage.js';
import { endProcesses } from '../lease/ending.js';
import { processKey } from '../lease/left.js';
import { workspaceId } from '../lease/workspace.js';
import { stopContainers } from './containers.js';
import { orphansIn } from './find.js';
import { lookAround, type Look } from './look.js';
import type { Orphan } from './orphan.js';
import { recordOutcomes, type Outcome, type Recorder } from './reconcile.js';
import { goneTurns, recordedTurns, type RecordedTurn, type TurnOfTask } from './recorded.js';

export interface StoppedOrphans {
  readonly stopped: readonly Orphan[];
  /** Still there: another user's, stuck in the kernel, or started anew each time. */
  readonly remaining: readonly Orphan[];
  /** What could not be asked: one sentence each. */
  readonly silent: readonly string[];
  /** As of `findOrphans`. */
  readonly foreign: readonly ProcessRecord[];
}

const ROUNDS = 3;

/** Errors: those of an append, and the disk's. */
export async function stopOrphans(storage: Storage, agent: string): Promise<StoppedOrphans> {
  const by = { agent, workspace: workspaceId(storage, { create: false }) };
  const recorded = await recordedTurns(storage);
  const first = await lookAround(storage, { containers: true });
  const stopped: Orphan[] = [];
  const remaining: Orphan[] = [];
  let look: Look = first;
  for (let round = 1; ; round += 1) {
    const found = await orphansIn(storage, look);
    const fresh = found.filter((one) => ![...stopped, ...remaining].some(({ id }) => id === one.id));
    if (round > ROUNDS) remaining.push(...fresh);
    if (fresh.length === 0 || round > ROUNDS) break;
    await announce(storage, fresh, { recorded, by });
    const left = await end(storage, fresh);
    remaining.push(...left);
    stopped.push(...fresh.filter((one) => !left.includes(one)));
    look = await lookAround(storage, { containers: false });
  }
  const gone = await goneTurns(storage, recorded, first);
  await record(storage, { stopped, remaining, gone }, by);
  const foreign = [...new Map([...first.foreign, ...look.foreign]).values()];
  return { stopped, remaining, silent: first.containers.silent, foreign };
}

/** Killed after ending something that no event names, nobody would know that it had been there. */
async function announce(
  storage: Storage,
  orphans: readonly Orphan[],
  { recorded, by }: { readonly recorded: readonly RecordedTurn[]; readonly by: Recorder },
): Promise<void> {
  const named = new Set(recorded.flatMap(({ processes }) => processes.map(processKey)));
  const fresh = orphans.filter((one) => !named.has(processKey(one)));
  const turns = new ByTurn();
  for (const one of fresh) turns.add(one, { process: recordOf(one), outcome: 'left-running' });
  await turns.record(storage, by);
}

/** Returns those that did not end. */
async function end(storage: Storage, orphans: readonly Orphan[]): Promise<Orphan[]> {
  const processes = orphans.filter(({ kind }) => kind === 'process');
  const left = await endProcesses(storage.host, processes);
  for (const client of new Set(orphans.map((one) => one.client))) {
    if (client === null) continue;
    const own = orphans.filter((one) => one.client === client);
    const ids = own.map(({ id }) => id);
    const running = await stopContainers(storage.host, client, ids);
    left.push(...own.filter(({ id }) => running.includes(id)));
  }
  return left;
}

/** What this call ended is not gone by itself. */
async function record(
  storage: Storage,
  {
    stopped,
    remaining,
    gone,
  }: {
    readonly stopped: readonly Orphan[];
    readonly remaining: readonly Orphan[];
    readonly gone: readonly RecordedTurn[];
  },
  by: Recorder,
): Promise<void> {
  const turns = new ByTurn();
  const here = new Set([...stopped, ...remaining].map(processKey));
  for (const one of stopped) turns.add(one, { process: recordOf(one), outcome: 'stopped' });
  for (const one of remaining) turns.add(one, { process: recordOf(one), outcome: 'left-running' });
  for (const turn of gone) {
    for (const process of turn.processes)
      if (!here.has(processKey(process))) turns.add(turn, { process, outcome: 'gone' });
  }
  await turns.record(storage, by);
}

const recordOf = ({ pid, start, command }: Orphan): ProcessRecord => ({ pid, start, command });

/** Outcomes by the turn that they are recorded for. */
class ByTurn {
  readonly #turns = new Map<string, TurnOfTask & { readonly outcomes: Outcome[] }>();

  add({ task, turn }: TurnOfTask, outcome: Outcome): void {
    const key = `${task} ${turn ?? ''}`;
    const known = this.#turns.get(key) ?? { task, turn, outcomes: [] };
    if (!known.outcomes.some(({ process }) => processKey(process) === processKey(outcome.process)))
      known.outcomes.push(outcome);
    this.#turns.set(key, known);
  }

  async record(storage: Storage, by: Recorder): Promise<void> {
    for (const turn of this.#turns.values()) await recordOutcomes(storage, turn, by);
  }
}
