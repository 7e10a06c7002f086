/**
 * A turn as a harness author holds it: calls, transactions, approvals, checkpoints, and its end.
 *
 * Calling sequence: `repository.startTurn` (or `repository.turn`, which replays) · any number of `invoke`,
 * `transaction`, `read`, `requestApproval`, `spawned`, `checkpoint`, `steer`, `usage` · `finish`, exactly once. Every method
 * that records verifies the lease in the same ref move; after 'lease-lost' nothing more of this turn is written.
 * Killed anywhere, `git durable recover` tells what was written, what is in doubt and what is pending.
 */
import { encodeClaim } from '../decisions/claim-shape.js';
import { exactBytes } from '../decisions/fingerprint.js';
import { DurableError, hasCode } from '../errors.js';
import type { Image, ProcessRecord } from '../event.js';
import { presentPaths, takeCheckpoint, type TakenCheckpoint } from '../files/checkpoint.js';
import { restore, type Restored, type RestoreRequest } from '../files/restore.js';
import { fileOnly, look, revisionOf } from '../files/revision.js';
import { runTransaction, type Change } from '../files/transaction.js';
import { filePath, refuseDetour } from '../git/tree-path.js';
import type { ApprovalState } from '../ledger/state.js';
import { cut } from '../ledger/subject.js';
import {
  endCall,
  deniedDraft,
  endReported,
  proposeCall,
  proposing,
  startedDraft,
  type Call,
  type CallEnd,
  type ProposedCall,
} from './call.js';
import type { TurnContext } from './context.js';
import { refuseUsage, SAID_AGAIN, USED, type Used } from './used.js';
import { turnEnvironment } from './environment.js';
import { finishTurn, interruptTurn, type TurnEnd } from './end.js';
import { Gate, type Ask, type Asked } from './gate.js';
import {
  answered,
  gatedAgain,
  namesOf,
  type GateAnswer,
  type GatedCall,
  type OpenCall,
} from './open-call.js';
import { refuseMalformed } from '../files/change-shape.js';
import { refuseUnknownCall } from './call-shape.js';
import { encodeFailure, encodeResult, resultOf } from './result.js';
import { again, askWhenHalf, complete, Steps, type Settling, type StepOptions } from './steps.js';
import { resolveInTurn, type ConflictAnswer, type ResolvedConflict } from './resolve.js';
import { withRevisions } from './reads.js';

export interface TurnOptions extends StepOptions {
  /** Secret of this turn's environment marker; its processes are found by it. */
  readonly marker?: string;
}

export class Turn {
  readonly #context: TurnContext;
  readonly #options: TurnOptions;
  readonly #gate: Gate;
  readonly #steps: Steps;
  #said: Pick<TurnEnd, 'result' | 'claim'> = {};
  #ended = false;

