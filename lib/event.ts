/**
 * The data format, version 1: what a ledger holds, one schema for each event type.
 *
 * A task's ledger is a chain of commits under `refs/durable/tasks/<task>`, oldest first, one commit an event. Its
 * message is a subject for people, one line of canonical JSON, and two trailers derived from the line; only the line
 * is evidence. Contents (file bytes, exact arguments, lists that grow with the tree) are named by object id and live
 * under `refs/durable/checkpoints/<task>`.
 *
 * `EVENT_TABLE` below is the one table over all types: who appends it, whether the append verifies the lease, in
 * which turn state it is allowed, and what makes two appends the same event (its idempotency key). The README's
 * table and the schemas are held to it by test.
 *
 * Conventions: ids are lower-case base32; digests are lower-case hex SHA-256; object ids are hex in the repository's
 * format; times are ISO 8601 UTC by the writer's wall clock (for people, nothing is decided by them but `expiresAt`);
 * durations are milliseconds; text is redacted and cut at 2,000 characters, summaries at 200.
 */
import * as v from 'valibot';
import {
  text,
  summary,
  id,
  oid,
  sha,
  count,
  time,
  path,
  image,
  touched,
  kept,
  process,
  holder,
  baseline,
  carried,
  invocationState,
  fileState,
} from './event-shapes.js';

export type {
  Baseline,
  Carried,
  FileMode,
  FileState,
  HolderRecord,
  Image,
  InvocationState,
  Kept,
  ProcessRecord,
  Touched,
} from './event-shapes.js';

export const FORMAT_VERSION = 1;

const common = {
  v: v.literal(FORMAT_VERSION),
  seq: v.pipe(v.number(), v.integer(), v.minValue(1)),
  at: time,
  task: id,
  workspace: v.nullable(id),
  turn: v.nullable(id),
  /**
   * Commit of the newest turn's first event, also in events after that turn's end: folding the present state reads
   * from there. Null in turn.started itself and before any turn.
   */
  turnStart: v.nullable(oid),
  agent: v.string(),
  /** Lease id and epoch the append was verified against; null when it is not lease-bound. */
  lease: v.nullable(v.string()),
  epoch: v.nullable(count),
  /**
   * Idempotency key: the same type and key since the newest turn's start (for turn.started: in the task) is the same
   * event and is not appended twice.
   */
  key: v.nullable(v.pipe(v.string(), v.minLength(1), v.maxLength(300))),
};

const event = <const T extends string, E extends v.ObjectEntries>(type: T, entries: E) =>
  v.strictObject({ ...common, type: v.literal(type), ...entries });

