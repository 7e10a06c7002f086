/**
 * What the ledgers and the lease record of a work tree say was left running, for the turns that may have orphans: those that
 * are interrupted, and those that the lease carries.
 */
import type { ProcessRecord, Recorded } from '../event.js';
import { isOf } from '../event.js';
import type { Storage } from '../git/storage.js';
import { isOfHere, processKey, recordedSurvivors } from '../lease/left.js';
import { isRunning } from '../lease/processes.js';
import { Ledger } from '../ledger/ledger.js';
import { readEvent } from '../ledger/load.js';
import { keyIn, type TaskState } from '../ledger/state.js';
import { interruptedHere } from '../recovery/interrupted.js';
import { turnsCarried } from './find.js';
import type { Look } from './look.js';

export interface TurnOfTask {
  readonly task: string;
  readonly turn: string | null;
}

export interface RecordedTurn extends TurnOfTask {
  readonly processes: readonly ProcessRecord[];
}

/** What was said to be there before this look, of this boot. */
export async function recordedTurns(storage: Storage): Promise<RecordedTurn[]> {
  const carried = (await turnsCarried(storage)).filter((one) => isOfHere(storage, one));
  const interrupted = (await interruptedHere(storage)).filter(({ turn }) =>
    isOfHere(storage, turn.started.event.holder),
  );
  return [
    ...interrupted.map(({ state, turn }) => {
      return { task: state.task, turn: turn.id, processes: recordedSurvivors(turn) };
    }),
    ...carried.map(({ task, turn, processes }) => ({ task, turn, processes })),
  ];
}

/** What is recorded as running and is not there any more, by turn. Errors: those of reading a ledger. */
export async function goneTurns(
  storage: Storage,
  recorded: readonly RecordedTurn[],
  look: Look,
): Promise<RecordedTurn[]> {
  const gone: RecordedTurn[] = recorded.map(({ task, turn, processes }) => {
    return { task, turn, processes: processes.filter((one) => !isRunning(one)) };
  });
  for (const task of new Set(recorded.map((one) => one.task))) {
    for (const { event } of await leftRunningIn(storage, task))
      if (event.turn !== null && isGone(event.process, look))
        gone.push({ task, turn: event.turn, processes: [event.process] });
  }
  return gone;
}

/** A container's start names its id (lib/orphans/find.ts); where a client is silent nothing is known of any. */
function isGone(process: ProcessRecord, { containers }: Look): boolean {
  const id = /^([0-9a-f]{12,64}) /.exec(process.start)?.[1];
  if (id === undefined) return !isRunning(process);
  return containers.silent.length === 0 && !containers.running.some((one) => one.id === id);
}

/** Said to be running since the task's newest turn began, and not said to have ended. */
async function leftRunningIn(storage: Storage, task: string): Promise<Recorded<'process.reconciled'>[]> {
  const { state } = await Ledger.open(storage, task).readable();
  const found: Recorded<'process.reconciled'>[] = [];
  for (const [key, commit] of state.keys) {
    if (!key.startsWith('process.reconciled ') || !key.endsWith(' left-running')) continue;
    const { recorded } = await readEvent(storage, task, commit);
    if (isOf(recorded, 'process.reconciled') && !isSettled(state, recorded.event.process))
      found.push(recorded);
  }
  return found;
}

/** What ended once stays ended, whoever looks afterwards. */
export function isSettled({ keys }: TaskState, process: ProcessRecord): boolean {
  return ['gone', 'stopped'].some((end) =>
    keys.has(keyIn('process.reconciled', `${processKey(process)} ${end}`)),
  );
}
