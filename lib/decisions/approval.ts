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
import { workspaceId } from '../lease/workspace.js';
import type { ApprovalState, TaskState } from '../ledger/state.js';
import { Ledger, listTasks } from '../ledger/ledger.js';
import { settled } from '../ledger/rules.js';
import { cut } from '../ledger/subject.js';
import { everyDecision, type Decisions } from './history.js';
import { pickOne } from './pick.js';
import { exactBytes, fingerprint, type Action } from './fingerprint.js';
import { endsWithin, isWaiting, lapseDraft, lapseOf, type Ending, type Lapse } from './lapse.js';

/** What is found for a proposed action, in the order it must be looked for. */
export type Standing =
  | { readonly kind: 'approved' | 'rejected' | 'pending'; readonly approval: ApprovalState }
  | { readonly kind: 'none' };

/**
 * For who asks now. An answer that is there is used at once, whatever end is asked for: neither time nor tree has moved on. A
 * request that waits is taken up only when it ends no later than what is asked for (lib/decisions/lapse.ts).
 * `lapsed`: what counts as ended though no event says so yet.
 */
export function standingFor(
  state: TaskState,
  mark: string,
  { lapsed, ending }: { readonly lapsed: readonly Lapsed[]; readonly ending: Ending },
): Standing {
  const same = requestsFor(state, mark).filter((one) => !lapsed.some(({ approval }) => approval === one));
  const answered =
    same.find((one) => one.state === 'approved') ?? same.find((one) => one.state === 'rejected');
  const found = answered ?? same.find((one) => one.state === 'pending' && endsWithin(one, ending));
  return found === undefined ? { kind: 'none' } : standingOf(found);
}

/** Of one request, for who waits for it. */
export function standingOf(approval: ApprovalState | undefined): Standing {
  const kind = approval?.state;
  return approval !== undefined && (kind === 'approved' || kind === 'rejected' || kind === 'pending')
    ? { kind, approval }
    : { kind: 'none' };
}

export interface Lapsed {
  readonly approval: ApprovalState;
  readonly lapse: Lapse;
}

/** Those of an action that have lapsed in this work tree, and are to be recorded as that. */
export async function lapsedFor(storage: Storage, state: TaskState, mark: string): Promise<Lapsed[]> {
  const lapsed: Lapsed[] = [];
  for (const approval of requestsFor(state, mark)) {
    const lapse = await lapseOf(storage, approval, { workTree: true });
    if (lapse !== null) lapsed.push({ approval, lapse });
  }
  return lapsed;
}

const requestsFor = (state: TaskState, mark: string): ApprovalState[] =>
  [...state.approvals.values()].filter((approval) => approval.requested.event.fingerprint === mark);

export interface ApprovalRequest extends Action, Ending {
  readonly invocation: string | null;
  readonly turn: string;
  readonly summary?: string;
  /** The work tree as it was when the request was made. */
  readonly checkpoint?: string | null;
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
    expiresAt: timeOf(request.expiresAt ?? null),
    invalidOnChange: request.invalidOnChange ?? false,
  };
}

function timeOf(expiresAt: Date | null): string | null {
  if (expiresAt === null) return null;
  const time = expiresAt.getTime();
  if (Number.isNaN(time) || time < 0 || time > LAST_TIME)
    throw new DurableError('usage', {
      detail: 'a request expires between the years 1970 and 9999; give another time',
    });
  return expiresAt.toISOString();
}

const LAST_TIME = Date.UTC(9999, 11, 31);

export interface Resolution {
  readonly decision: 'approved' | 'rejected';
  /** Who answers, for the ledger: a login name or a client's name. */
  readonly by: string;
  /** Returned verbatim as the tool's result: any Unicode, newlines, up to 64 KiB; a lone surrogate, which no bytes stand for, is refused. */
  readonly feedback?: string;
}

const MOST_FEEDBACK = 65_536;

/**
 * Answers a pending request, wherever its task is. Throws 'approval-settled' (who and when) when it is answered already, or
 * has lapsed, which is recorded then; 'not-found' or 'ambiguous' for an id prefix; 'usage' for a text that cannot be kept.
 */
