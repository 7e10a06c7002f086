/**
 * Starting a turn, idempotently (PROTOCOL.md 9).
 *
 * Order: key looked up in the ledger · lease acquired by compare-and-swap · keeper started · what earlier turns left running
 * reconciled · work tree snapshotted and grounded · `lease.acquired` and `turn.started` in one append that looks the key up again. Of any number of runtimes
 * that start the same key exactly one gets a turn; the others get 'turn-claimed' with the winner's identity. Interrupted
 * work is never passed over: 'recovery-needed' names it. A start that fails gives its lease back.
 */
import { createHash } from 'node:crypto';
import { noteBefore } from '../decisions/note.js';
import { DurableError, hasCode } from '../errors.js';
import type { Recorded } from '../event.js';
import { takeCheckpoint } from '../files/checkpoint.js';
import { lowerFence, raiseFence, type FencedTurn } from '../fence/index-lock.js';
import { armHooks } from '../fence/hooks.js';
import { beginObserving } from '../fence/observer.js';
import { fillOwnGit } from '../fence/own-git.js';
import { showState } from '../fence/state.js';
import { freshId } from '../host.js';
import type { Storage } from '../git/storage.js';
import { acquire } from '../lease/acquire.js';
import type { Held } from '../lease/hold.js';
import { LEASE_PREFIX, leaseOf, readLease, seenLease, type LeaseRecord } from '../lease/record.js';
import { recordBehind, summaryOf } from '../lease/refusal.js';
import { ownWorkspace, type LeaseRequest } from '../lease/take.js';
import { copiedFrom } from '../lease/workspace.js';
import type { TaskState, TurnState } from '../ledger/state.js';
import { Ledger, listTasks, openTask } from '../ledger/ledger.js';
import { starterOf } from '../ledger/starter.js';
import { cut } from '../ledger/subject.js';
import { reconcileLeft } from '../orphans/reconcile.js';
import { findTurns, isInterrupted, refuseNewer } from '../recovery/interrupted.js';
import { witnessing } from '../recovery/scene.js';
import { acquiredDraft } from './lease-events.js';
import { turnContext, type TurnContext } from './context.js';
import { turnEnvironment } from './environment.js';
import { takeBaseline, takeInstructions } from './grounding.js';
import { freshMarker } from './marker.js';
import { Turn, type TurnOptions } from './turn.js';

export interface StartTurn {
  readonly objective: string;
  /** Idempotency key: the same key in the same task is the same turn. Default: a fresh one. */
  readonly key?: string;
  /** A task id, or 'new'. Default: the session's own, else the one that belongs to the key, else a new one. */
  readonly task?: string;
  /** Name of the agent. Default 'library'. */
  readonly agent?: string;
  /** The agent's own session id. */
  readonly session?: string;
  /** A background process that renews the lease and notices this process's death. Default true. */
  readonly keeper?: boolean;
  /** The keeper ends the turn as abandoned when nothing was recorded for `durable.idle` and no call is under way. Default false. */
  readonly endsIdle?: boolean;
  /** The process whose death ends the turn. Default: this one. */
  readonly holder?: { readonly pid: number; readonly start: string };
  /**
   * How the git that the turn's processes run comes to the shim that passes the fence: by what `Turn.environment` gives the
   * children of whoever starts the turn (the default), by the file that the holder's shells read (lib/fence/own-git.ts), or not
   * at all; then the turn is fenced by hooks only.
   */
  readonly ownGit?: 'environment' | 'file' | 'none';
}

export async function startTurn(
  storage: Storage,
  options: StartTurn,
  turnOptions: TurnOptions = {},
): Promise<Turn> {
  return witnessing(storage, () => start(storage, options, turnOptions));
}

