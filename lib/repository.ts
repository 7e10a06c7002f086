/**
 * The library's front door and composition root: one object for one work tree.
 *
 *     const repository = await openRepository('.');
 *     const turn = await repository.startTurn({ objective: 'rename a symbol', agent: 'my-harness' });
 *     await turn.invoke({ tool: 'edit', args, paths: [{ path, expected }] }, () => edit(path));
 *     await turn.finish({ outcome: 'completed', summary: 'done' });
 *     await repository.close();
 *
 * Guarantees: what a resolved promise acknowledged is on disk (with durable.fsync, the default, flushed); the user's
 * index, branches, HEAD and stash are never touched but by a restore that was asked for; reading methods write nothing.
 */
import { DurableError, hasCode, messageOf } from './errors.js';
import type { Recorded } from './event.js';
import {
  listApprovals,
  resolveApproval,
  type ListedApproval,
  type Resolution,
} from './decisions/approval.js';
import { check, type Check, type CheckRequest } from './decisions/check.js';
import {
  conversation,
  lastTask,
  rewind,
  type Conversation,
  type RewindRequest,
  type Rewound,
} from './decisions/rewind.js';
import {
  compareConflict,
  listConflicts,
  type Comparison,
  type ListedConflict,
} from './decisions/conflict.js';
import type { TakenCheckpoint } from './files/checkpoint.js';
import { resolveCheckpoint } from './files/checkpoint-read.js';
import { compareCheckpoints, type Compared, type Difference } from './files/diff.js';
import type { Restored, RestoreRequest } from './files/restore.js';
import { systemHost, type Host } from './host.js';
import { openStorage, type Storage } from './git/storage.js';
import { workspaceId } from './lease/workspace.js';
import { Ledger, listTasks } from './ledger/ledger.js';
import type { TaskState } from './ledger/state.js';
import type { Verification } from './ledger/verify.js';
import { findOrphans, type FoundOrphans } from './orphans/find.js';
import { stopOrphans, type StoppedOrphans } from './orphans/stop.js';
import type { RecoverReport, RepairAction, RepairResult } from './recovery/document.js';
import { repair } from './recovery/repair.js';
import { recoveryReport, turnsAround, type ReportOptions, type TurnsAround } from './recovery/report.js';
import { readStatus, type Status } from './status.js';
import { attachTurn } from './turn/attach.js';
import { manualCheckpoint, manualRestore, type ManualCheckpoint } from './turn/operation.js';
import { resolveConflict, type ConflictAnswer, type ResolvedConflict } from './turn/resolve.js';
import { resumeTurn } from './turn/resume.js';
import { startTurn, type StartTurn } from './turn/start.js';
import type { Turn, TurnOptions } from './turn/turn.js';

export interface RunTurn extends StartTurn {
  /** Required: it is how a second run finds the first one. */
  readonly key: string;
  readonly onDoubt?: TurnOptions['onDoubt'];
}

/**
 * Opens the work tree that `dir` is in: main or linked, a submodule, with or without a commit.
 * Errors: 'not-a-repository', 'bare-repository', 'unsafe-directory', 'git-missing', 'git-too-old', 'reftable-unsupported'.
 */
export async function openRepository(dir: string, host: Host = systemHost()): Promise<Repository> {
  return new Repository(await openStorage(dir, host));
}

export class Repository {
  /** For programs that need the parts: refs, objects, layout. */
  readonly storage: Storage;

  constructor(storage: Storage) {
    this.storage = storage;
  }

  /**
   * Starts a turn: takes the lease of this work tree, snapshots and grounds it, and records the start.
   * Errors: 'turn-claimed' (the same key was started; names the winner), 'lease-held', 'lease-unproven',
   * 'recovery-needed' (an interrupted turn comes first).
   */
  async startTurn(options: StartTurn): Promise<Turn> {
    return startTurn(this.storage, options);
  }

