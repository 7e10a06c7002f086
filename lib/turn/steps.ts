/**
 * The places of a turn's calls, and their answers when the turn is run again.
 *
 * Every method of a turn that has an effect takes its place at once, in program order; a replay compares place by place.
 * What happens inside a call's effect belongs to that call (it is not run again once the call has ended), so it has no
 * place of its own: transactions, checkpoints, restores, steering and usage in there are simply done, and a call in there is
 * refused in a turn that can be run again, since nobody could tell its place the second time.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { canonicalJson } from '../canonical.js';
import { DurableError } from '../errors.js';
import { isOf, type DraftOf, type EventType, type Recorded } from '../event.js';
import type { TransactionState } from '../ledger/state.js';
import type { Call } from './call.js';
import type { TurnContext } from './context.js';
import { answerFromRecord, type Answer, type Asking, type Rerun } from './rerun.js';

export interface StepOptions extends Rerun {
  /** Whether the same function may be run again and is then answered from the record. */
  readonly rerunnable?: boolean;
  /** Place of the first call: not 0 when a process joins a turn that is under way. */
  readonly firstIndex?: number;
}

/** What the transactions of a call in doubt say of it, for calls whose whole effect is recorded by them. */
export type Settling = (transactions: readonly TransactionState[]) => Asking;

/** Of a call that leaves no transaction: it is run again. */
export const again: Settling = () => ({ then: 'again' });

/** Where one was killed half way a person decides. */
export const askWhenHalf: Settling = (begun) => ({
  then: begun.some(({ state }) => state === 'prepared') ? 'ask' : 'again',
});

/** Of a call that is one transaction: committed, it is done; killed half way, it can be completed from its manifest. */
export const complete: Settling = (begun) => {
  const committed = begun.find(({ state }) => state === 'committed');
  if (committed !== undefined) return { then: 'found', value: { transaction: committed.id } };
  const half = begun.find(({ state }) => state === 'prepared');
  if (half === undefined) return { then: 'again' };
  return { then: 'complete', value: { transaction: half.id } };
};

export class Steps {
  readonly #context: TurnContext;
  readonly #options: StepOptions;
  readonly #inside = new AsyncLocalStorage<string>();
  readonly #counts = new Map<string, number>();
  #next: number;

  constructor(context: TurnContext, options: StepOptions) {
    this.#context = context;
    this.#options = options;
    this.#next = options.firstIndex ?? 0;
  }

  get rerunnable(): boolean {
    return this.#options.rerunnable === true;
  }

  /** The call whose effect is running here, undefined outside of any. */
  get outer(): string | undefined {
    return this.#inside.getStore();
  }

  /** The place of the call that is made now. Errors: 'usage' inside another call of a turn that can be run again. */
  take(what: string): number {
    if (this.rerunnable && this.outer !== undefined)
      throw new DurableError('usage', {
        detail: `'${what}' is called inside another call, which has no place of its own when the turn is run again; call it after that one`,
      });
    return this.#next++;
  }

  /** Errors: 'replay-diverged', 'invocation-in-doubt'. */
  answer(at: { call: Call; index: number }, settling?: Settling): Promise<Answer | undefined> {
    return answerFromRecord(this.#context, at, { ...this.#options, ...(settling && { settling }) });
  }

  within<T>(invocation: string, effect: () => T): T {
    return this.#inside.run(invocation, effect);
  }

  /** Idempotency key of an event that is no call; null where none is needed. */
  key(kind: string): string | null {
    if (!this.rerunnable || this.outer !== undefined) return null;
    const count = this.#counts.get(kind) ?? 0;
    this.#counts.set(kind, count + 1);
    return `${this.#context.turn}:${kind}:${String(count)}`;
  }

  /**
   * Throws when the event that has this key stands for another one than was asked for: 'replay-diverged' in a turn that is run
   * again, else 'usage', since the caller chose the key.
   */
  compare<T extends EventType>(
    draft: DraftOf<T>,
    recorded: Recorded | undefined,
    fields: readonly (keyof DraftOf<T> & string)[],
  ): void {
    if (recorded === undefined || !isOf(recorded, draft.type)) return;
    const said: Readonly<Record<string, unknown>> = { ...recorded.event };
    const asked: Readonly<Record<string, unknown>> = { ...draft };
    const other = fields.find((field) => canonicalJson(said[field]) !== canonicalJson(asked[field]));
    if (other === undefined) return;
    const [before, now] = [said[other], asked[other]].map((value) => canonicalJson(value).slice(0, 200));
    if (!this.rerunnable)
      throw new DurableError('usage', {
        detail: `the key '${draft.key ?? ''}' is on record with '${other}' ${before ?? ''}, and not with ${now ?? ''}; say the same again, or give another key`,
      });
    throw new DurableError('replay-diverged', {
      turn: this.#context.turn,
      index: this.#next,
      recorded: `${draft.type} with ${other} ${before ?? ''}`,
      asked: now ?? '',
    });
  }
}