export const SCHEMAS = {
  'task.opened': event('task.opened', { objective: text, standing: v.boolean() }),
  'turn.started': event('turn.started', {
    objective: text,
    holder,
    session: v.nullable(v.string()),
    baseline,
    instructions: v.array(v.strictObject({ path, digest: sha })),
    checkpoint: v.nullable(oid),
    /** Commit of `task.opened`. */
    opened: oid,
    /** Commit of the previous turn's first event in this task. */
    previousTurn: v.nullable(oid),
    /** The task's newest checkpoint before this turn. */
    previousCheckpoint: v.nullable(oid),
    carried: v.array(carried),
    readOnly: v.boolean(),
  }),
  'turn.finished': event('turn.finished', {
    outcome: v.picklist(['completed', 'failed', 'abandoned']),
    summary: text,
    /** The agent's final text, whole. */
    result: v.nullable(kept),
    /** What a program claims of the turn (lib/decisions/claim-shape.ts). */
    claim: v.nullable(kept),
    exit: v.nullable(v.number()),
    checkpoint: v.nullable(oid),
    survivors: v.array(process),
    /** The agent's own transcript and its length at the end, where the agent names one. Absent in older events. */
    transcript: v.optional(v.strictObject({ path: v.string(), bytes: count })),
  }),
  'turn.interrupted': event('turn.interrupted', {
    detectedBy: v.picklist(['keeper', 'recover', 'library']),
    reason: summary,
    survivors: v.array(process),
  }),
  'turn.recovered': event('turn.recovered', {
    /** 'resume' lets the same turn go on under the new epoch; after the others it is over. */
    action: v.picklist(['keep', 'roll-back', 'roll-forward', 'resume']),
    /** The checkpoint just before the repair: restoring it undoes the repair. */
    checkpoint: v.nullable(oid),
    /** The recovery report this repair acted on, canonical JSON. */
    report: kept,
    invocations: v.array(v.strictObject({ id, state: invocationState })),
    files: v.strictObject(v.entriesFromList(fileState.options, count)),
    restored: count,
    removed: count,
    ended: v.array(process),
  }),
  'invocation.proposed': event('invocation.proposed', {
    invocation: id,
    /** Position in the turn, from 0: what a replay compares. From 1,000,000: of a process that joined the turn. */
    index: count,
    tool: v.string(),
    summary,
    cwd: v.string(),
    argsDigest: sha,
    args: v.nullable(kept),
    mutates: v.boolean(),
    paths: v.array(touched),
    /** The same list among the contents when it is longer than 64. */
    pathList: v.nullable(kept),
    /** Snapshot before a tool whose effect cannot be told beforehand. */
    checkpoint: v.nullable(oid),
  }),
  'invocation.started': event('invocation.started', {
    invocation: id,
    approval: v.nullable(id),
    process: v.nullable(process),
  }),
  'invocation.finished': event('invocation.finished', {
    invocation: id,
    state: v.picklist(['finished', 'failed', 'denied']),
    summary,
    exit: v.nullable(v.number()),
    resultDigest: v.nullable(sha),
    result: v.nullable(kept),
    checkpoint: v.nullable(oid),
    durationMs: v.nullable(v.number()),
    /** How it was settled when nobody saw it end. */
    settled: v.nullable(v.picklist(['accepted', 'retried', 'found'])),
    /**
     * What was found, just after the call, at the paths it named without saying what it would write; the bytes are among the contents.
     * Absent where there are none, and in older events.
     */
    left: v.optional(v.array(v.strictObject({ path, image }))),
  }),
  'approval.requested': event('approval.requested', {
    approval: id,
    invocation: v.nullable(id),
    tool: v.string(),
    summary,
    args: kept,
    /** The words of the command that an approval starts, as a JSON list; null when it starts none. */
    command: v.nullable(kept),
    cwd: v.string(),
    fingerprint: sha,
    checkpoint: v.nullable(oid),
    expiresAt: v.nullable(time),
    invalidOnChange: v.boolean(),
  }),
  'approval.resolved': event('approval.resolved', {
    approval: id,
    /** The last two are no answers: recorded by whoever finds first that the request has lapsed. */
    decision: v.picklist(['approved', 'rejected', 'expired', 'invalidated']),
    by: v.string(),
    feedback: v.nullable(kept),
    feedbackSummary: text,
  }),
  'approval.consumed': event('approval.consumed', {
    approval: id,
    invocation: id,
    use: v.picklist(['run', 'returned']),
  }),
  'steering.received': event('steering.received', { text, content: v.nullable(kept) }),
  'usage.recorded': event('usage.recorded', {
    invocation: v.nullable(id),
    model: v.nullable(v.string()),
    inputTokens: v.nullable(count),
    outputTokens: v.nullable(count),
    cacheTokens: v.nullable(count),
    costUsd: v.nullable(v.number()),
    wallMs: v.nullable(v.number()),
  }),
  'checkpoint.taken': event('checkpoint.taken', {
    checkpoint: oid,
    tree: oid,
    message: text,
    files: count,
    changed: count,
    skipped: count,
    skippedList: v.array(
      v.strictObject({
        path,
        why: v.picklist(['too-large', 'nested-repository', 'unreadable', 'special']),
        digest: v.nullable(sha),
      }),
    ),
    reason: v.picklist([
      'manual',
      'turn-start',
      'turn-end',
      'before-restore',
      'before-repair',
      'after-death',
      'before-tool',
      'after-tool',
    ]),
  }),
  'transaction.prepared': event('transaction.prepared', {
    transaction: id,
    invocation: v.nullable(id),
    /** 'edit' is the turn's own intent; 'restore' and 'repair' put images back. */
    purpose: v.picklist(['edit', 'restore', 'repair']),
    /** Contents commit that holds every before and after blob and the manifest. */
    contents: oid,
    manifest: kept,
    paths: count,
  }),
  'transaction.committed': event('transaction.committed', {
    transaction: id,
    by: v.picklist(['writer', 'recovery']),
  }),
  'transaction.rolled-back': event('transaction.rolled-back', {
    transaction: id,
    by: v.picklist(['writer', 'recovery']),
    reason: summary,
  }),
  'conflict.detected': event('conflict.detected', {
    conflict: id,
    path,
    /** What the write was derived from; its bytes are kept where anybody had them. */
    base: image,
    /** What was found: a file, nothing, or what git has no image for. */
    theirs: v.union([image, v.picklist(['directory', 'special'])]),
    /** What was to come; 'unknown' where its bytes could not be told. */
    mine: v.union([image, v.literal('unknown')]),
    why: v.picklist(['changed-since-read', 'late-write', 'lower-epoch']),
  }),
  'conflict.resolved': event('conflict.resolved', {
    conflict: id,
    choice: v.picklist(['use-latest', 'keep-mine']),
    by: v.string(),
    /** The transaction that carries 'keep-mine' out: rolled back, the conflict is open again. Null where nothing had to be written. */
    transaction: v.nullable(id),
  }),
  'process.started': event('process.started', {
    process,
    invocation: v.nullable(id),
    background: v.boolean(),
  }),
  'process.reconciled': event('process.reconciled', {
    process,
    outcome: v.picklist(['gone', 'stopped', 'left-running']),
  }),
  'conversation.rewound': event('conversation.rewound', { toSeq: count, turns: v.array(id), reason: text }),
  'workspace.restored': event('workspace.restored', {
    checkpoint: oid,
    /** The checkpoint just before: restoring it undoes this. */
    undo: oid,
    transaction: v.nullable(id),
    paths: v.nullable(v.array(path)),
    restored: count,
    removed: count,
    skipped: count,
  }),
  'git.observed': event('git.observed', {
    what: summary,
    ref: v.nullable(v.string()),
    before: v.nullable(v.string()),
    after: v.nullable(v.string()),
    process: v.nullable(process),
  }),
  'lease.acquired': event('lease.acquired', {
    holder,
    ttlMs: count,
    /** The epoch that was taken over, and how its holder's death was known; null when the lease was free. */
    takenOver: v.nullable(v.strictObject({ epoch: count, proof: summary })),
  }),
  'lease.lost': event('lease.lost', { lostEpoch: count, reason: summary }),
  'lease.released': event('lease.released', {}),
  'agent.switched': event('agent.switched', {
    from: v.string(),
    to: v.string(),
    session: v.nullable(v.string()),
  }),
} as const;

