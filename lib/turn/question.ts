/**
 * The question that an agent's host puts to its person about a call that is on record as begun.
 *
 * A hook before a tool is the last that is told before the tool runs, so the call is recorded as started there, and the host asks
 * afterwards: the request names that call, with its exact arguments, and stays pending until
 *
 *     the call is reported to have run        the host allowed it: answered and used in one ref move
 *     the host says that it was refused       answered, returned and the call denied in one ref move
 *     it is answered from another terminal    used, or returned, by whoever waits; else by the next call of the same arguments
 *
 * Of a host that says nothing the request stays pending, also after the turn's end: nobody guesses an answer.
 */
import { lapsedFor, requestDraft, resolvedDraft, standingFor } from '../decisions/approval.js';
import { fingerprint } from '../decisions/fingerprint.js';
import { lapseDraft } from '../decisions/lapse.js';
import type { EventDraft } from '../event.js';
import type { ApprovalState, InvocationFold, TaskState } from '../ledger/state.js';
import { deniedDraft } from './call.js';
import type { TurnContext } from './context.js';

/** Opens a request for a call of this turn, or takes up the one that waits for the same action; returns its id. */
export async function recordQuestion(
  context: TurnContext,
  call: InvocationFold,
  key: string | null,
): Promise<string> {
  const { storage, ledger, turn } = context;
  const { args } = call;
  if (args === null) throw new RangeError('a call of this turn was recorded without its arguments');
  const request = { ...(await actionOf(context, call)), turn, invocation: call.id, summary: call.summary };
  const draft = requestDraft(storage, ledger.task, { request, args, command: null });
  const requested = key === null ? draft : { ...draft, key };
  let asked = requested.approval;
  await context.append(async (state) => {
    const lapsed = await lapsedFor(storage, state, requested.fingerprint);
    const standing = standingFor(state, requested.fingerprint, { lapsed, ending: {} });
    asked = standing.kind === 'none' ? requested.approval : standing.approval.id;
    const ended = lapsed.map((one) => lapseDraft(one.approval, one.lapse));
    return standing.kind === 'none' ? [...ended, requested] : ended;
  });
  return asked;
}

/** The call ran, so whatever was asked for its action has been allowed; a rejection stands, for the next call. */
export async function allowedByHost(context: TurnContext, call: InvocationFold, by: string): Promise<void> {
  const asked = await askedFor(context, call, await context.ledger.state());
  if (asked.length === 0) return;
  await context.append((state) => {
    const now = asked.flatMap(({ id }) => state.approvals.get(id) ?? []);
    return now.flatMap((one) => [
      ...(one.state === 'pending' ? [resolvedDraft(one, { decision: 'approved', by }, null)] : []),
      ...(one.state === 'pending' || one.state === 'approved'
        ? [consumed(context, one, call.id, 'run')]
        : []),
    ]);
  });
}

/** Gives an answer that came from another terminal to the call that waits. Returns false when it was used meanwhile. */
export async function useAnswer(
  context: TurnContext,
  call: InvocationFold,
  { approval, feedback }: { readonly approval: string; readonly feedback: string },
): Promise<boolean> {
  const denied = await deniedDraft(context, call.id, feedback);
  const recorded = await context.append((state) => {
    const now = state.approvals.get(approval);
    if (now?.state === 'approved') return [consumed(context, now, call.id, 'run')];
    return now?.state === 'rejected' ? [consumed(context, now, call.id, 'returned'), denied] : [];
  });
  return recorded.length > 0;
}

/** The host's person said no: answered and returned, and the call never ran. */
export async function refusedByHost(
  context: TurnContext,
  { approval, call, by }: { readonly approval: ApprovalState; readonly call: InvocationFold; by: string },
): Promise<void> {
  const denied = await deniedDraft(context, call.id, `rejected in ${by}`);
  await context.append((state) => {
    const now = state.approvals.get(approval.id);
    if (now?.state !== 'pending') return [];
    const resolved = resolvedDraft(now, { decision: 'rejected', by }, null);
    return [resolved, consumed(context, now, call.id, 'returned'), denied];
  });
}

async function askedFor(
  context: TurnContext,
  call: InvocationFold,
  { approvals }: TaskState,
): Promise<ApprovalState[]> {
  const open = [...approvals.values()].filter(({ state }) => state === 'pending' || state === 'approved');
  if (open.length === 0 || call.args === null) return [];
  const mark = fingerprint(await actionOf(context, call), context.ledger.task);
  return open.filter(({ requested }) => requested.event.fingerprint === mark);
}

async function actionOf({ ledger }: TurnContext, call: InvocationFold) {
  const args = call.args === null ? '' : (await ledger.contents.read(call.args)).toString('utf8');
  return { tool: call.tool, args, cwd: call.cwd };
}

function consumed(
  context: TurnContext,
  approval: ApprovalState,
  invocation: string,
  use: 'run' | 'returned',
): EventDraft {
  return { type: 'approval.consumed', turn: context.turn, approval: approval.id, invocation, use };
}
