/** Calls whose two halves the caller has in hand, and what they are when the turn is run again. */
import type { Ending, Lapse } from '../decisions/lapse.js';
import type { Change } from '../files/transaction.js';
import type { Call, CallEnd } from './call.js';
import type { Asked } from './gate.js';
import type { Answer } from './rerun.js';

export interface OpenCall {
  readonly invocation: string;
  /**
   * In a replay: the end that is on record. The effect must not be run again then, and `end` does nothing. Undefined when
   * the call is to be done now.
   */
  readonly recorded?: Answer;
  /** Records the end; must be called exactly once. */
  readonly end: (end: CallEnd) => Promise<void>;
}

export interface GatedCall extends Call, Ending {
  /** Wait at most this long for the answer, then give up with the request still pending. Default: 0. */
  readonly waitMs?: number;
  /** The words of the command that the approval will start: part of what is decided, and shown. */
  readonly command?: readonly string[];
}

export type GateAnswer =
  | { readonly state: 'approved'; readonly approval: string; readonly call: OpenCall }
  | { readonly state: 'rejected'; readonly approval: string; readonly feedback: string }
  | (Asked & { readonly state: 'pending' | Lapse });

/**
 * What stands for a transaction's changes when they are compared: what is done to which path. Not the bytes: a function that
 * is run again computes them from files that have changed already.
 */
export function namesOf(changes: readonly Change[]): unknown {
  return changes.map((change) => {
    if (change.kind === 'rename') return { kind: change.kind, from: change.from, to: change.to };
    return { kind: change.kind, path: change.path };
  });
}

export function answered(answer: Answer): OpenCall {
  return { invocation: answer.invocation, recorded: answer, end: () => Promise.resolve() };
}

/** A decision that was used once is the same in every replay. */
export function gatedAgain(answer: Answer): GateAnswer {
  const approval = answer.approval ?? '';
  if (answer.state === 'denied')
    return { state: 'rejected', approval, feedback: answer.result?.toString('utf8') ?? '' };
  return { state: 'approved', approval, call: answered(answer) };
}
