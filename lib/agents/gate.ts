/**
 * The one gate that every agent's steps go through: a step becomes calls of the library, and what comes of them a reply.
 *
 *     session-start   interrupted work is recovered with 'keep' (no byte changes), and the model is told what was found
 *     prompt          a turn starts, with a keeper that watches the agent's process; held by another: the model is told by whom
 *     before-tool     intent on disk, then the tool may run; refused where a change would be unrecorded or unleased
 *     permission      the question is recorded; an answer given before it, or while it is waited for, is given back
 *     answer          that the person refused the call is recorded
 *     after-tool      the result is recorded; never refused, since the tool ran
 *     stop            what the turn has used is recorded; it is finished, and the lease given back
 *     session-end     a turn that nothing ended is abandoned, as its keeper does after `durable.idle`
 *
 * A turn belongs to the agent's session and process both: a session that is resumed after a crash has the same id and another
 * process. Subagents have both, and share the turn. An agent that a turn has started (`git durable run -- AGENT`) is a part of that turn,
 * which whoever began it ends (own-turn.ts): a prompt steers it, and a stop says what was used. Steps arrive in processes of their own, or through the turn's keeper (serve.ts), and in
 * any order of the two, so all that is known between two of them stands in the ledger and the lease, and what could not be recorded, in the
 * inbox (deliver.ts). Caveat: what an agent read before is not known here, so its writes are
 * not held to it.
 */
import { resolve } from 'node:path';
import { DurableError, hasCode, isDurableError, messageOf } from '../errors.js';
import { argsText, fingerprint } from '../decisions/fingerprint.js';
import { lapsedFor, standingFor } from '../decisions/approval.js';
import { readsOwnGit } from '../fence/own-git.js';
import type { Storage } from '../git/storage.js';
import { throughLinks } from '../git/tree-path.js';
import { leaseOf, readLease } from '../lease/record.js';
import { workspaceId } from '../lease/workspace.js';
import { Ledger } from '../ledger/ledger.js';
import type { InvocationFold } from '../ledger/state.js';
import type { RepairResult } from '../recovery/document.js';
import { repair } from '../recovery/repair.js';
import { recoveryReport } from '../recovery/report.js';
import type { Call, IntendedPath } from '../turn/call.js';
import type { TurnEnd } from '../turn/end.js';
import { allowedByHost } from '../turn/question.js';
import { startTurn } from '../turn/start.js';
import type { Turn } from '../turn/turn.js';
import { askedOf, dropAsked, keepAsked } from './asked.js';
import { deliverInbox, type Delivered } from './deliver.js';
import { knownText } from './known.js';
import { answerWithin, isBrief } from './limits.js';
import { callOf, keyOf, ownTurn, type AgentProcess, type OwnTurn } from './own-turn.js';
import { readTranscript } from './transcript.js';
import { answered, permission, rejection } from './permission.js';
import { PASS, type Reply, type Step, type StepOf } from './step.js';
import { standingApprovals } from './standing.js';
import { effectOf, insideTree } from './tools.js';

/**
 * Errors: whatever the library throws at a step after which nothing waits ('after-tool', 'stop', 'session-end'), and at the
 * others what is no reason to refuse. A refusal is a reply. `own`: the session's turn, when it was looked up a moment ago.
 */
export async function takeStep(
  storage: Storage,
  by: AgentProcess,
  step: Step,
  own?: OwnTurn,
): Promise<Reply> {
  // What this agent told before, and nobody could record, comes first.
  const { appended } = await deliverAll(storage, by.process);
  return taken(storage, by, step, appended === 0 ? own : undefined);
}

/**
 * Takes in what lies in the inbox of this work tree, whoever told it; with `of` what this process did. What cannot be taken in
 * yet stays, and holds nothing up.
 */
export async function deliverAll(storage: Storage, of?: AgentProcess['process']): Promise<Delivered> {
  try {
    return await deliverInbox(storage, taken, of);
  } catch (error) {
    if (!isDurableError(error)) throw error;
    return { appended: 0, late: [] };
  }
}