export type EventType = keyof typeof SCHEMAS;
export type EventOf<T extends EventType> = v.InferOutput<(typeof SCHEMAS)[T]>;
/** An event, decoded: of any type, or of those named. */
export type Event<T extends EventType = EventType> = { [K in T]: EventOf<K> }[T];

/** Fields of turn.started that the ledger knows itself. */
type Filled = 'opened' | 'previousTurn' | 'previousCheckpoint' | 'carried';

/**
 * What the caller of an append says. The ledger adds v, seq, at, task, workspace, turnStart, lease, epoch and what
 * `Filled` names; `turn` defaults to the open turn, `key` to the rule in EVENT_TABLE, `agent` to the appender's.
 */
export type DraftOf<T extends EventType> = Omit<EventOf<T>, keyof typeof common | Filled> & {
  readonly type: T;
  readonly turn?: string | null;
  readonly key?: string | null;
  readonly agent?: string;
};
export type EventDraft = { [T in EventType]: DraftOf<T> }[EventType];

/** An event where it stands: its commit and its chain value. */
export interface Recorded<T extends EventType = EventType> {
  readonly commit: string;
  readonly chain: string;
  readonly event: Event<T>;
}

/** Narrows a recorded event to one type. */
export function isOf<T extends EventType>(recorded: Recorded, type: T): recorded is Recorded<T> {
  return recorded.event.type === type;
}

