/**
 * From drafts to commits: what an append will write, decided on one state and without touching a ref.
 *
 * Each draft is looked up by its key first (found: its recorded event takes its place), then held to the rules of its
 * type, completed with what only the ledger knows, validated by its schema, and folded in, so that the next draft of the same
 * append sees it.
 */
import { chainStart } from '../canonical.js';
import { DurableError } from '../errors.js';
import { EVENT_TABLE, FORMAT_VERSION, type Event, type EventDraft, type Recorded } from '../event.js';
import { freshId } from '../host.js';
import { commitBody, treeBody } from '../git/objects-format.js';
import type { Storage } from '../git/storage.js';
import { readLease, type LeaseToken } from '../lease/record.js';
import { fitted, type Redact } from './fit.js';
import { openDecisions } from './carried.js';
import { fold } from './fold.js';
import { encodeEvent, validated } from './message.js';
import { keyOf, refusal } from './rules.js';
import { keyIn, type TaskState } from './state.js';

export interface AppendBy {
  /** Null for events that are not lease-bound. With a token, all events of the append are verified against it. */
  readonly lease: LeaseToken | null;
  readonly agent: string;
  readonly workspace: string | null;
  /** How long to try, in milliseconds; default 10,000. */
  readonly budgetMs?: number;
  /** What the events name, still on its way to the disk: the ref moves after it, and not at all when it fails. */
  readonly after?: Promise<unknown>;
}

export interface PlanIn {
  readonly storage: Storage;
  readonly task: string;
  readonly redact: Redact;
  /** A turn.started before the newest turn with this key: such a key holds in the whole task. */
  readonly earlier: (state: TaskState, key: string) => Promise<string | null>;
  readonly event: (commit: string) => Promise<Recorded>;
}

export interface Plan {
  /** One for each draft, in order: what was recorded, now or before. */
  readonly results: readonly Recorded[];
  readonly written: readonly Recorded[];
  readonly bodies: readonly Buffer[];
  readonly before: TaskState;
  readonly after: TaskState;
}

export interface Asked {
  readonly before: TaskState;
  readonly by: AppendBy;
  readonly drafts: readonly EventDraft[];
}

export async function planned(to: PlanIn, { before, by, drafts }: Asked): Promise<Plan> {
  const results: Recorded[] = [];
  const written: Recorded[] = [];
  const bodies: Buffer[] = [];
  const at = to.storage.host.now();
  const tree = await emptyTree(to.storage, before.head === null && drafts.length > 0);
  let state = before;
  const add = (draft: EventDraft): Recorded => {
    const made = build(to, state, { draft, by, at, tree });
    state = fold(state, made.recorded);
    written.push(made.recorded);
    bodies.push(made.body);
    return made.recorded;
  };
  for (const draft of drafts) {
    const known = await repeated(to, state, draft, by);
    const recorded = written.find(({ commit }) => commit === known);
    if (recorded !== undefined) results.push(recorded);
    else if (known !== null) results.push(await to.event(known));
    else {
      if (draft.type !== 'lease.acquired' && isNewEpoch(state, by.lease))
        add(await acquisition(to, by.lease));
      results.push(add(draft));
    }
  }
  return { results, written, bodies, before, after: state };
}

/** Each epoch begins with lease.acquired (PROTOCOL.md 37); whoever took the lease need not remember it for each ledger. */
function isNewEpoch(state: TaskState, lease: LeaseToken | null): lease is LeaseToken {
  return lease !== null && state.head !== null && state.epochs.get(lease.lease) !== lease.epoch;
}

async function acquisition(to: PlanIn, token: LeaseToken): Promise<EventDraft> {
  const current = await readLease(to.storage, token.lease);
  if (current === null)
    throw new DurableError('lease-lost', { lease: token.lease, detail: 'its ref is gone' });
  const { holder, ttlMs } = current.record;
  return { type: 'lease.acquired', holder, ttlMs, takenOver: null, turn: null };
}

/** The commit of the event that this draft would repeat. */
async function repeated(
  to: PlanIn,
  state: TaskState,
  draft: EventDraft,
  by: AppendBy,
): Promise<string | null> {
  if (draft.type === 'task.opened') return state.opened;
  const key = keyOfDraft(state, draft, by);
  if (key === null) return null;
  const found = state.keys.get(keyIn(draft.type, key));
  if (found !== undefined || draft.type !== 'turn.started') return found ?? null;
  return to.earlier(state, key);
}

function keyOfDraft(state: TaskState, draft: EventDraft, by: AppendBy): string | null {
  const { lease = null, epoch = null } = by.lease ?? {};
  return keyOf(draft.type, draft, { task: state.task, turn: turnOf(state, draft), lease, epoch });
}

/** An event stands in the turn that is not over, unless its draft says otherwise. */
function turnOf(state: TaskState, draft: EventDraft): string | null {
  if (draft.turn !== undefined) return draft.turn;
  const { turn } = state;
  return turn !== null && (turn.state === 'open' || turn.state === 'interrupted') ? turn.id : null;
}

interface Given {
  readonly draft: EventDraft;
  readonly by: AppendBy;
  readonly at: Date;
  readonly tree: string;
}

function build(to: PlanIn, state: TaskState, given: Given): { recorded: Recorded; body: Buffer } {
  const event = eventOf(to, state, given);
  const refused = refusal(state, event);
  if (refused !== null) throw refused;
  const { message, chain } = encodeEvent(event, state.head?.chain ?? chainStart(state.task));
  const parents = state.head === null ? [] : [state.head.commit];
  const body = commitBody({ tree: given.tree, parents, message, at: given.at });
  const commit = to.storage.objects.hash('commit', body);
  return { recorded: recordedAs(event, commit, chain), body };
}

function eventOf(to: PlanIn, state: TaskState, { draft, by, at }: Given): Event {
  if (by.lease === null && EVENT_TABLE[draft.type].leaseBound) {
    throw new DurableError('usage', {
      detail: `'${draft.type}' is bound to a lease: append it with the lease's token`,
    });
  }
  const turn = turnOf(state, draft) ?? (draft.type === 'turn.started' ? freshId(to.storage.host) : null);
  const event = {
    ...fitted(draft, to.redact),
    ...(draft.type === 'turn.started' ? grounds(state) : {}),
    v: FORMAT_VERSION,
    seq: (state.head?.seq ?? 0) + 1,
    at: at.toISOString(),
    task: state.task,
    workspace: by.workspace,
    turn,
    turnStart: draft.type === 'turn.started' ? null : state.turnStart,
    agent: draft.agent ?? by.agent,
    lease: by.lease?.lease ?? null,
    epoch: by.lease?.epoch ?? null,
    key: keyOfDraft(state, draft, by),
  };
  return validated(draft.type, event, null);
}

/** What only the ledger knows about a new turn. */
function grounds(state: TaskState) {
  return {
    opened: state.opened,
    previousTurn: state.turnStart,
    previousCheckpoint: state.lastCheckpoint,
    carried: openDecisions(state),
  };
}

function recordedAs(event: Event, commit: string, chain: string): Recorded {
  return { commit, chain, event };
}

async function emptyTree(storage: Storage, write: boolean): Promise<string> {
  const body = treeBody([]);
  return write ? storage.objects.write('tree', body) : storage.objects.hash('tree', body);
}