async function taken(storage: Storage, by: AgentProcess, step: Step, own?: OwnTurn): Promise<Reply> {
  const gate = new AgentGate(storage, by, own);
  switch (step.kind) {
    case 'session-start':
      return gate.sessionStart();
    case 'prompt':
      return gate.prompt(step);
    case 'before-tool':
      return gate.beforeTool(step);
    case 'permission':
      return gate.permission(step);
    case 'answer':
      return gate.answer(step);
    case 'after-tool':
      return gate.afterTool(step);
    case 'stop':
      return gate.stop(step);
    case 'session-end':
      return gate.end(step, { outcome: 'abandoned', summary: `the session ended: ${step.reason}` });
  }
}

class AgentGate {
  readonly #storage: Storage;
  readonly #by: AgentProcess;
  readonly #beganMs: number;
  /** The turn of the step's session, where whoever brought the step has just looked it up. */
  readonly #own: OwnTurn | undefined;

  constructor(storage: Storage, by: AgentProcess, own?: OwnTurn) {
    this.#storage = storage;
    this.#by = by;
    this.#own = own;
    this.#beganMs = storage.host.monotonicMs();
  }

  async sessionStart(): Promise<Reply> {
    const text = await this.#recoverKeeping();
    return text === null ? PASS : { kind: 'context', text };
  }

