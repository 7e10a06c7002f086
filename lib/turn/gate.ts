/**
 * Asking a person before a call runs (PROTOCOL.md 20 to 23).
 *
 * `ask` looks before it asks: an approved and unused answer, a rejection not yet returned, or a pending request for the
 * same tool, exact arguments, folder and task is taken up, whichever turn it came from. `consume` and `giveBack` are each
 * one ref move with the start, or the denial, of the invocation: killed before it, the answer is still there and unused;
 * killed after it, it is not used twice. What the paths hold is read again at the start, since a person takes time.
 * A request that is taken up keeps the end it was made with, which is the stricter one (lib/decisions/lapse.ts): one that would
 * outlive what is asked for is left to wait, and another is made. One that has lapsed is recorded as that, and the same is
 * asked anew. Who waits, waits for the one request that it was given.
 */
import type { EventDraft, Kept } from '../event.js';
import type { ApprovalState } from '../ledger/state.js';
import { settled } from '../ledger/rules.js';
import { lapsedFor, requestDraft, standingFor, standingOf, type Standing } from '../decisions/approval.js';
import { argsText, exactBytes, fingerprint, type Action } from '../decisions/fingerprint.js';
import { expiresInMs, lapseDraft, lapseOf, type Ending, type Lapse } from '../decisions/lapse.js';
import { refMoved } from '../decisions/wait.js';
import { refuseVague } from './call-shape.js';
import { deniedDraft, proposeCall, snapshot, startedDraft, type Call, type ProposedCall } from './call.js';
import type { TurnContext } from './context.js';

export interface Asked {
  readonly approval: string;
  readonly fingerprint: string;
  /** How the request ends by itself: earlier than asked for where one that waited already was taken up. */
  readonly expiresAt: string | null;
  readonly invalidOnChange: boolean;
}

export interface Ask extends Omit<Call, 'paths' | 'mutates'>, Ending {
  /** The words of the command that an approval will start: part of what is decided. */
  readonly command?: readonly string[];
}

export class Gate {
  readonly #context: TurnContext;

  constructor(context: TurnContext) {
    this.#context = context;
  }

