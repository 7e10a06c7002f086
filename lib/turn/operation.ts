/**
 * What a person does by hand, outside any turn: a checkpoint, a restore.
 *
 * It is recorded in the work tree's standing task. A restore holds an operation lease for as long as it takes: no turn can start
 * under it, and it cannot start under another's turn ('lease-held'); from inside a turn it is that turn's own restore.
 * Killed before its transaction was prepared, it has changed nothing, and the next holder takes the lease over at once; killed
 * after it, it is interrupted work, which recovery names and settles (lib/recovery/cut-restore.ts).
 */
import { hasCode } from '../errors.js';
import type { ProcessRecord } from '../event.js';
import { presentPaths, takeCheckpoint, type TakenCheckpoint } from '../files/checkpoint.js';
import { checkPaths, previewRestore, restore, type Restored, type RestoreRequest } from '../files/restore.js';
import type { Storage } from '../git/storage.js';
import type { Held } from '../lease/hold.js';
import { acquire } from '../lease/acquire.js';
import { ownWorkspace, type LeaseRequest } from '../lease/take.js';
import { standingTaskId } from '../lease/workspace.js';
import { Ledger, openTask } from '../ledger/ledger.js';
import { cut } from '../ledger/subject.js';
import { witnessing } from '../recovery/scene.js';
import { attachTurn } from './attach.js';
import type { Turn } from './turn.js';

const PERSON = 'person';

export interface ManualCheckpoint {
  readonly message?: string;
  /** Kept even when they are ignored; relative to the work tree. */
  readonly paths?: readonly string[];
}

const standingTaskOf = (storage: Storage): string => standingTaskId(ownWorkspace(storage));

/** The task of this work tree that holds what happens outside turns; begun when it is not there. */
export async function standingTask(storage: Storage): Promise<Ledger> {
  const workspace = ownWorkspace(storage);
  const objective = `what happens outside turns in ${storage.layout.workTree}`;
  return openTask(storage, {
    task: standingTaskOf(storage),
    objective,
    standing: true,
    agent: PERSON,
    workspace,
  });
}

/** Reads the work tree only, so it needs no lease: it may run beside a turn. Errors: those of `takeCheckpoint`. */
export async function manualCheckpoint(
  storage: Storage,
  request: ManualCheckpoint,
): Promise<TakenCheckpoint> {
  const message = request.message ?? 'taken by hand';
  const turn = await ownTurn(storage);
  if (turn !== null) return turn.checkpoint(message, request.paths);
  const ledger = await standingTask(storage);
  return takeCheckpoint(storage, ledger, {
    message,
    reason: 'manual',
    turn: null,
    by: { agent: PERSON, workspace: ownWorkspace(storage) },
    ...(request.paths === undefined ? {} : { paths: presentPaths(storage, request.paths) }),
  });
}

/** Errors: 'lease-held', 'lease-unproven', 'recovery-needed', those of `restore`. */
export async function manualRestore(
  storage: Storage,
  request: RestoreRequest & { dryRun?: boolean },
): Promise<Restored> {
  if (request.dryRun === true) return previewRestore(storage, request);
  const turn = await ownTurn(storage);
  if (turn !== null) return turn.restore(request);
  await checkPaths(storage, request);
  // Named, so that a restore that is killed is found from the lease record alone.
  const what = { objective: `restore ${request.checkpoint.slice(0, 12)}`, task: standingTaskOf(storage) };
  return underOperation(storage, what, async (held) => {
    const ledger = await standingTask(storage);
    const workspace = ownWorkspace(storage);
    return restore({ storage, ledger, held, agent: PERSON, workspace, turn: null }, request);
  });
}

/**
 * Runs `body` under an operation lease: no turn starts meanwhile, and it is refused under another's. It ends with its
 * process, or, where `holderProcess` is another one, with that one and all that carries `marker`. Errors: 'lease-held', 'lease-unproven', 'recovery-needed', what `body` throws.
 */
export async function underOperation<T>(
  storage: Storage,
  what: Pick<LeaseRequest, 'objective' | 'task'> &
    Partial<Pick<LeaseRequest, 'holderProcess' | 'keeper' | 'marker'>>,
  body: (held: Held) => Promise<T>,
): Promise<T> {
  const held = await witnessing(storage, () =>
    acquire(storage, { kind: 'operation', turn: null, turnKey: null, agent: PERSON, ...what }),
  );
  try {
    const done = await body(held);
    await held.release();
    return done;
  } catch (error) {
    await held.letGo();
    throw error;
  }
}

export interface ManualGit {
  /** One line for people. */
  readonly what: string;
  readonly process: ProcessRecord;
}

/** Records a git command that a person ran: in the task of the turn that it went beside, else in the standing task. */
export async function recordManualGit(
  storage: Storage,
  { what, process }: ManualGit,
  beside: { readonly task: string; readonly turn: string } | null,
): Promise<void> {
  const ledger = beside === null ? await standingTask(storage) : Ledger.open(storage, beside.task);
  const turn = beside?.turn ?? null;
  await ledger.append(
    () => [
      {
        type: 'git.observed',
        turn,
        what: cut(what, 200),
        ref: null,
        before: null,
        after: null,
        process: { ...process, command: cut(process.command, 200) },
      },
    ],
    { lease: null, agent: PERSON, workspace: ownWorkspace(storage) },
  );
}

/** The turn that this process belongs to; null when it belongs to none. */
export async function ownTurn(storage: Storage): Promise<Turn | null> {
  try {
    return await attachTurn(storage);
  } catch (error) {
    if (hasCode(error, 'no-turn')) return null;
    throw error;
  }
}