  /**
   * Runs `body` as a turn that survives its process. Run again with the same key after a crash, the turn goes on from
   * its events: calls that ended answer from the record and are not run again, one in doubt goes to `onDoubt`, the first
   * new one runs. The turn is finished when `body` returns, and stays open for another run when it throws 'invocation-in-doubt' or 'replay-diverged'.
   * Errors: those of `startTurn`, but 'recovery-needed' for this very turn is what it handles.
   */
  async turn<T>(options: RunTurn, body: (turn: Turn) => Promise<T>): Promise<T> {
    const turn = await this.#startOrResume(options);
    try {
      const value = await body(turn);
      await turn.finish({ outcome: 'completed' });
      return value;
    } catch (error) {
      if (hasCode(error, 'invocation-in-doubt') || hasCode(error, 'replay-diverged'))
        await turn.interrupt(error.message);
      else if (!hasCode(error, 'lease-lost') && !hasCode(error, 'stage-revoked'))
        await endFailed(turn, messageOf(error));
      throw error;
    }
  }

  /** The open turn that this process belongs to, by its environment or its ancestors. Errors: 'no-turn', 'lease-lost'. */
  async attachTurn(): Promise<Turn> {
    return attachTurn(this.storage);
  }

  async status(): Promise<Status> {
    return readStatus(this.storage);
  }

  /** Whether a turn of this work tree has no end yet, and how many turns and restores were interrupted in other ones. */
  async turnsAround(): Promise<TurnsAround> {
    return turnsAround(this.storage);
  }

  /** What was interrupted in this work tree; with `all`, in every one; with `containers`, those left running too. Reads only. */
  async recoveryReport(options: ReportOptions = {}): Promise<RecoverReport> {
    return recoveryReport(this.storage, options);
  }

  /** Repairs an interrupted turn; undone by restoring the checkpoint it returns. */
  async recover(options: { action: RepairAction; turn?: string; takeOver?: boolean }): Promise<RepairResult> {
    return repair(this.storage, options);
  }

  /** Processes, and with `containers` what docker and podman run, that a dead or a finished turn of this work tree left. Reads only. */
  async orphans(options: { readonly containers: boolean } = { containers: true }): Promise<FoundOrphans> {
    return findOrphans(this.storage, options);
  }

  /** Ends them, TERM then KILL, and records each. Never the caller, what it runs in, or what a live turn runs. Errors: those of an append. */
  async stopOrphans(agent = 'person'): Promise<StoppedOrphans> {
    return stopOrphans(this.storage, agent);
  }

  /** A snapshot of the work tree, byte for byte. */
  async checkpoint(request: ManualCheckpoint = {}): Promise<TakenCheckpoint> {
    return manualCheckpoint(this.storage, request);
  }

  /**
   * Puts the work tree, or some paths of it, back as a checkpoint has them (its id, or a prefix). Recorded, and undone by
   * restoring the checkpoint it returns. What no checkpoint holds is never deleted; the user's index is not touched.
   * Errors: 'lease-held' under another's turn, 'recovery-needed', 'not-found', 'ambiguous', 'path-outside', 'conflict'.
   */
  async restore(request: RestoreRequest & { dryRun?: boolean }): Promise<Restored> {
    const checkpoint = await resolveCheckpoint(this.storage, request.checkpoint);
    return manualRestore(this.storage, { ...request, checkpoint });
  }

  /** What differs between two checkpoints, or between one and the work tree as it is now: of what both looked into (`compare`). */
  async diff(from: string, to?: string): Promise<Difference[]> {
    return (await this.compare(from, to)).differences;
  }

  /** The same, with what either of the two left out: nobody knows whether that differs. Errors: 'not-found', 'ambiguous'. */
  async compare(from: string, to?: string): Promise<Compared> {
    const before = await resolveCheckpoint(this.storage, from);
    return compareCheckpoints(
      this.storage,
      before,
      to === undefined ? 'worktree' : await resolveCheckpoint(this.storage, to),
    );
  }

