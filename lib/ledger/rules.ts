/**
 * What an append must hold to, by event type: EVENT_TABLE's columns as code, and the rules of decisions.
 *
 *     key      which earlier event this draft would repeat (PROTOCOL.md 7)
 *     refusal  why it may not be appended in this state, as the error to throw; null when it may
 *
 * Pure; run again after each failed swap, because the state is another one then (PROTOCOL.md 19 to 24).
 */
import { digest } from '../canonical.js';
import { DurableError } from '../errors.js';
import { EVENT_TABLE, type DraftOf, type Event, type EventType } from '../event.js';
import { starterOf } from './starter.js';
import type { ApprovalState, ConflictState, TaskState } from './state.js';

/** What a key is made of, beside the draft. */
export interface KeyContext {
  readonly task: string;
  readonly turn: string | null;
  readonly lease: string | null;
  readonly epoch: number | null;
}

const KEY_MAX = 300;

/** The key to store: the caller's, else the one EVENT_TABLE derives, else null. Longer than 300: its digest. */
export function keyOf<T extends EventType>(type: T, draft: DraftOf<T>, context: KeyContext): string | null {
  const key = draft.key === undefined ? KEYS[type](draft, context) : draft.key;
  return key !== null && key.length > KEY_MAX ? `sha256:${digest(key)}` : key;
}

const none = (): null => null;
const ofEpoch = (name: string | null, context: KeyContext): string =>
  `${name ?? ''}@${context.lease ?? ''}/${String(context.epoch ?? 0)}`;

const KEYS: { readonly [T in EventType]: (draft: DraftOf<T>, context: KeyContext) => string | null } = {
  'task.opened': (_, { task }) => task,
  'turn.started': none,
  'turn.finished': (_, { turn }) => turn,
  'turn.interrupted': (_, context) => ofEpoch(context.turn, context),
  'turn.recovered': (_, context) => ofEpoch(context.turn, context),
  'invocation.proposed': none,
  'invocation.started': (draft, context) => ofEpoch(draft.invocation, context),
  'invocation.finished': (draft) => draft.invocation,
  'approval.requested': (draft) => draft.approval,
  'approval.resolved': none,
  'approval.consumed': (draft) => `${draft.approval} ${draft.invocation}`,
  'steering.received': none,
  'usage.recorded': none,
  'checkpoint.taken': (draft) => draft.checkpoint,
  'transaction.prepared': (draft) => draft.transaction,
  'transaction.committed': (draft) => draft.transaction,
  'transaction.rolled-back': (draft) => draft.transaction,
  'conflict.detected': (draft) => draft.conflict,
  'conflict.resolved': none,
  'process.started': ({ process }) => `${String(process.pid)} ${process.start}`,
  'process.reconciled': ({ process, outcome }) => `${String(process.pid)} ${process.start} ${outcome}`,
  'conversation.rewound': none,
  'workspace.restored': (draft) => draft.undo,
  'git.observed': none,
  'lease.acquired': (_, context) => ofEpoch(null, context),
  'lease.lost': (draft) => String(draft.lostEpoch),
  'lease.released': (_, context) => ofEpoch(null, context),
  'agent.switched': none,
};

/**
 * Errors: 'recovery-needed' and 'turn-claimed' (a turn is in the way), 'no-turn', 'turn-closed', 'approval-settled',
 * 'conflict-settled', 'not-found'.
 */
export function refusal(state: TaskState, event: Event): DurableError | null {
  return byTurn(state, event) ?? byDecision(state, event);
}

function byTurn(state: TaskState, event: Event): DurableError | null {
  const { allowed } = EVENT_TABLE[event.type];
  if (allowed === 'any') return null;
  if (allowed === 'none') return standsInTheWay(state, event);
  const { turn } = state;
  if (turn === null) return new DurableError('no-turn', { detail: `task ${state.task} has had no turn` });
  if (event.turn !== turn.id) {
    return new DurableError('turn-closed', {
      turn: event.turn ?? 'none',
      state: `not ${turn.id}, the task's newest`,
    });
  }
  const fits = turn.state === 'open' || (turn.state === 'interrupted' && allowed === 'open-or-interrupted');
  return fits ? null : new DurableError('turn-closed', { turn: turn.id, state: turn.state });
}