  async prompt(step: StepOf<'prompt'>): Promise<Reply> {
    const key = `${step.session}:${step.id ?? argsText(step.text)}`;
    const own = await ownTurn(this.#storage, this.#by, step.session);
    if (own?.isCut === false) {
      const open = (await own.context.ledger.state()).turn;
      if (open?.started.event.key === key) return PASS;
      // With a call under way a person steers the turn; with none, it ended by "No" or Esc, of which no hook tells.
      if (own.isJoined || open?.invocations.some(({ state }) => state === 'started') === true) {
        await own.turn.steer(step.text.toWellFormed(), key);
        return PASS;
      }
      await own.turn.finish({
        outcome: 'abandoned',
        summary: 'the next prompt came without an end of this one',
      });
    }
    try {
      const known = await this.#start(step.session, { key, objective: step.text });
      this.#remember(step, null);
      return known === null ? PASS : { kind: 'context', text: known };
    } catch (error) {
      if (!isDurableError(error)) throw error;
      const text = `git-durable: this turn is read-only; tools that change files will be refused. ${error.message}`;
      if (hasCode(error, 'turn-claimed')) return PASS;
      this.#remember(step, step.text);
      return { kind: 'context', text };
    }
  }

  /** Refuses only a call that may change the work tree: for reading ones a missing record is no harm. */
  async beforeTool(step: StepOf<'before-tool'>): Promise<Reply> {
    const effect = effectOf(this.#by.agent, step.tool, step.input);
    const isReading = effect === 'reads';
    try {
      const own = await this.#attached(step.session);
      if (own?.isCut === true) throw interrupted(own);
      const turn = own?.turn;
      if (isReading) {
        await turn?.begin({ ...callOf(this.#storage, step), mutates: false, paths: [] });
        return PASS;
      }
      const paths = effect === 'anything' ? null : this.#intended(step, effect);
      return await this.#open(
        turn ?? (await this.#startImplicitly(step)),
        callOf(this.#storage, step),
        paths,
      );
    } catch (error) {
      if (isReading) return PASS;
      const why = messageOf(error);
      return { kind: 'deny', reason: `git-durable refused this call, and nothing ran: ${why}` };
    }
  }

  async permission(step: StepOf<'permission'>): Promise<Reply> {
    const { agent } = this.#by;
    const { waitMs, hookLimitMs } = this.#storage.settings;
    const own = await this.#attached(step.session);
    if (own === null) return PASS;
    const leftMs =
      answerWithin(agent, step, hookLimitMs) - (this.#storage.host.monotonicMs() - this.#beganMs);
    return permission(this.#storage, own, step, { agent, waitMs: Math.min(waitMs, leftMs) });
  }

  async answer(step: StepOf<'answer'>): Promise<Reply> {
    const own = await this.#attached(step.session);
    return own === null ? PASS : answered(own, this.#by, step);
  }

  async afterTool(step: StepOf<'after-tool'>): Promise<Reply> {
    const own = await this.#attached(step.session);
    const { key } = callOf(this.#storage, step);
    const call = (await own?.context.ledger.state())?.turn?.invocations.find((one) => one.key === key);
    if (own === null || key === undefined || call === undefined) {
      // A call that only read is no loss; what wrote, wrote under a turn that is over, or without a record.
      if (effectOf(this.#by.agent, step.tool, step.input) === 'reads') return PASS;
      throw new DurableError('not-found', { what: 'call on record in an open turn', id: step.call ?? '' });
    }
    if (call.state === 'started') await allowedByHost(own.context, call, this.#by.agent);
    await own.turn.endCall(key, {
      state: step.isFailed ? 'failed' : 'finished',
      summary: step.isFailed ? step.result : '',
      result: Buffer.from(step.result, 'utf8'),
      exit: step.exit,
      durationMs: step.durationMs,
    });
    return PASS;
  }

  /** What the turn has used comes before its end; told twice, it is one event. */
  async stop(step: StepOf<'stop'>): Promise<Reply> {
    const { transcript, used } = readTranscript(this.#by.agent, step);
    const end = { outcome: step.outcome, result: step.summary };
    const own = used === null ? null : await ownTurn(this.#storage, this.#by, step.session);
    if (own !== null && used !== null) {
      const { turn, append } = own.context;
      // A turn that it is part of may have any number of prompts.
      const key = own.isJoined ? keyOf(step.session, `stop ${String(transcript?.bytes)}`) : `${turn}:stop`;
      await append(() => [{ type: 'usage.recorded', turn, key, ...used }]);
    }
    return this.end(step, transcript === null ? end : { ...end, transcript });
  }

  async end(step: Step, end: TurnEnd): Promise<Reply> {
    if (step.kind === 'session-end') this.#remember(step, null);
    const own = await ownTurn(this.#storage, this.#by, step.session);
    if (own === null) await this.#refuseLost(step);
    if (own?.isJoined === false)
      await own.turn.finish(isBrief(this.#by.agent, step) ? { ...end, checkpoint: false } : end);
    return PASS;
  }

  /** The end of a turn that somebody else has ended as interrupted. Any other end without a turn says nothing. */
  async #refuseLost({ session }: Step): Promise<void> {
    const workspace = workspaceId(this.#storage, { create: false });
    const last = workspace === null ? null : await readLease(this.#storage, leaseOf(workspace));
    if (last?.record.task == null) return;
    const { turn } = await Ledger.open(this.#storage, last.record.task).state();
    if (turn?.started.event.session !== session || turn.started.event.holder.pid !== this.#by.process.pid)
      return;
    if (turn.state === 'interrupted' || turn.state === 'recovered')
      throw new DurableError('turn-closed', { turn: turn.id, state: turn.state });
  }

  async #open(turn: Turn, call: Call, paths: readonly IntendedPath[] | null): Promise<Reply> {
    // What it names is elsewhere: no change of this work tree, and no checkpoint of it.
    const effect = paths === null ? { mutates: true } : { mutates: paths.length > 0, paths };
    const ledger = Ledger.open(this.#storage, turn.task);
    const state = await ledger.state();
    const known = state.turn?.invocations.find(({ key }) => call.key !== undefined && key === call.key);
    if (known !== undefined) return known.state === 'denied' ? deniedBefore(ledger, known) : PASS;
    const action = { tool: call.tool, args: argsText(call.args), cwd: call.cwd ?? '' };
    const mark = fingerprint(action, turn.task);
    const standing = standingFor(state, mark, {
      lapsed: await lapsedFor(this.#storage, state, mark),
      ending: {},
    }).kind;
    if (standing === 'approved' || standing === 'rejected') {
      const answer = await turn.gate({ ...call, ...effect });
      if (answer.state === 'rejected') return { kind: 'deny', reason: rejection(answer.feedback) };
      if (answer.state === 'approved') return PASS;
    }
    await turn.begin({ ...call, ...effect });
    return PASS;
  }

  #intended(
    { cwd }: Step,
    named: readonly { readonly path: string; readonly expected: IntendedPath['expected'] }[],
  ): IntendedPath[] {
    const { workTree } = this.#storage.layout;
    return named.flatMap(({ path, expected }) => {
      // The tool follows links: what it changes is the file at their end.
      const folder = cwd ?? workTree;
      const inside = insideTree(workTree, folder, throughLinks(resolve(folder, path)));
      return inside === null ? [] : [{ path: inside, expected }];
    });
  }

  async #ownTurn(session: string): Promise<Turn | null> {
    return (await this.#attached(session))?.turn ?? null;
  }

  async #attached(session: string): Promise<OwnTurn | null> {
    return this.#own ?? ownTurn(this.#storage, this.#by, session);
  }

  async #startImplicitly(step: StepOf<'before-tool'>): Promise<Turn> {
    const key = `${step.session}:before ${step.call ?? argsText(step.input)}`;
    const asked = askedOf(this.#storage, { agent: this.#by.agent, session: step.session });
    const objective = asked ?? `${step.tool}, without a prompt that was seen`;
    await this.#start(step.session, { key, objective });
    const turn = await this.#ownTurn(step.session);
    if (turn === null) throw new TypeError('a turn that was started is not held by who started it');
    return turn;
  }

  /** What the session's turn is for, should its next tool start it; null: nothing any more. No reason to fail. */
  #remember({ session }: Step, text: string | null): void {
    const of = { agent: this.#by.agent, session };
    try {
      if (text === null) dropAsked(this.#storage, of);
      else keepAsked(this.#storage, of, text);
    } catch (error) {
      if (!isDurableError(error)) throw error;
    }
  }

  /** What the model has to be told of interrupted work that came first; null when there was none. */
  async #start(
    session: string,
    { key, objective }: { key: string; objective: string },
  ): Promise<string | null> {
    const { agent, process: holder } = this.#by;
    const start = async (): Promise<void> => {
      const task = await this.#recoveredTask(session);
      const ownGit = readsOwnGit(this.#storage, holder) ? 'file' : 'none';
      const options = { key, objective, agent, session, holder, endsIdle: true, ownGit } as const;
      await startTurn(this.#storage, task === null ? options : { ...options, task });
    };
    try {
      await start();
      return null;
    } catch (error) {
      if (!hasCode(error, 'recovery-needed')) throw error;
      const text = await this.#recoverKeeping();
      await start();
      return text;
    }
  }

  /** Interrupted work goes on in its own task, whichever agent takes it up. */
  async #recoveredTask(session: string): Promise<string | null> {
    const workspace = workspaceId(this.#storage, { create: false });
    const last = workspace === null ? null : await readLease(this.#storage, leaseOf(workspace));
    const task = last?.record.task ?? null;
    if (task === null || task.startsWith('standing-') || last?.record.sessions.includes(session) === true)
      return null;
    const { turn } = await Ledger.open(this.#storage, task).state();
    return turn?.state === 'recovered' ? task : null;
  }

  async #recoverKeeping(): Promise<string | null> {
    const { interrupted } = await recoveryReport(this.#storage);
    const kept: RepairResult[] = [];
    for (const { turn } of interrupted) kept.push(await repair(this.#storage, { action: 'keep', turn }));
    const { late } = await deliverAll(this.#storage);
    return knownText(interrupted, kept, { approvals: await standingApprovals(this.#storage), late });
  }
}

/** What has to be typed when who began the turn is dead, and no prompt comes that would recover it. */
function interrupted({ context: { turn, held, ledger } }: OwnTurn): DurableError {
  return new DurableError('recovery-needed', { task: ledger.task, turn, objective: held.record.objective });
}

/** Reported twice: a call that was refused is refused again, with the same words. */
async function deniedBefore(ledger: Ledger, { finished }: InvocationFold): Promise<Reply> {
  const kept = finished?.event.result ?? null;
  const reason = kept === null ? '' : (await ledger.contents.read(kept)).toString('utf8');
  return { kind: 'deny', reason: rejection(reason) };
}
