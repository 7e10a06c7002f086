/**
 * Answering a call of a turn that is run again: from the record, by the caller's decision, or not at all.
 *
 * A call that ended gives its recorded result, or throws its recorded failure; one in doubt goes to `onDoubt`, and without it
 * the run stops with 'invocation-in-doubt'. 'accept' records the caller's word as the call's end, so that it is asked once.
 */
import { canonicalJson } from '../canonical.js';
import { DurableError } from '../errors.js';
import type { InvocationFold } from '../ledger/state.js';
import { finishedDraft, proposeCall, startedDraft, type Call } from './call.js';
import type { TurnContext } from './context.js';
import type { Replay } from './replay.js';

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

/** The answer, or undefined when the call has to run. Errors: 'replay-diverged', 'invocation-in-doubt', the recorded failure. */
export async function answerFromRecord(
  context: TurnContext,
  at: { readonly call: Call; readonly index: number },
  rerun: Rerun,
): Promise<{ readonly value: unknown } | undefined> {
  const step = rerun.replay?.step(at.index, at.call);
  if (step === undefined || step.kind === 'new') return undefined;
  const { invocation } = step;
  if (step.kind === 'recorded') return { value: await recordedResult(context, invocation) };
  const doubt = { invocation: invocation.id, tool: invocation.tool, summary: invocation.summary };
  const decision = (await rerun.onDoubt?.(doubt)) ?? { action: 'ask' };
  if (decision.action === 'retry') return undefined;
  if (decision.action === 'ask') throw new DurableError('invocation-in-doubt', doubt);
  await accept(context, at, decision.result);
  return { value: decision.result };
}

/** A result as it is kept: canonical JSON of what JSON can say of it; nothing for undefined. */
export function encodeResult(value: unknown): Buffer | null {
  if (value === undefined) return null;
  return Buffer.from(canonicalJson(JSON.parse(JSON.stringify(value)) as unknown), 'utf8');
}

async function recordedResult(context: TurnContext, invocation: InvocationFold): Promise<unknown> {
  const finished = invocation.finished?.event;
  const result = finished?.result ?? null;
  const bytes = result === null ? null : await context.ledger.contents.read(result);
  if (invocation.state === 'finished') {
    return bytes === null ? undefined : (JSON.parse(bytes.toString('utf8')) as unknown);
  }
  throw new Error(bytes?.toString('utf8') ?? finished?.summary ?? 'the call failed');
}

async function accept(
  context: TurnContext,
  at: { call: Call; index: number },
  result: unknown,
): Promise<void> {
  const proposed = await proposeCall(context, { ...at.call, mutates: false, paths: [] }, { index: at.index });
  const finished = await finishedDraft(context, proposed.invocation, {
    state: 'finished',
    settled: 'accepted',
    result: encodeResult(result),
    durationMs: null,
    checkpoint: null,
  });
  await context.append(() => [proposed.draft, startedDraft(context, proposed.invocation, null), finished]);
}