async function start(storage: Storage, options: StartTurn, turnOptions: TurnOptions): Promise<Turn> {
  const workspace = ownWorkspace(storage);
  const key = options.key ?? freshId(storage.host);
  const task = await chooseTask(storage, options, workspace);
  await refuseClaimed(storage, task, key);
  await refuseOlder(storage, workspace);
  await noteBefore(storage, workspace);
  const marker = turnOptions.marker ?? freshMarker(storage, workspace);
  const turn = freshId(storage.host);
  const held = await fencedAcquire(storage, options, { key, task, turn, marker });
  try {
    const { holder = storage.identity.self(), endsIdle = false, ownGit } = options;
    showState(storage, held.record, { marker, hasShim: ownGit !== 'none' });
    if (ownGit === 'file')
      fillOwnGit(storage, holder, { turn, variables: turnEnvironment(storage, held, { turn, marker }) });
    await armHooks(storage);
    beginObserving(storage, { turn, stageDir: held.stageDir });
    if (options.keeper !== false) await held.startKeeper(holder, { endsIdle });
    const ledger = await openTask(storage, {
      task,
      objective: options.objective,
      agent: agentName(options),
      workspace,
    });
    const context = turnContext({ storage, ledger, held, agent: agentName(options), workspace, turn });
    await reconcileLeft(storage, held, { agent: context.agent, workspace });
    await recordStart(context, options, key);
    return new Turn(context, { ...turnOptions, marker });
  } catch (error) {
    await held.letGo();
    lowerFence(storage, turn);
    throw error;
  }
}

/**
 * A work tree whose lease nobody has had yet, though the ledger has an interrupted turn of it: it was initialised again, copied, or
 * its lease's ref was deleted. What a lease would refuse is refused all the same.
 */
async function refuseOlder(storage: Storage, workspace: string): Promise<void> {
  if ((await readLease(storage, leaseOf(workspace))) !== null && copiedFrom(storage).length === 0) return;
  const { open, newer } = await findTurns(storage, false);
  const older = open.find(isInterrupted);
  if (older === undefined) {
    refuseNewer(newer, await namedElsewhere(storage, leaseOf(workspace)));
    return;
  }
  const { task, objective } = older.turn.started.event;
  throw new DurableError('recovery-needed', { task, turn: older.turn.id, objective });
}

/** Whether another work tree's lease names a task: then it is that one's, whatever program wrote its ledger. */
async function namedElsewhere(storage: Storage, own: string): Promise<(task: string) => boolean> {
  const tasks = new Set<string>();
  for (const ref of storage.refs.names(LEASE_PREFIX)) {
    const record = (await seenLease(storage, ref.slice(LEASE_PREFIX.length)))?.record;
    if (record !== undefined && record.lease !== own && record.task !== null) tasks.add(record.task);
  }
  return (task) => tasks.has(task);
}

/** The fence stands before the lease is claimed, so that no git of a person's slips between the two. */
async function fencedAcquire(storage: Storage, options: StartTurn, wanted: Wanted): Promise<Held> {
  try {
    await raiseFence(storage, fencedTurn(storage, options, wanted));
    return await acquire(storage, leaseRequest(options, wanted));
  } catch (error) {
    lowerFence(storage, wanted.turn);
    if (!hasCode(error, 'lease-held')) throw error;
    const record = recordBehind(error);
    if (record !== null) refuseSameKey(storage, record, wanted);
    await refuseClaimed(storage, wanted.task, wanted.key);
    throw error;
  }
}

export function fencedTurn(
  storage: Storage,
  options: StartTurn,
  { task, turn }: Pick<Wanted, 'task' | 'turn'>,
): FencedTurn {
  return {
    turn,
    task,
    agent: agentName(options),
    objective: cut(options.objective, 200),
    holder: options.holder ?? storage.identity.self(),
    hasShim: options.ownGit !== 'none',
  };
}

/** The turn that was started with this key, if there is one. */
export async function findTurnByKey(
  ledger: Ledger,
  key: string,
): Promise<Recorded<'turn.started'> | undefined> {
  for await (const started of ledger.turnStarts()) if (started.event.key === key) return started;
  return undefined;
}