function standsInTheWay(state: TaskState, event: Event): DurableError | null {
  const { turn, task } = state;
  if (turn?.state === 'interrupted') {
    const { objective } = turn.started.event;
    return new DurableError('recovery-needed', { task, turn: turn.id, objective });
  }
  if (turn?.state !== 'open') return null;
  return new DurableError('turn-claimed', {
    key: event.key ?? '',
    task,
    turn: turn.id,
    holder: starterOf(turn.started.event, Date.parse(event.at)),
    state: 'open',
  });
}

function byDecision(state: TaskState, event: Event): DurableError | null {
  switch (event.type) {
    case 'approval.resolved':
      return answering(state.approvals.get(event.approval), event);
    case 'approval.consumed':
      return consuming(state.approvals.get(event.approval), event);
    case 'conflict.resolved':
      return settling(state, event);
    case 'conversation.rewound':
      // Only what is recorded already can be gone back to.
      return event.toSeq < event.seq
        ? null
        : new DurableError('not-found', { what: 'event', id: String(event.toSeq) });
    case 'invocation.started':
    case 'invocation.finished':
      return state.turn?.invocations.some(({ id }) => id === event.invocation) === true
        ? null
        : new DurableError('not-found', { what: 'invocation', id: event.invocation });
    default:
      return null;
  }
}

/** PROTOCOL.md 21. An approved request that was not used may still expire or be invalidated. */
function answering(
  approval: ApprovalState | undefined,
  event: Event<'approval.resolved'>,
): DurableError | null {
  if (approval === undefined) return new DurableError('not-found', { what: 'approval', id: event.approval });
  const ends = event.decision === 'expired' || event.decision === 'invalidated';
  if (approval.state === 'pending' || (ends && approval.state === 'approved')) return null;
  return settled(approval);
}

/** PROTOCOL.md 22: an approval lets one call run, a rejection is returned to one call. */
function consuming(
  approval: ApprovalState | undefined,
  event: Event<'approval.consumed'>,
): DurableError | null {
  if (approval === undefined) return new DurableError('not-found', { what: 'approval', id: event.approval });
  const needed = event.use === 'run' ? 'approved' : 'rejected';
  return approval.state === needed ? null : settled(approval);
}

/** The refusal of an answer, or a use, that comes second: who was first, and when; who has used it since is said besides. */
export function settled({ id, state, consumed, rewound, resolved, requested }: ApprovalState): DurableError {
  const end =
    rewound === null
      ? (resolved?.event ?? { decision: state, by: 'nobody', at: requested.event.at })
      : { decision: state, by: 'a rewind', at: rewound.event.at };
  const used = consumed === null ? null : { by: consumed.event.agent, at: consumed.event.at };
  const { decision, by, at } = end;
  return new DurableError('approval-settled', { approval: id, state, decision, by, at, used });
}

function settling(state: TaskState, event: Event<'conflict.resolved'>): DurableError | null {
  const conflict = state.conflicts.get(event.conflict);
  if (conflict === undefined) return new DurableError('not-found', { what: 'conflict', id: event.conflict });
  return conflict.resolved === null ? null : conflictSettled(conflict);
}

/** The refusal of a second answer: who was first, and when. */
export function conflictSettled({ id, resolved, detected }: ConflictState): DurableError {
  const { by, at } = resolved?.event ?? { by: 'nobody', at: detected.event.at };
  return new DurableError('conflict-settled', {
    conflict: id,
    choice: resolved?.event.choice ?? 'open',
    by,
    at,
  });
}
