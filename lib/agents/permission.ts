/**
 * A host's question to its person about a call that has begun (lib/turn/question.ts).
 *
 * Claude Code and Codex name no call in it, so it is the newest begun call of the same tool and exact arguments; Codex adds a
 * reason of its own to the arguments, which is no part of them. OpenCode and Kilo name the call, and say what was answered.
 * The host asks as it would have; only with `durable.wait` the answer is waited for first, for so many seconds and no
 * longer than the host waits for its hook.
 */
import { digest } from '../canonical.js';
import { argsText } from '../decisions/fingerprint.js';
import type { Storage } from '../git/storage.js';
import type { InvocationFold, TaskState } from '../ledger/state.js';
import type { Attached } from '../turn/attach.js';
import { recordQuestion, refusedByHost, useAnswer } from '../turn/question.js';
import { callOf, keyOf, type AgentProcess } from './own-turn.js';
import { PASS, type AgentName, type Reply, type StepOf } from './step.js';

/** `waitMs`: how long the answer may be waited for. */
export async function permission(
  storage: Storage,
  { turn, context }: Attached,
  step: StepOf<'permission'>,
  { agent, waitMs }: { readonly agent: AgentName; readonly waitMs: number },
): Promise<Reply> {
  const state = await context.ledger.state();
  const call = callAsked(state, step, agent, callOf(storage, step).key);
  // Opened under an answer that was there before, it needs no second one.
  if (call !== undefined && call.approval !== null) return { kind: 'allow' };
  const key = step.request === null ? null : keyOf(step.session, step.request);
  if (call === undefined) {
    await turn.requestApproval({ ...callOf(storage, step), ...(key === null ? {} : { key }) });
    return PASS;
  }
  const approval = await recordQuestion(context, call, key);
  if (waitMs <= 0) return PASS;
  const asked = { approval, fingerprint: '', expiresAt: null, invalidOnChange: false };
  const { state: answer, feedback } = await turn.awaitAnswer(asked, waitMs);
  if (answer !== 'approved' && answer !== 'rejected') return PASS;
  if (!(await useAnswer(context, call, { approval, feedback }))) return PASS;
  return answer === 'approved' ? { kind: 'allow' } : { kind: 'deny', reason: rejection(feedback) };
}

/** What a host tells of the answer to its own question; that it allowed the call is told by the call's end. */
export async function answered(
  { context }: Attached,
  by: AgentProcess,
  step: StepOf<'answer'>,
): Promise<Reply> {
  if (step.isAllowed) return PASS;
  const state = await context.ledger.state();
  const pending = [...state.approvals.values()].filter((one) => one.state === 'pending');
  const named = pending.find(({ requested }) => requested.event.key === keyOf(step.session, step.request));
  const approval = named ?? (pending.length === 1 ? pending[0] : undefined);
  const call = state.turn?.invocations.find(({ id }) => id === approval?.requested.event.invocation);
  if (approval !== undefined && call !== undefined)
    await refusedByHost(context, { approval, call, by: by.agent });
  return PASS;
}

/** The words of whoever rejected a call, verbatim; there is no telling what a host makes of none. */
export function rejection(feedback: string): string {
  return feedback === '' ? 'git-durable: who was asked for approval rejected this call' : feedback;
}

/** The begun call that the host asks about. Of several with the same arguments the first that was not asked about. */
function callAsked(
  { turn, approvals }: TaskState,
  step: StepOf<'permission'>,
  agent: AgentName,
  key: string | undefined,
): InvocationFold | undefined {
  const begun = turn?.invocations.filter(({ state }) => state === 'started') ?? [];
  if (key !== undefined) return begun.find((call) => call.key === key);
  const digests = [step.input, ...(agent === 'codex' ? [withoutReason(step.input)] : [])].map((args) =>
    digest(argsText(args)),
  );
  const same = begun.filter((call) => call.tool === step.tool && digests.includes(call.argsDigest));
  const asked = new Set([...approvals.values()].map(({ requested }) => requested.event.invocation));
  return same.find(({ id }) => !asked.has(id)) ?? same.at(-1);
}

function withoutReason(input: unknown): unknown {
  if (typeof input !== 'object' || input === null) return input;
  return Object.fromEntries(Object.entries(input).filter(([name]) => name !== 'description'));
}
