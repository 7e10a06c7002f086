/**
 * Recording what became of processes that a turn left running: `process.reconciled`, in the ledger of the task of that turn.
 *
 * A turn's start does it for the turns before it, in this order:
 *   1. the lease is acquired, its record carries what they left (lib/lease/left.ts)
 *   2. one append a turn: gone, stopped by the takeover, or left running
 *   3. the lease is renewed without what is gone
 *   4. only then `turn.started`, after which the ledger no longer looks for repeated keys of before
 *
 * Killed after any of these, the next start does the same again: what is recorded is found by its key and not repeated, what is not
 * is in the lease record still. A process is said to be left running once, and to be gone or stopped once, in this order.
 * A ledger that cannot be written (damaged, of a newer version) keeps no turn from starting: its turn is carried on as it is.
 */
import { isDurableError } from '../errors.js';
import type { DraftOf, ProcessRecord } from '../event.js';
import type { Storage } from '../git/storage.js';
import type { Held } from '../lease/hold.js';
import { isOfHere, processKey } from '../lease/left.js';
import { isRunning } from '../lease/processes.js';
import type { LeftTurn } from '../lease/record.js';
import { Ledger, listTasks } from '../ledger/ledger.js';
import { cut } from '../ledger/subject.js';
import { processesLeft } from './find.js';
import { lookAround, type Look } from './look.js';
import { isSettled } from './recorded.js';

export interface Outcome {
  readonly process: ProcessRecord;
  readonly outcome: DraftOf<'process.reconciled'>['outcome'];
}

export interface Recorder {
  readonly agent: string;
  readonly workspace: string | null;
}

/** An event is a record, not a listing. */
const MOST = 100;

/** One append. Errors: those of an append; nothing where the task is not here. */
export async function recordOutcomes(
  storage: Storage,
  {
    task,
    turn,
    outcomes,
  }: { readonly task: string; readonly turn: string | null; readonly outcomes: readonly Outcome[] },
  by: Recorder,
): Promise<void> {
  if (outcomes.length === 0 || !listTasks(storage).includes(task)) return;
  await Ledger.open(storage, task).append(
    (state) =>
      outcomes
        .filter(({ process }) => !isSettled(state, process))
        .slice(0, MOST)
        .map(({ process, outcome }) => ({
          type: 'process.reconciled',
          turn,
          process: { ...process, command: cut(process.command, 200) },
          outcome,
        })),
    { lease: null, ...by },
  );
}

/** Steps 2 and 3, for a holding that is about to start a turn. Errors: 'lease-lost', those of the disk. */
export async function reconcileLeft(storage: Storage, held: Held, by: Recorder): Promise<void> {
  const { left } = held.record;
  // Asking the process table costs milliseconds; nearly no turn leaves anything.
  if (left.every(({ processes }) => processes.length === 0)) return;
  const look = await lookAround(storage, { containers: false });
  const ended = new Set((held.takenOver?.ended ?? []).map(processKey));
  const after: LeftTurn[] = [];
  for (const turn of left) after.push(await reconciled(storage, turn, { look, ended, by }));
  await held.renew({ left: after });
}

async function reconciled(
  storage: Storage,
  left: LeftTurn,
  { look, ended, by }: { readonly look: Look; readonly ended: ReadonlySet<string>; readonly by: Recorder },
): Promise<LeftTurn> {
  if (!canTell(storage, left)) return left;
  const alive = stillRunning(storage, left, look);
  const known = new Set(left.isReconciled ? left.processes.map(processKey) : []);
  const outcomes = [
    ...goneOf(left.processes, alive).map((process): Outcome => {
      return { process, outcome: ended.has(processKey(process)) ? 'stopped' : 'gone' };
    }),
    ...alive
      .filter((process) => !known.has(processKey(process)))
      .map((process): Outcome => ({ process, outcome: 'left-running' })),
  ];
  try {
    await recordOutcomes(storage, { ...left, outcomes }, by);
  } catch (error) {
    if (!isDurableError(error)) throw error;
    return left;
  }
  return { ...left, processes: alive.slice(0, MOST), isReconciled: true };
}

/** Pids of another host or pid namespace say nothing here; those of an earlier boot are gone. */
function canTell(storage: Storage, { host, pidNamespace }: LeftTurn): boolean {
  const here = storage.identity.here();
  return host === here.hostId && pidNamespace === here.pidNamespace;
}

/** Recorded ones that run, whoever may end them, and those found besides. */
function stillRunning(storage: Storage, left: LeftTurn, look: Look): ProcessRecord[] {
  if (!isOfHere(storage, left)) return [];
  const alive = [...left.processes.filter((one) => isRunning(one)), ...processesLeft(storage, left, look)];
  return [...new Map(alive.map((one) => [processKey(one), one])).values()];
}

function goneOf(recorded: readonly ProcessRecord[], alive: readonly ProcessRecord[]): ProcessRecord[] {
  const running = new Set(alive.map(processKey));
  return recorded.filter((one) => !running.has(processKey(one)));
}