export async function resolveApproval(
  storage: Storage,
  id: string,
  resolution: Resolution,
): Promise<Recorded<'approval.resolved'>> {
  const feedback = exactBytes('feedback', resolution.feedback ?? '');
  if (feedback.length > MOST_FEEDBACK)
    throw new DurableError('usage', {
      detail: 'feedback is limited to 64 KiB: name a file in it that says the rest',
    });
  const { ledger, approval } = await findApproval(storage, id);
  const workTree = approval.requested.event.workspace === workspaceId(storage, { create: false });
  const kept = feedback.length === 0 ? null : ((await ledger.contents.keep([feedback]))[0] ?? null);
  const [recorded] = await ledger.append(
    async (state) => {
      const now = state.approvals.get(approval.id) ?? (await everRequested(storage, ledger.task, approval));
      if (now.state !== 'pending') throw settled(now);
      const lapse = await lapseOf(storage, now, { workTree });
      return [lapse === null ? resolvedDraft(approval, resolution, kept) : lapseDraft(now, lapse)];
    },
    { lease: null, agent: 'person', workspace: approval.requested.event.workspace },
  );
  if (recorded === undefined || !isOf(recorded, 'approval.resolved'))
    throw new RangeError('the ledger recorded something else than was appended');
  const { decision } = recorded.event;
  if (decision !== resolution.decision) throw settled({ ...approval, state: decision, resolved: recorded });
  return recorded;
}

export interface ListedApproval {
  readonly task: string;
  readonly approval: ApprovalState;
  /**
   * What the next who acts on it would record: 'expired' is for good; 'invalidated' holds while the tree is as it is now. Null: nothing, or
   * its state says so.
   */
  readonly lapsed: Lapse | null;
}

/** Every request of every task, oldest first, used ones of earlier turns included: reads whole ledgers. */
export async function listApprovals(storage: Storage): Promise<ListedApproval[]> {
  const all = await collect(storage, (task) => everyDecision(storage, task));
  return listed(storage, all, { workTree: true });
}

/** How many wait for their answer, at the cost of the newest turns: no older event is read, and no tree. */
export async function countWaiting(storage: Storage): Promise<number> {
  const inView = async (task: string): Promise<Decisions> =>
    (await Ledger.open(storage, task).readable()).state;
  const all = await listed(storage, await collect(storage, inView), { workTree: false });
  return all.filter(({ approval, lapsed }) => isWaiting(approval, lapsed)).length;
}

async function listed(
  storage: Storage,
  all: readonly InTask[],
  look: { readonly workTree: boolean },
): Promise<ListedApproval[]> {
  const here = workspaceId(storage, { create: false });
  const seen: ListedApproval[] = [];
  for (const one of all) {
    const workTree = look.workTree && one.approval.requested.event.workspace === here;
    seen.push({ ...one, lapsed: await lapseOf(storage, one.approval, { workTree }) });
  }
  return seen;
}

/** One that was found pending and has gone out of view since was settled meanwhile. */
async function everRequested(storage: Storage, task: string, known: ApprovalState): Promise<ApprovalState> {
  return (await everyDecision(storage, task)).approvals.get(known.id) ?? known;
}

type InTask = Omit<ListedApproval, 'lapsed'>;

async function collect(
  storage: Storage,
  decisionsOf: (task: string) => Promise<Decisions>,
): Promise<InTask[]> {
  const all: InTask[] = [];
  for (const task of listTasks(storage)) {
    for (const approval of (await decisionsOf(task)).approvals.values()) all.push({ task, approval });
  }
  return oldestFirst(all, ({ approval }) => approval.requested.event);
}

export function resolvedDraft(
  approval: ApprovalState,
  resolution: Resolution,
  feedback: Kept | null,
): EventDraft {
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
  const all = await collect(storage, (task) => everyDecision(storage, task));
  const { task, approval } = pickOne('approval', prefix, all, (one) => one.approval.id);
  return { ledger: Ledger.open(storage, task), approval };
}