  constructor(context: TurnContext, options: TurnOptions = {}) {
    this.#context = context;
    this.#options = options;
    this.#steps = new Steps(context, options);
    this.#gate = new Gate(context);
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

  /** Processes of earlier turns of this work tree that this turn's start found running: they may write beside it. */
  get leftRunning(): readonly ProcessRecord[] {
    return this.#context.held.record.left.flatMap(({ processes }) => processes);
  }

  /**
   * Lay this over the environment of every child process: it is how processes that outlive the turn are found, and how the
   * turn's own git passes the fence (its PATH is this process's with the shim first).
   */
  environment(): Record<string, string> {
    const { storage, held, turn } = this.#context;
    return turnEnvironment(storage, held, { turn, marker: this.#options.marker });
  }

  /**
   * Runs `run` as one recorded call and returns what it returned. In a replay a call that ended returns its recorded
   * result (JSON) or throws its recorded failure, and is not run again; one in doubt goes to `onDoubt`, and without it
   * throws 'invocation-in-doubt'. Throws 'replay-diverged', 'conflict', 'lease-lost'.
   */
  async invoke<T>(call: Call, run: (call: { invocation: string }) => T | Promise<T>): Promise<T> {
    return this.#call({ call, index: this.#steps.take('invoke') }, run);
  }

  /**
   * The two halves of `invoke`, for a caller whose effect happens elsewhere (a hook, a child process). In a replay look at
   * `recorded` first. Errors as `invoke`, but a recorded failure is returned.
   */
  async begin(call: Call): Promise<OpenCall> {
    const index = this.#steps.take('begin');
    const answer = await this.#steps.answer({ call, index });
    if (answer !== undefined) return answered(answer);
    return this.#opened(await this.#started(call, index));
  }

  /**
   * Ends a call that another process of this turn began, found by the host's call id; once, however often it is reported.
   * False when no such call is on record. Errors: 'lease-lost', the disk's.
   */
  async endCall(key: string, end: CallEnd & { readonly durationMs: number | null }): Promise<boolean> {
    return endReported(this.#context, key, end);
  }

  /** Records a call that the harness refused, with the reason its model was given; once, however often it is run. Errors: as `invoke`. */
  async deny(call: Call, reason: string): Promise<void> {
    exactBytes('the reason', reason);
    const index = this.#steps.take('deny');
    if ((await this.#steps.answer({ call, index })) !== undefined) return;
    const proposed = await proposeCall(this.#context, { ...call, mutates: false, paths: [] }, { index });
    const finished = await deniedDraft(this.#context, proposed.invocation, reason);
    await this.#context.append(() => [proposed.draft, finished]);
  }

  /**
   * Asks for approval of exactly this call and, when it is given within `waitMs`, opens the call in the same ref move that
   * consumes the answer. An answer given earlier for the same tool, arguments, folder and task is used first. In a replay a
   * decision that was used is the same again; a call in doubt that is to be retried is asked for anew. 'expired' and
   * 'invalidated' are told once; asked again, it is another request.
   */
  async gate(call: GatedCall): Promise<GateAnswer> {
    const index = this.#steps.take('gate');
    const answer = await this.#steps.answer({ call, index });
    if (answer !== undefined) return gatedAgain(answer);
    const asked = await this.#gate.ask(call, index);
    const standing = await this.#gate.answer(asked, call.waitMs ?? 0);
    if (standing.kind === 'approved') {
      const proposed = await this.#gate.consume(call, standing.approval, index);
      if (typeof proposed === 'string') return { ...asked, state: proposed };
      return { state: 'approved', approval: standing.approval.id, call: this.#opened(proposed) };
    }
    if (standing.kind === 'rejected') {
      return {
        state: 'rejected',
        approval: standing.approval.id,
        feedback: await this.#gate.giveBack(call, standing.approval, index),
      };
    }
    return { ...asked, state: await this.#gate.unanswered(asked.approval) };
  }

  /** Opens a request (or takes up the one that is open for the same action); the answer stays unconsumed. */
  async requestApproval(call: Ask): Promise<Asked> {
    return this.#gate.ask(call, this.#steps.take('requestApproval'));
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

  /**
   * Several files as one change that recovery can take back or complete. In a replay one that was committed is not done
   * again, one that was never begun or was rolled back is, and one that was killed half way is in doubt: retried, it is
   * completed from its manifest, since what the function computes now it computes from files that have changed already. Errors: 'usage' for what is no change, those of `runTransaction`, 'invocation-in-doubt', 'replay-diverged'.
   */
  async transaction(
    changes: readonly Change[],
    options: { invocation?: string } = {},
  ): Promise<{ transaction: string }> {
    refuseMalformed(changes);
    const run = async (invocation: string | undefined): Promise<{ transaction: string }> => {
      const within = invocation === undefined ? {} : { invocation };
      const { reads } = this.#context;
      const held = withRevisions(changes, reads);
      const read = { bytesOf: reads.bytesOf, ...within };
      const { transaction } = await runTransaction(this.#context, held, read);
      return { transaction };
    };
    if (options.invocation !== undefined) {
      refuseUnknownCall((await this.#context.ledger.state()).turn, options.invocation);
      return run(options.invocation);
    }
    return this.#step({ tool: 'transaction', args: namesOf(changes), settling: complete }, run);
  }

  /**
   * A file (of a link: its target) and its revision; null where no file is. A later write of this path through the turn is held
   * to that revision unless it gives another one: changed since, it is a 'conflict'. Throws 'path-refused' for a folder, and
   * for a path beyond a symbolic link ('path-outside' where that leads out of the work tree).
   */
  read(path: string): { bytes: Buffer; revision: Image } | null {
    const file = filePath(path);
    refuseDetour(this.#context.storage.layout, file);
    const { found, bytes } = look(this.#context.storage, file);
    const revision = fileOnly(file, found);
    this.#context.reads.note(file, revision, bytes);
    return bytes === null ? null : { bytes, revision };
  }

  /** What a path holds now, without its bytes; nothing is held to it. */
  revision(path: string): Image {
    return revisionOf(this.#context.storage, filePath(path));
  }

  /** Records a process this turn started: call it before the process may write (hold it at a gate until then). Errors: 'not-found' for an unknown call. */
  async spawned(
    process: ProcessRecord,
    options: { invocation?: string; background?: boolean } = {},
  ): Promise<void> {
    const { invocation = null, background = false } = options;
    await this.#context.append(({ turn }) => {
      refuseUnknownCall(turn, invocation);
      return [{ type: 'process.started', turn: this.id, process, invocation, background }];
    });
  }

  /** A snapshot of the work tree; in a replay the one that was taken then. */
  async checkpoint(message: string, paths?: readonly string[]): Promise<TakenCheckpoint> {
    const { storage, ledger, agent, workspace } = this.#context;
    const args = { message, paths: paths ?? null };
    return this.#step({ tool: 'checkpoint', args, settling: again }, () =>
      takeCheckpoint(storage, ledger, {
        message,
        reason: 'manual',
        turn: this.id,
        by: { agent, workspace },
        ...(paths === undefined ? {} : { paths: presentPaths(storage, paths) }),
      }),
    );
  }

  /**
   * Puts files back as a checkpoint has them; recorded, and undone by restoring the checkpoint it returns. In a replay one
   * that ended is not done again; one that was killed half way is in doubt. Errors: those of `restore`, 'conflict-open' for a path
   * with a conflict that nobody has settled.
   */
  async restore(request: RestoreRequest): Promise<Restored> {
    const args = { checkpoint: request.checkpoint, paths: request.paths ?? null };
    return this.#step({ tool: 'restore', args, settling: askWhenHalf }, (invocation) =>
      restore(this.#context, request, invocation),
    );
  }

  /** Decides a conflict under this turn's own lease. Errors: see lib/turn/resolve.ts. */
  async resolveConflict(id: string, answer: ConflictAnswer): Promise<ResolvedConflict> {
    const args = { id, choice: answer.choice };
    return this.#step({ tool: 'resolve', args, settling: askWhenHalf }, (invocation) =>
      resolveInTurn(this.#context, id, { ...answer, invocation }),
    );
  }

  /**
   * Text typed by a person while the turn runs. With the same key, or in a replay, it is one event.
   * Errors: 'usage' for a lone surrogate, which no bytes stand for, and for another text under the same key.
   */
  async steer(text: string, key?: string): Promise<void> {
    const [content] = await this.#context.ledger.contents.keep([exactBytes('what was typed', text)]);
    const draft = {
      type: 'steering.received',
      turn: this.id,
      key: key ?? this.#steps.key('steer'),
      text: cut(text, 2000),
      content: content ?? null,
    } as const;
    const [recorded] = await this.#context.append(() => [draft]);
    this.#steps.compare(draft, recorded, ['text', 'content']);
  }

  /**
   * What a call of this turn, or the turn, has used. With the same key, or in a replay, it is one event.
   * Errors: 'usage' for what could not be summed (negative, no number, over 2^53), and for another usage under the same key;
   * 'not-found' for a call that the turn has not made.
   */
  async usage(usage: Used, key?: string): Promise<void> {
    refuseUsage(usage);
    const draft = {
      type: 'usage.recorded',
      turn: this.id,
      key: key ?? this.#steps.key('usage'),
      ...usage,
    } as const;
    const [recorded] = await this.#context.append(({ turn }) => {
      refuseUnknownCall(turn, usage.invocation);
      return [draft];
    });
    this.#steps.compare(draft, recorded, this.#steps.rerunnable ? SAID_AGAIN : USED);
  }

  /** Throws 'lease-lost' when this turn may no longer write. */
  async assertHeld(): Promise<void> {
    await this.#context.held.assert();
  }

  /**
   * What the turn says of itself when it ends, for a caller that does not end it itself (`repository.turn`). Records nothing yet.
   * Errors: 'usage' or 'path-outside' for a claim that cannot be kept.
   */
  conclude(said: Pick<TurnEnd, 'result' | 'claim'>): void {
    if (said.claim !== undefined) encodeClaim(said.claim);
    this.#said = said;
  }

  /** Ends the turn: what it left is snapshotted, the end recorded, the lease given back. Processes still alive are named, not ended. */
  async finish(end: TurnEnd): Promise<void> {
    await this.#end(() => finishTurn(this.#context, { ...this.#said, ...end }));
  }

  /** Leaves the turn interrupted, for a later run to go on with: the lease is given back, nothing else is closed. */
  async interrupt(reason: string): Promise<void> {
    await this.#end(() => interruptTurn(this.#context, reason));
  }

  /** A turn whose end was refused is open still, and can be ended otherwise. */
  async #end(end: () => Promise<void>): Promise<void> {
    if (this.#ended) throw new DurableError('turn-closed', { turn: this.id, state: 'ended' });
    this.#ended = true;
    try {
      await end();
    } catch (error) {
      this.#ended = false;
      throw error;
    }
  }

  /** A method of this turn whose effect the ledger knows: a call of its own where the turn can be run again. */
  async #step<T>(
    step: { readonly tool: string; readonly args: unknown; readonly settling: Settling },
    run: (invocation: string | undefined) => Promise<T>,
  ): Promise<T> {
    const { outer, rerunnable } = this.#steps;
    if (outer !== undefined || !rerunnable) return run(outer);
    const call = { tool: step.tool, args: step.args, mutates: step.tool !== 'checkpoint', paths: [] };
    const at = { call, index: this.#steps.take(step.tool), settling: step.settling };
    return this.#call(at, ({ invocation }) => run(invocation));
  }

  async #call<T>(
    { call, index, settling }: { call: Call; index: number; settling?: Settling },
    run: (call: { invocation: string }) => T | Promise<T>,
  ): Promise<T> {
    const answer = await this.#steps.answer({ call, index }, settling);
    // What is recorded is what an earlier run of this very call returned.
    if (answer !== undefined) return resultOf(answer) as T;
    const { invocation, ...open } = this.#opened(await this.#started(call, index));
    try {
      const value = await this.#steps.within(invocation, () => run({ invocation }));
      await open.end({ state: 'finished', result: encodeResult(value) });
      return value;
    } catch (error) {
      if (hasCode(error, 'lease-lost') || hasCode(error, 'stage-revoked')) throw error;
      await open.end({ state: 'failed', ...encodeFailure(error) });
      throw error;
    }
  }

  async #started(call: Call, index: number): Promise<ProposedCall> {
    const { proposed, kept } = await proposing(this.#context, call, { index });
    await this.#context.append(
      ({ turn }) =>
        // Reported twice by its host, at the same time or later: the first report stands.
        call.key !== undefined && turn?.invocations.some(({ key }) => key === call.key) === true
          ? []
          : [proposed.draft, startedDraft(this.#context, proposed.invocation, null)],
      kept,
    );
    return proposed;
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
}
