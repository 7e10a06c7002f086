/**
 * A turn as a harness author holds it: calls, transactions, approvals, checkpoints, and its end.
 *
 * Calling sequence: `repository.startTurn` (or `repository.turn`, which replays) · any number of `invoke`,
 * `transaction`, `read`, `requestApproval`, `spawned`, `checkpoint`, `steer`, `usage` · `finish`, exactly once. Every method
 * that records verifies the lease in the same ref move; after 'lease-lost' nothing more of this turn is written.
 * Killed anywhere, `git durable recover` tells what was written, what is in doubt and what is pending.
 */
import { DurableError, hasCode } from '../errors.js';
import type { EventDraft, Image, ProcessRecord } from '../event.js';
import { presentPaths, takeCheckpoint, type TakenCheckpoint } from '../files/checkpoint.js';
import { restore, type Restored, type RestoreRequest } from '../files/restore.js';
import { shimEnvironment } from '../fence/shim.js';
import { revisionOf } from '../files/revision.js';
import { runTransaction, type Change } from '../files/transaction.js';
import { MARKER } from '../lease/processes.js';
import type { ApprovalState } from '../ledger/state.js';
import { cut } from '../ledger/subject.js';
import {
  endCall,
  finishedDraft,
  proposeCall,
  startedDraft,
  type Call,
  type CallEnd,
  type ProposedCall,
} from './call.js';
import type { TurnContext } from './context.js';
import { finishTurn, interruptTurn, type TurnEnd } from './end.js';
import { Gate, type Ask, type Asked } from './gate.js';
import { answerFromRecord, encodeResult, type Rerun } from './rerun.js';
import { bytesOf } from './touched.js';

export interface TurnOptions extends Rerun {
  /** Secret of this turn's environment marker; its processes are found by it. */
  readonly marker?: string;
  /** Index of the first call: not 0 when a process joins a turn that is under way. */
  readonly firstIndex?: number;
}

export interface OpenCall {
  readonly invocation: string;
  /** Records the end; must be called exactly once. */
  readonly end: (end: CallEnd) => Promise<void>;
}

export interface GatedCall extends Call {
  /** Wait at most this long for the answer, then give up with the request still pending. Default: 0. */
  readonly waitMs?: number;
  readonly expiresAt?: Date;
  readonly invalidOnChange?: boolean;
  /** The words of the command that the approval will start: part of what is decided, and shown. */
  readonly command?: readonly string[];
}

export type GateAnswer =
  | { readonly state: 'approved'; readonly approval: string; readonly call: OpenCall }
  | { readonly state: 'rejected'; readonly approval: string; readonly feedback: string }
  | { readonly state: 'pending' | 'expired' | 'invalidated'; readonly approval: string };

export class Turn {
  readonly #context: TurnContext;
  readonly #options: TurnOptions;
  readonly #gate: Gate;
  #next: number;
  #ended = false;

  constructor(context: TurnContext, options: TurnOptions = {}) {
    this.#context = context;
    this.#options = options;
    this.#next = options.firstIndex ?? 0;
    this.#gate = new Gate(context, () => this.#next++);
  }

  get id(): string {
    return this.#context.turn;
  }

  get task(): string {
    return this.#context.ledger.task;
  }

  /** The fencing token. */
  get epoch(): number {
    return this.#context.held.token.epoch;
  }

  /**
   * Lay this over the environment of every child process: it is how processes that outlive the turn are found, and how the
   * turn's own git passes the fence (its PATH is this process's with the shim first).
   */
  environment(): Record<string, string> {
    const { storage, held, turn } = this.#context;
    const shim = shimEnvironment(storage, held, turn);
    return this.#options.marker === undefined ? shim : { ...shim, [MARKER]: this.#options.marker };
  }