async function chooseTask(storage: Storage, options: StartTurn, workspace: string): Promise<string> {
  if (options.task !== undefined && options.task !== 'new') return options.task;
  if (options.task === undefined && options.session !== undefined) {
    const last = await readLease(storage, leaseOf(workspace));
    if (last?.record.task != null && last.record.sessions.includes(options.session)) return last.record.task;
  }
  // Two runtimes with the same key and no task must meet in one ledger.
  if (options.key !== undefined && options.task === undefined)
    return `k${createHash('sha256').update(options.key).digest('hex').slice(0, 25)}`;
  return freshId(storage.host);
}

interface Wanted {
  readonly key: string;
  readonly task: string;
  readonly turn: string;
  readonly marker: string;
}

export function leaseRequest(options: StartTurn, wanted: Wanted): LeaseRequest {
  return {
    kind: 'turn',
    task: wanted.task,
    turn: wanted.turn,
    turnKey: wanted.key,
    objective: cut(options.objective, 2000),
    agent: agentName(options),
    sessions: options.session === undefined ? [] : [options.session],
    marker: wanted.marker,
    ...(options.holder === undefined ? {} : { holderProcess: options.holder }),
  };
}

function refuseSameKey(storage: Storage, record: LeaseRecord, wanted: Wanted): void {
  if (record.turnKey !== wanted.key || record.task !== wanted.task || record.turn === null) return;
  const holder = summaryOf(storage, record);
  throw new DurableError('turn-claimed', {
    key: wanted.key,
    task: wanted.task,
    turn: record.turn,
    holder,
    state: 'open',
  });
}

async function refuseClaimed(storage: Storage, task: string, key: string): Promise<void> {
  if (!listTasks(storage).includes(task)) return;
  const ledger = Ledger.open(storage, task);
  const state = await ledger.state();
  await refuseInTask(storage, { ledger, state, key });
}

/** Throws when the key is taken, or when the task has an open turn (at most one mutating turn a task). */
async function refuseInTask(
  storage: Storage,
  at: { ledger: Ledger; state: TaskState; key: string },
): Promise<void> {
  const { ledger, state, key } = at;
  const open = state.turn;
  if (open !== null && (open.state === 'open' || open.state === 'interrupted'))
    refuseOpen(storage, open, key);
  const claimed = await findTurnByKey(ledger, key);
  if (claimed !== undefined)
    throw claimedBy(
      storage.host.now().getTime(),
      claimed,
      claimed.event.turn === open?.id ? open.state : 'finished',
    );
}

function refuseOpen(storage: Storage, open: TurnState, key: string): never {
  const { event } = open.started;
  const dead = storage.identity.judge(event.holder).verdict === 'dead';
  if (open.state === 'interrupted' || dead) {
    throw new DurableError('recovery-needed', {
      task: event.task,
      turn: open.id,
      objective: event.objective,
    });
  }
  throw claimedBy(storage.host.now().getTime(), open.started, 'open', key);
}

function claimedBy(
  now: number,
  started: Recorded<'turn.started'>,
  state: string,
  key = started.event.key ?? '',
): DurableError {
  const { event } = started;
  const turn = event.turn ?? '';
  const holder = starterOf(event, now);
  return new DurableError('turn-claimed', { key, task: event.task, turn, holder, state });
}

async function recordStart(context: TurnContext, options: StartTurn, key: string): Promise<void> {
  const { storage, ledger, held, turn } = context;
  const taken = await takeCheckpoint(storage, ledger, {
    message: 'start of the turn',
    reason: 'turn-start',
    turn: null,
    by: { agent: context.agent, workspace: context.workspace },
  });
  const [baseline, instructions] = await Promise.all([
    takeBaseline(storage, ledger.contents),
    takeInstructions(storage),
  ]);
  const { holder } = held.record;
  await ledger.append(
    async (state) => {
      await refuseInTask(storage, { ledger, state, key });
      return [
        acquiredDraft(held),
        {
          type: 'turn.started',
          turn,
          key,
          objective: cut(options.objective, 2000),
          holder,
          session: options.session ?? null,
          baseline,
          instructions,
          checkpoint: taken.checkpoint,
          readOnly: false,
        },
      ];
    },
    { lease: held.token, agent: context.agent, workspace: context.workspace },
  );
}

function agentName(options: StartTurn): string {
  return options.agent ?? 'library';
}
