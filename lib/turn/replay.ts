/**
 * Durable execution: a turn run again from its events.
 *
 * The calls of an interrupted turn, in order. A call that finished answers from the
 * record and is not run again; one in doubt is for the caller to decide and is never guessed; the first one that is not
 * there runs. A call that differs from the recorded one at its place means that the function does something else than it
 * did: refused, with the first differing call, before anything runs.
 */
import { digest } from '../canonical.js';
import { DurableError } from '../errors.js';
import type { InvocationFold, TurnState } from '../ledger/state.js';
import { argsText } from '../decisions/fingerprint.js';
import type { Call } from './call.js';

export type Step =
  { readonly kind: 'new' } | { readonly kind: 'recorded' | 'in-doubt'; readonly invocation: InvocationFold };

/** Places from here on are of processes that joined a turn under way; no replay compares them. */
export const JOINED_FROM = 1_000_000;

export class Replay {
  readonly #turn: string;
  readonly #calls: ReadonlyMap<number, InvocationFold>;

  /** Of two records at one place the later one counts: it was tried again. */
  constructor(turn: TurnState) {
    this.#turn = turn.id;
    const own = turn.invocations.filter(({ index }) => index < JOINED_FROM);
    this.#calls = new Map(own.map((call) => [call.index, call]));
  }

  step(index: number, call: Call): Step {
    const recorded = this.#calls.get(index);
    if (recorded === undefined) return { kind: 'new' };
    if (recorded.tool !== call.tool || recorded.argsDigest !== digest(argsText(call.args))) {
      throw new DurableError('replay-diverged', {
        turn: this.#turn,
        index,
        recorded: `${recorded.tool} ${recorded.summary}`,
        asked: `${call.tool} ${argsText(call.args).slice(0, 200)}`,
      });
    }
    // Only asked for, or given up to be done again: there is no end to answer with.
    if (recorded.state === 'proposed' || recorded.finished?.event.settled === 'retried')
      return { kind: 'new' };
    return { kind: recorded.state === 'started' ? 'in-doubt' : 'recorded', invocation: recorded };
  }
}