  /** Every request, oldest first. */
  async approvals(): Promise<ListedApproval[]> {
    return listApprovals(this.storage);
  }

  /** Answers a pending request by its id or a prefix of it. Errors: 'approval-settled' (who and when), 'not-found', 'ambiguous'. */
  async resolveApproval(id: string, resolution: Resolution): Promise<Recorded<'approval.resolved'>> {
    return resolveApproval(this.storage, id, resolution);
  }

  /** External changes that met a write, oldest first. */
  async conflicts(): Promise<ListedConflict[]> {
    return listConflicts(this.storage);
  }

  /** Base, theirs, mine and what is there now, with the diffs from base. Reads only. Errors: 'not-found', 'ambiguous'. */
  async compareConflict(id: string): Promise<Comparison> {
    return compareConflict(this.storage, id, workspaceId(this.storage, { create: false }));
  }

  /** Decides a conflict (in a turn of this process: `turn.resolveConflict`). Errors: see lib/turn/resolve.ts. */
  async resolveConflict(id: string, answer: ConflictAnswer): Promise<ResolvedConflict> {
    return resolveConflict(this.storage, id, answer);
  }

  /**
   * Takes a conversation back to an earlier event, or to before a turn; files stay. Undone by rewinding to the `undo` it returns.
   * Errors: 'not-found', 'ambiguous', 'usage'.
   */
  async rewind(request: RewindRequest): Promise<Rewound> {
    return rewind(this.storage, request);
  }

  /** What a resumed agent should believe: turns, calls and what was typed, those that were rewound marked. Default: the last task. */
  async conversation(task?: string): Promise<Conversation> {
    return conversation(this.storage, task ?? (await lastTask(this.storage)));
  }

  /**
   * Holds what a turn says of itself at its end (its claim, or its final text) against its baseline and its events. Default: the
   * newest finished turn of this work tree. Reads only, but with `note`. Errors: 'not-found', 'ambiguous'.
   */
  async check(request: CheckRequest = {}): Promise<Check> {
    return check(this.storage, request);
  }

  tasks(): string[] {
    return listTasks(this.storage);
  }

  /**
   * The events of a task as a stream, oldest first, or newest first with `backwards`. Errors, at the event they concern:
   * 'not-found', 'ledger-damaged', 'version-unsupported'.
   */
  events(task: string, options: { readonly backwards?: boolean } = {}): AsyncIterable<Recorded> {
    const ledger = this.#ledger(task);
    return options.backwards === true ? ledger.backwards() : ledger.forwards();
  }

  /** What is true of a task now: the fold of its events since its newest turn began. Errors: as `events`. */
  async state(task: string): Promise<TaskState> {
    return this.#ledger(task).state();
  }

  async verify(task: string): Promise<Verification> {
    return this.#ledger(task).verify();
  }

  async close(): Promise<void> {
    await this.storage.close();
  }

  async #startOrResume(options: RunTurn): Promise<Turn> {
    const more = {
      rerunnable: true,
      ...(options.onDoubt === undefined ? {} : { onDoubt: options.onDoubt }),
    };
    try {
      return await startTurn(this.storage, options, more);
    } catch (error) {
      if (!hasCode(error, 'recovery-needed')) throw error;
      return resumeTurn(this.storage, { options, interrupted: error.fields }, more);
    }
  }

  #ledger(task: string): Ledger {
    if (!listTasks(this.storage).includes(task))
      throw new DurableError('not-found', { what: 'task', id: task });
    return Ledger.open(this.storage, task);
  }
}

/** What went wrong first is what the caller has to see, so that a turn that cannot be ended either is left to recovery. */
async function endFailed(turn: Turn, summary: string): Promise<void> {
  try {
    await turn.finish({ outcome: 'failed', summary });
  } catch {
    await turn.interrupt(summary).catch(() => undefined);
  }
}