  /** `index`: the place of the call, the same for all that becomes of it. Errors: 'usage' for what nobody could decide, those of a call. */
  async ask(call: Ask, index: number): Promise<Asked> {
    const { storage, ledger } = this.#context;
    refuseVague(call);
    const action = this.#action(call);
    exactBytes('arguments', action.args);
    const mark = fingerprint(action, ledger.task);
    const state = await ledger.state();
    const found = standingFor(state, mark, { lapsed: await lapsedFor(storage, state, mark), ending: call });
    if (found.kind !== 'none') return askedOf(found.approval.requested.event);
    const proposed = await proposeCall(this.#context, { ...call, mutates: false, paths: [] }, { index });
    const request = {
      ...call,
      ...action,
      turn: this.#context.turn,
      invocation: proposed.invocation,
      checkpoint: await this.#seen(call, state.lastCheckpoint),
    };
    const requested = requestDraft(storage, ledger.task, {
      request,
      args: proposed.args,
      command: await this.#keepCommand(call.command),
    });
    let asked = askedOf(requested);
    await this.#context.append(async (now) => {
      const lapsed = await lapsedFor(storage, now, mark);
      const standing = standingFor(now, mark, { lapsed, ending: call });
      asked = askedOf(standing.kind === 'none' ? requested : standing.approval.requested.event);
      const ended = lapsed.map((one) => lapseDraft(one.approval, one.lapse));
      return standing.kind === 'none' ? [...ended, proposed.draft, requested] : ended;
    });
    return asked;
  }

  /** What a request that ends with a change of the tree is compared with; of any other, what was known of the tree. */
  async #seen(call: Ask, known: string | null): Promise<string | null> {
    return call.invalidOnChange === true
      ? snapshot(this.#context, `when ${call.tool} was asked for`, 'before-tool')
      : known;
  }

  /** What the request stands at, waiting at most `waitMs` while it is pending; 'none' when it has lapsed, which is recorded. */
  async answer(asked: Asked, waitMs: number): Promise<Standing> {
    const { storage, ledger } = this.#context;
    const deadlineMs = storage.host.monotonicMs() + waitMs;
    for (;;) {
      const state = await ledger.state();
      const standing = standingOf(state.approvals.get(asked.approval));
      if (standing.kind === 'none' || standing.kind === 'rejected') return standing;
      const { kind, approval } = standing;
      // While it waits only the clock is looked at: a look at the tree reads all of it.
      if (await this.#ended(approval, kind === 'approved')) continue;
      const now = storage.host.monotonicMs();
      if (kind === 'approved' || now >= deadlineMs) return standing;
      await refMoved(storage, ledger.ref, {
        oid: state.head?.commit ?? null,
        deadlineMs: Math.min(deadlineMs, now + expiresInMs(storage, approval)),
      });
    }
  }

  /** Records that it has lapsed, unless it has its end meanwhile. False when it stands. */
  async #ended(approval: ApprovalState, workTree: boolean): Promise<boolean> {
    const { storage } = this.#context;
    const lapse = await lapseOf(storage, approval, { workTree });
    if (lapse === null) return false;
    await this.#context.append(({ approvals }) =>
      approvals.get(approval.id)?.state === approval.state ? [lapseDraft(approval, lapse)] : [],
    );
    return true;
  }

  /** What it lapsed as, when it did before it could be used. Errors: 'approval-settled', those of a call. */
  async consume(call: Call, approval: ApprovalState, index: number): Promise<ProposedCall | Lapse> {
    const proposed = await this.#proposeAgain(call, approval, { use: 'run', index });
    const found: { lapse: Lapse | null } = { lapse: null };
    await this.#context.append(async (state) => {
      const now = state.approvals.get(approval.id);
      if (now?.state !== 'approved') throw settled(now ?? approval);
      found.lapse = await lapseOf(this.#context.storage, now, { workTree: true });
      if (found.lapse !== null) return [lapseDraft(now, found.lapse)];
      const { invocation } = proposed;
      return [
        proposed.draft,
        this.#consumed(approval.id, invocation, 'run'),
        startedDraft(this.#context, invocation, approval.id),
      ];
    });
    return found.lapse ?? proposed;
  }

  /** Returns a rejection's text, verbatim, and records that it was returned. */
  async giveBack(call: Call, approval: ApprovalState, index: number): Promise<string> {
    const feedback = await this.feedback(approval);
    const proposed = await this.#proposeAgain({ ...call, mutates: false, paths: [] }, approval, {
      use: 'returned',
      index,
    });
    const finished = await deniedDraft(this.#context, proposed.invocation, feedback);
    await this.#context.append((state) => {
      const now = state.approvals.get(approval.id);
      if (now?.state !== 'rejected') throw settled(now ?? approval);
      return [proposed.draft, this.#consumed(approval.id, proposed.invocation, 'returned'), finished];
    });
    return feedback;
  }

  /** Of a request that gave no answer. Throws 'approval-settled' when another call has used it. */
  async unanswered(approval: string): Promise<'pending' | Lapse> {
    const found = (await this.#context.ledger.state()).approvals.get(approval);
    const state = found?.state ?? 'pending';
    if (found === undefined || state === 'pending') return 'pending';
    if (state === 'expired' || state === 'invalidated') return state;
    throw settled(found);
  }

  async feedback(approval: ApprovalState): Promise<string> {
    const kept = approval.resolved?.event.feedback ?? null;
    return kept === null ? '' : (await this.#context.ledger.contents.read(kept)).toString('utf8');
  }

  /**
   * The same invocation while the request's own still waits in this turn, else one of this turn's own, under the host's call id
   * where there is one; its paths are read anew.
   */
  async #proposeAgain(
    call: Call,
    approval: ApprovalState,
    { use, index }: { use: 'run' | 'returned'; index: number },
  ): Promise<ProposedCall> {
    const { invocation } = approval.requested.event;
    const { turn } = await this.#context.ledger.state();
    const waits = turn?.invocations.some(({ id, state }) => id === invocation && state === 'proposed');
    const ofUse = `${approval.id}:${use}`;
    if (invocation !== null && waits === true)
      return proposeCall(this.#context, { ...call, key: ofUse }, { index, invocation });
    return proposeCall(this.#context, { ...call, key: call.key ?? ofUse }, { index });
  }

  #consumed(approval: string, invocation: string, use: 'run' | 'returned'): EventDraft {
    return { type: 'approval.consumed', turn: this.#context.turn, approval, invocation, use };
  }

  async #keepCommand(command: readonly string[] | undefined): Promise<Kept | null> {
    if (command === undefined) return null;
    const [kept] = await this.#context.ledger.contents.keep([Buffer.from(JSON.stringify(command), 'utf8')]);
    return kept ?? null;
  }

  #action(call: Pick<Ask, 'tool' | 'args' | 'cwd' | 'command'>): Action {
    return {
      ...(call.command === undefined ? {} : { command: call.command }),
      tool: call.tool,
      args: argsText(call.args),
      cwd: call.cwd ?? this.#context.storage.layout.workTree,
    };
  }
}

const askedOf = (requested: Asked): Asked => {
  const { approval, fingerprint: mark, expiresAt, invalidOnChange } = requested;
  return { approval, fingerprint: mark, expiresAt, invalidOnChange };
};