  /**
   * Runs `run` as one recorded call and returns what it returned. In a replay a call that ended returns its recorded
   * result (JSON) or throws its recorded failure, and is not run again; one in doubt goes to `onDoubt`, and without it
   * throws 'invocation-in-doubt'. Throws 'replay-diverged', 'conflict', 'lease-lost'.
   */
  async invoke<T>(call: Call, run: (call: { invocation: string }) => T | Promise<T>): Promise<T> {
    const index = this.#next++;
    const answered = await answerFromRecord(this.#context, { call, index }, this.#options);
    // What is recorded is what an earlier run of this very call returned.
    if (answered !== undefined) return answered.value as T;
    return this.#run(call, index, run);
  }

  /** The two halves of `invoke`, for a caller whose effect happens elsewhere (a hook, a child process). */
  async begin(call: Call): Promise<OpenCall> {
    const proposed = await proposeCall(this.#context, call, { index: this.#next++ });
    await this.#context.append(() => [
      proposed.draft,
      startedDraft(this.#context, proposed.invocation, null),
    ]);
    return this.#opened(proposed);
  }

  /** Records a call that the harness refused, with the reason its model was given. */
  async deny(call: Call, reason: string): Promise<void> {
    const proposed = await proposeCall(
      this.#context,
      { ...call, mutates: false, paths: [] },
      { index: this.#next++ },
    );
    const end = {
      state: 'denied',
      summary: reason,
      result: Buffer.from(reason, 'utf8'),
      durationMs: null,
      checkpoint: null,
    } as const;
    const finished = await finishedDraft(this.#context, proposed.invocation, end);
    await this.#context.append(() => [proposed.draft, finished]);
  }

  /**
   * Asks for approval of exactly this call and, when it is given within `waitMs`, opens the call in the same ref move that
   * consumes the answer. An answer given earlier for the same tool, arguments, folder and task is used first.
   */
  async gate(call: GatedCall): Promise<GateAnswer> {
    const asked = await this.#gate.ask(call);
    const standing = await this.#gate.answer(asked, call.waitMs ?? 0);
    if (standing.kind === 'approved') {
      const proposed = await this.#gate.consume(call, standing.approval);
      return { state: 'approved', approval: standing.approval.id, call: this.#opened(proposed) };
    }
    if (standing.kind === 'rejected') {
      return {
        state: 'rejected',
        approval: standing.approval.id,
        feedback: await this.#gate.giveBack(call, standing.approval),
      };
    }
    return { state: await this.#openState(asked.approval), approval: asked.approval };
  }

  /** Opens a request (or takes up the one that is open for the same action); the answer stays unconsumed. */
  async requestApproval(call: Ask): Promise<Asked> {
    return this.#gate.ask(call);
  }

  /** The answer to a request, unconsumed, waiting at most `waitMs` for it. */
  async awaitAnswer(
    asked: Asked,
    waitMs: number,
  ): Promise<{ state: ApprovalState['state']; feedback: string }> {
    const standing = await this.#gate.answer(asked, waitMs);
    const approval = (await this.#context.ledger.state()).approvals.get(asked.approval);
    const state = standing.kind === 'none' ? (approval?.state ?? 'invalidated') : standing.kind;
    return { state, feedback: approval === undefined ? '' : await this.#gate.feedback(approval) };
  }

  /** Several files as one change that recovery can take back or complete. */
  async transaction(
    changes: readonly Change[],
    options: { invocation?: string } = {},
  ): Promise<{ transaction: string }> {
    const { transaction } = await runTransaction(this.#context, changes, options);
    return { transaction };
  }

  /** A file and the revision to give as precondition when it is written later. Null where no file is. */
  read(path: string): { bytes: Buffer; revision: Image } | null {
    const content = bytesOf(this.#context.storage, path);
    if (content === null) return null;
    return {
      bytes: content.bytes,
      revision: { oid: this.#context.storage.objects.hash('blob', content.bytes), mode: content.mode },
    };
  }

  /** What a path holds now, without its bytes. */
  revision(path: string): Image {
    return revisionOf(this.#context.storage, path);
  }

  /** Records a process this turn started: call it before the process may write (hold it at a gate until then). */
  async spawned(
    process: ProcessRecord,
    options: { invocation?: string; background?: boolean } = {},
  ): Promise<void> {
    await this.#context.append(() => [
      {
        type: 'process.started',
        turn: this.id,
        process,
        invocation: options.invocation ?? null,
        background: options.background ?? false,
      },
    ]);
  }

  async checkpoint(message: string, paths?: readonly string[]): Promise<TakenCheckpoint> {
    return takeCheckpoint(this.#context.storage, this.#context.ledger, {
      message,
      reason: 'manual',
      turn: this.id,
      by: { agent: this.#context.agent, workspace: this.#context.workspace },
      ...(paths === undefined ? {} : { paths: presentPaths(this.#context.storage, paths) }),
    });
  }

  /** Puts files back as a checkpoint has them; recorded, and undone by restoring the checkpoint it returns. */
  async restore(request: RestoreRequest): Promise<Restored> {
    return restore(this.#context, request);
  }

  /** Text typed by a person while the turn runs. */
  async steer(text: string, key?: string): Promise<void> {
    const [content] = await this.#context.ledger.contents.keep([Buffer.from(text, 'utf8')]);
    await this.#context.append(() => [
      {
        type: 'steering.received',
        turn: this.id,
        key: key ?? null,
        text: cut(text, 2000),
        content: content ?? null,
      },
    ]);
  }

  async usage(
    usage: Omit<Extract<EventDraft, { type: 'usage.recorded' }>, 'type' | 'turn' | 'key' | 'agent'>,
    key?: string,
  ): Promise<void> {
    await this.#context.append(() => [{ type: 'usage.recorded', turn: this.id, key: key ?? null, ...usage }]);
  }

  /** Throws 'lease-lost' when this turn may no longer write. */
  async assertHeld(): Promise<void> {
    await this.#context.held.assert();
  }

  /** Ends the turn: what it left is snapshotted, the end recorded, the lease given back. Processes still alive are named, not ended. */
  async finish(end: TurnEnd): Promise<void> {
    this.#end();
    await finishTurn(this.#context, end);
  }

  /** Leaves the turn interrupted, for a later run to go on with: the lease is given back, nothing else is closed. */
  async interrupt(reason: string): Promise<void> {
    this.#end();
    await interruptTurn(this.#context, reason);
  }

  #end(): void {
    if (this.#ended) throw new DurableError('turn-closed', { turn: this.id, state: 'ended' });
    this.#ended = true;
  }

  async #run<T>(
    call: Call,
    index: number,
    run: (call: { invocation: string }) => T | Promise<T>,
  ): Promise<T> {
    const proposed = await proposeCall(this.#context, call, { index });
    await this.#context.append(() => [
      proposed.draft,
      startedDraft(this.#context, proposed.invocation, null),
    ]);
    const open = this.#opened(proposed);
    try {
      const value = await run({ invocation: proposed.invocation });
      await open.end({ state: 'finished', result: encodeResult(value) });
      return value;
    } catch (error) {
      if (hasCode(error, 'lease-lost') || hasCode(error, 'stage-revoked')) throw error;
      const message = error instanceof Error ? error.message : String(error);
      await open.end({ state: 'failed', summary: message, result: Buffer.from(message, 'utf8') });
      throw error;
    }
  }

  #opened(proposed: ProposedCall): OpenCall {
    const { host } = this.#context.storage;
    const began = host.monotonicMs();
    return {
      invocation: proposed.invocation,
      end: async (end) => {
        await endCall(this.#context, proposed, {
          ...end,
          durationMs: Math.round(host.monotonicMs() - began),
        });
      },
    };
  }

  async #openState(approval: string): Promise<'pending' | 'expired' | 'invalidated'> {
    const state = (await this.#context.ledger.state()).approvals.get(approval)?.state;
    return state === 'expired' || state === 'invalidated' ? state : 'pending';
  }
}
