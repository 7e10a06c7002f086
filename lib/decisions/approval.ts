/**
 * Approvals: a pending decision on exact arguments, ended by one conditional append.
 *
 * `proposeApproval` asks (PROTOCOL.md 20): an answer that is already there for the same fingerprint is used before a new
 * request is made, so that an answer given while the agent was dead is neither lost nor asked for again.
 * `resolveApproval` answers (21): of any number of clients exactly one wins, the others are told who did.
 * Consuming is one ref move with the start (or the denial) of the invocation it allows (22): see lib/turn/call.ts.
 */
import { oldestFirst } from './order.js';
import { DurableError } from '../errors.js';
import { isOf, type EventDraft, type Kept, type Recorded } from '../event.js';
import { freshId } from '../host.js';
import type { Storage } from '../git/storage.js';
import type { ApprovalState, TaskState } from '../ledger/state.js';
import { Ledger, listTasks } from '../ledger/ledger.js';
import { settled } from '../ledger/rules.js';
import { cut } from '../ledger/subject.js';
import { pickOne } from './pick.js';
import { fingerprint, type Action } from './fingerprint.js';

/** What is found for a proposed action, in the order it must be looked for. */
export type Standing =
  | { readonly kind: 'approved' | 'rejected' | 'pending'; readonly approval: ApprovalState }
  | { readonly kind: 'none' };

export function standingFor(state: TaskState, mark: string): Standing {
  const same = [...state.approvals.values()].filter(
    (approval) => approval.requested.event.fingerprint === mark,
  );
  for (const kind of ['approved', 'rejected', 'pending'] as const) {
    const found = same.find((approval) => approval.state === kind);
    if (found !== undefined) return { kind, approval: found };
  }
  return { kind: 'none' };
}

export interface ApprovalRequest extends Action {
  readonly invocation: string | null;
  readonly turn: string;
  readonly summary?: string;
  /** The work tree as it was when the request was made. */
  readonly checkpoint?: string | null;
  readonly expiresAt?: Date | null;
  /** The answer no longer counts once the work tree differs from `checkpoint`. */
  readonly invalidOnChange?: boolean;
}

export function requestDraft(
  storage: Storage,
  task: string,
  asked: { request: ApprovalRequest; args: Kept; command: Kept | null },
): Extract<EventDraft, { type: 'approval.requested' }> {
  const { request, args, command } = asked;
  const approval = freshId(storage.host);
  return {
    type: 'approval.requested',
    turn: request.turn,
    approval,
    invocation: request.invocation,
    tool: request.tool,
    summary: cut(request.summary ?? request.args, 200),
    args,
    command,
    cwd: request.cwd,
    fingerprint: fingerprint(request, task),
    checkpoint: request.checkpoint ?? null,
    expiresAt: request.expiresAt?.toISOString() ?? null,
    invalidOnChange: request.invalidOnChange ?? false,
  };
}

export interface Resolution {
  readonly decision: 'approved' | 'rejected';
  /** Who answers, for the ledger: a login name or a client's name. */
  readonly by: string;
  /** Returned verbatim as the tool's result: any Unicode, newlines, up to 64 KiB. */
  readonly feedback?: string;
}

const MOST_FEEDBACK = 65_536;

/**
 * Answers a pending request, wherever its task is. Throws 'approval-settled' (who and when) when it is answered already,
 * 'not-found' or 'ambiguous' for an id prefix.
 */
export async function resolveApproval(
  storage: Storage,
  id: string,
  resolution: Resolution,
): Promise<Recorded<'approval.resolved'>> {
  const feedback = Buffer.from(resolution.feedback ?? '', 'utf8');
  if (feedback.length > MOST_FEEDBACK)
    throw new DurableError('usage', {
      detail: 'feedback is limited to 64 KiB: name a file in it that says the rest',
    });
  const { ledger, approval } = await findApproval(storage, id);
  const kept = feedback.length === 0 ? null : ((await ledger.contents.keep([feedback]))[0] ?? null);
  const [recorded] = await ledger.append(
    (state) => {
      const now = state.approvals.get(approval.id);
      if (now?.state !== 'pending') throw settled(now ?? approval);
      return [resolvedDraft(approval, resolution, kept)];
    },
    { lease: null, agent: 'person', workspace: approval.requested.event.workspace },
  );
  if (recorded === undefined || !isOf(recorded, 'approval.resolved'))
    throw new RangeError('the ledger recorded something else than was appended');
  return recorded;
}

export interface ListedApproval {
  readonly task: string;
  readonly approval: ApprovalState;
}

/** Every request of every task that is still in view of its newest turn, oldest first. */
export async function listApprovals(storage: Storage): Promise<ListedApproval[]> {
  const all: ListedApproval[] = [];
  for (const task of listTasks(storage)) {
    const { state } = await Ledger.open(storage, task).readable();
    for (const approval of state.approvals.values()) all.push({ task, approval });
  }
  return oldestFirst(all, ({ approval }) => approval.requested.event);
}

function resolvedDraft(approval: ApprovalState, resolution: Resolution, feedback: Kept | null): EventDraft {
  return {
    type: 'approval.resolved',
    turn: approval.requested.event.turn,
    approval: approval.id,
    decision: resolution.decision,
    by: resolution.by,
    feedback,
    feedbackSummary: cut(resolution.feedback ?? '', 2000),
  };
}

async function findApproval(
  storage: Storage,
  prefix: string,
): Promise<{ ledger: Ledger; approval: ApprovalState }> {
  const listed = await listApprovals(storage);
  const { task, approval } = pickOne('approval', prefix, listed, (one) => one.approval.id);
  return { ledger: Ledger.open(storage, task), approval };
}