export type Appender = 'anyone' | 'holder' | 'keeper' | 'recovery' | 'person' | 'observer';
/** Turn state in which an event may be appended: 'none' = no open turn. */
export type Allowed = 'any' | 'open' | 'none' | 'open-or-interrupted' | 'interrupted';

export interface EventRule {
  readonly appends: Appender;
  readonly leaseBound: boolean;
  readonly allowed: Allowed;
  /**
   * What makes two appends one event: fields of the event, or, where the caller gives it, what it is. '-': each append is
   * a new event, or (approval.resolved, conflict.resolved) a second one is refused.
   */
  readonly key: string;
}

export const EVENT_TABLE: { readonly [T in EventType]: EventRule } = {
  'task.opened': { appends: 'anyone', leaseBound: false, allowed: 'none', key: 'task' },
  'turn.started': { appends: 'holder', leaseBound: true, allowed: 'none', key: 'turn key' },
  'turn.finished': { appends: 'holder', leaseBound: true, allowed: 'open', key: 'turn' },
  'turn.interrupted': { appends: 'keeper', leaseBound: true, allowed: 'open', key: 'turn, epoch' },
  'turn.recovered': {
    appends: 'recovery',
    leaseBound: true,
    allowed: 'open-or-interrupted',
    key: 'turn, epoch',
  },
  'invocation.proposed': { appends: 'holder', leaseBound: true, allowed: 'open', key: 'call id' },
  'invocation.started': { appends: 'holder', leaseBound: true, allowed: 'open', key: 'invocation, epoch' },
  'invocation.finished': { appends: 'holder', leaseBound: true, allowed: 'open', key: 'invocation' },
  'approval.requested': { appends: 'holder', leaseBound: true, allowed: 'open', key: 'approval' },
  'approval.resolved': { appends: 'person', leaseBound: false, allowed: 'any', key: '-' },
  'approval.consumed': { appends: 'holder', leaseBound: true, allowed: 'open', key: 'approval, invocation' },
  'steering.received': { appends: 'holder', leaseBound: true, allowed: 'open', key: 'message id' },
  'usage.recorded': { appends: 'holder', leaseBound: true, allowed: 'open', key: 'call id' },
  'checkpoint.taken': { appends: 'anyone', leaseBound: false, allowed: 'any', key: 'checkpoint' },
  'transaction.prepared': { appends: 'holder', leaseBound: true, allowed: 'any', key: 'transaction' },
  'transaction.committed': { appends: 'holder', leaseBound: true, allowed: 'any', key: 'transaction' },
  'transaction.rolled-back': { appends: 'holder', leaseBound: true, allowed: 'any', key: 'transaction' },
  'conflict.detected': { appends: 'anyone', leaseBound: false, allowed: 'any', key: 'conflict' },
  'conflict.resolved': { appends: 'person', leaseBound: false, allowed: 'any', key: '-' },
  'process.started': { appends: 'holder', leaseBound: true, allowed: 'open', key: 'pid, start' },
  'process.reconciled': { appends: 'anyone', leaseBound: false, allowed: 'any', key: 'pid, start, outcome' },
  'conversation.rewound': { appends: 'person', leaseBound: false, allowed: 'any', key: '-' },
  'workspace.restored': { appends: 'holder', leaseBound: true, allowed: 'any', key: 'undo' },
  'git.observed': { appends: 'observer', leaseBound: false, allowed: 'any', key: '-' },
  'lease.acquired': { appends: 'holder', leaseBound: true, allowed: 'any', key: 'lease, epoch' },
  'lease.lost': { appends: 'observer', leaseBound: false, allowed: 'any', key: 'lost epoch' },
  'lease.released': { appends: 'holder', leaseBound: true, allowed: 'any', key: 'lease, epoch' },
  'agent.switched': { appends: 'holder', leaseBound: true, allowed: 'any', key: '-' },
};
