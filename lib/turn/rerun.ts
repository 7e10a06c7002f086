/**
 * Answering a call of a turn that is run again: from the record, by the caller's decision, or not at all.
 *
 * A call that ended gives its recorded end. One in doubt goes to `onDoubt`, and without it the run stops with
 * 'invocation-in-doubt'; it is never guessed. The exception is a call whose whole effect is a transaction: what the ledger
 * says of that is no guess, and retried it is completed from its manifest. 'accept' records the caller's word as the call's
 * end, so that it is asked once; 'retry' of any other call first takes back the transactions that it had begun, since it
 * begins them again.
 */
import { DurableError } from '../errors.js';
import { settledAsFound } from '../files/settle.js';
import { endHalfDone } from '../files/half-done.js';
import type { InvocationFold, TransactionState } from '../ledger/state.js';
import { hasUnknownEffect } from '../recovery/touched.js';
import { endCall, type Call } from './call.js';
import type { TurnContext } from './context.js';
import { encodeResult } from './result.js';
import type { Replay } from './replay.js';
import type { Settling } from './steps.js';

/** What to do with a call of which nobody knows whether it had its effect. */
export type DoubtDecision =
  | { readonly action: 'retry' }
  | { readonly action: 'accept'; readonly result: unknown }
  | { readonly action: 'ask' };

export interface DoubtfulCall {
  readonly invocation: string;
  readonly tool: string;
  readonly summary: string;
}

export interface Rerun {
  readonly replay?: Replay;
  readonly onDoubt?: (call: DoubtfulCall) => DoubtDecision | Promise<DoubtDecision>;
}

/** A call's recorded end. */
export interface Answer {
  readonly invocation: string;
  /** The approval it ran under, or that was returned to it; null when none was asked for. */
  readonly approval: string | null;
  readonly state: 'finished' | 'failed' | 'denied';
  /** The recorded result's bytes; null when there was none. */
  readonly result: Buffer | null;
  readonly summary: string;
}

/** How a call in doubt stands: to be asked about, to be done again, or found done with this result. */
export type Asking =
  | { readonly then: 'ask' | 'again' }
  /** 'found': done already; 'complete': asked about, and retried by completing its transactions. `value` is its result. */
  | { readonly then: 'found' | 'complete'; readonly value: unknown };

/** The answer, or undefined when the call has to run. Errors: 'replay-diverged', 'invocation-in-doubt', those of an append. */
export async function answerFromRecord(
  context: TurnContext,
  at: { readonly call: Call; readonly index: number },
  rerun: Rerun & { readonly settling?: Settling },
): Promise<Answer | undefined> {
  const step = rerun.replay?.step(at.index, at.call);
  if (step === undefined || step.kind === 'new') return undefined;
  const { invocation } = step;
  if (step.kind === 'recorded') return recordedEnd(context, invocation);
  const begun = await transactionsOf(context, invocation);
  const standing = rerun.settling?.(begun) ?? { then: 'ask' };
  if (standing.then === 'found')
    return settle(context, invocation, { settled: 'found', value: standing.value });
  const decision =
    standing.then === 'again' ? ({ action: 'retry' } as const) : await decide(invocation, rerun);
  const halfDone = begun.filter(({ state }) => state === 'prepared');
  if (decision.action === 'retry') {
    const isCompleted = standing.then === 'complete';
    for (const one of halfDone) await endHalfDone(context, one, isCompleted ? 'forward' : 'back');
    if (isCompleted) return settle(context, invocation, { settled: 'found', value: standing.value });
    await settle(context, invocation, { settled: 'retried', value: undefined });
    return undefined;
  }
  for (const one of halfDone) {
    const ended = await settledAsFound(context, one);
    await context.append(() => [ended]);
  }
  return settle(context, invocation, { settled: 'accepted', value: decision.result });
}

async function decide(
  invocation: InvocationFold,
  rerun: Rerun,
): Promise<Exclude<DoubtDecision, { action: 'ask' }>> {
  const doubt = { invocation: invocation.id, tool: invocation.tool, summary: invocation.summary };
  const decision = (await rerun.onDoubt?.(doubt)) ?? { action: 'ask' };
  if (decision.action === 'ask') throw new DurableError('invocation-in-doubt', doubt);
  return decision;
}

async function recordedEnd(context: TurnContext, invocation: InvocationFold): Promise<Answer> {
  const finished = invocation.finished?.event;
  const kept = finished?.result ?? null;
  const { approvals } = await context.ledger.state();
  const returned = [...approvals.values()].find(
    ({ consumed }) => consumed?.event.invocation === invocation.id,
  );
  return {
    invocation: invocation.id,
    approval: invocation.approval ?? returned?.id ?? null,
    state: finished?.state ?? 'failed',
    result: kept === null ? null : await context.ledger.contents.read(kept),
    summary: finished?.summary ?? '',
  };
}

async function transactionsOf(context: TurnContext, { id }: InvocationFold): Promise<TransactionState[]> {
  const { transactions } = await context.ledger.state();
  return [...transactions.values()].filter(({ prepared }) => prepared.event.invocation === id);
}

interface Settled {
  readonly settled: 'accepted' | 'found' | 'retried';
  readonly value: unknown;
}

/** Ends the call that is in doubt, as the same call. */
async function settle(
  context: TurnContext,
  invocation: InvocationFold,
  { settled, value }: Settled,
): Promise<Answer> {
  const result = encodeResult(value);
  const call = { invocation: invocation.id, unknownEffect: hasUnknownEffect(invocation) };
  const state = settled === 'retried' ? 'failed' : 'finished';
  const summary = settled === 'retried' ? 'nobody knows whether it had its effect; it is done again' : '';
  await endCall(context, call, { state, settled, summary, result, durationMs: null });
  return { invocation: invocation.id, approval: invocation.approval, state, result, summary };
}
