/**
 * The shapes that a fold of a ledger has: what is true of a task now, by its events alone.
 *
 * Everything here is immutable and rebuilt from events; nothing is stored. A state covers the newest turn (from its
 * `turn.started` to the head) and what that turn's first event carried over from earlier ones. "Interrupted" is said
 * here only when an event says so: an open turn whose holder is dead is judged by lib/recovery, with the lease.
 */
import type { Event, EventType, Kept, ProcessRecord, Recorded, Touched } from '../event.js';

export interface LedgerHead {
  readonly commit: string;
  readonly seq: number;
  /** SHA-256 chain value of this event, 64 hex digits. */
  readonly chain: string;
}

export interface TaskState {
  readonly task: string;
  /** Empty before task.opened. */
  readonly objective: string;
  readonly standing: boolean;
  /** Commit of task.opened; null in an empty ledger. */
  readonly opened: string | null;
  readonly head: LedgerHead | null;
  /** The newest turn, whatever its state. */
  readonly turn: TurnState | null;
  /** Commit of the newest turn's first event. */
  readonly turnStart: string | null;
  /** `type key` (see `keyIn`) to the commit of the event, since the newest turn's start. */
  readonly keys: ReadonlyMap<string, string>;
  /** By approval id, requested since the turn's start or carried, oldest first. */
  readonly approvals: ReadonlyMap<string, ApprovalState>;
  readonly conflicts: ReadonlyMap<string, ConflictState>;
  /** All since the turn's start, in or outside the turn, and carried ones without an end. */
  readonly transactions: ReadonlyMap<string, TransactionState>;
  /** The newest checkpoint of the task: a commit under refs/durable/checkpoints/<task>. */
  readonly lastCheckpoint: string | null;
  readonly rewinds: readonly Recorded<'conversation.rewound'>[];
  /** Lease id to the newest epoch named since the turn's start. */
  readonly epochs: ReadonlyMap<string, number>;
}

/** open → finished, or open → (interrupted →) recovered; `turn.recovered` with action 'resume' leads back to open. */
export type TurnPhase = 'open' | 'finished' | 'interrupted' | 'recovered';

export interface TurnState {
  readonly id: string;
  readonly state: TurnPhase;
  readonly started: Recorded<'turn.started'>;
  /** Time of the newest event that names this turn, ISO 8601. */
  readonly lastEventAt: string;
  /** In the order they were proposed. */
  readonly invocations: readonly InvocationFold[];
  readonly transactions: readonly TransactionState[];
  readonly processes: readonly ProcessFold[];
  readonly checkpoints: readonly CheckpointFold[];
  readonly restores: readonly Recorded<'workspace.restored'>[];
  /** The newest of each; earlier ones of a resumed turn stay in the ledger. */
  readonly interrupted: Recorded<'turn.interrupted'> | null;
  readonly recovered: Recorded<'turn.recovered'> | null;
  readonly finished: Recorded<'turn.finished'> | null;
}

export interface InvocationFold {
  readonly id: string;
  /** Of the event that proposed it: calls and transactions are put in one order by it. */
  readonly seq: number;
  readonly index: number;
  readonly tool: string;
  readonly summary: string;
  readonly argsDigest: string;
  readonly args: Kept | null;
  readonly cwd: string;
  readonly mutates: boolean;
  readonly paths: readonly Touched[];
  readonly pathList: Kept | null;
  /** Snapshot before a tool whose effect cannot be told beforehand. */
  readonly checkpoint: string | null;
  readonly key: string | null;
  readonly state: 'proposed' | 'started' | 'finished' | 'failed' | 'denied';
  /** The approval it was started under. */
  readonly approval: string | null;
  readonly process: ProcessRecord | null;
  readonly proposedAt: string;
  readonly startedAt: string | null;
  readonly finished: Recorded<'invocation.finished'> | null;
}

export type ApprovalPhase = 'pending' | 'approved' | 'rejected' | 'expired' | 'invalidated' | 'consumed';

export interface ApprovalState {
  readonly id: string;
  readonly state: ApprovalPhase;
  readonly requested: Recorded<'approval.requested'>;
  readonly resolved: Recorded<'approval.resolved'> | null;
  readonly consumed: Recorded<'approval.consumed'> | null;
  /** The rewind that invalidated it, pending or answered. */
  readonly rewound: Recorded<'conversation.rewound'> | null;
  /** Requested in an earlier turn. */
  readonly carried: boolean;
}

export interface ConflictState {
  readonly id: string;
  readonly state: 'open' | 'use-latest' | 'keep-mine';
  readonly detected: Recorded<'conflict.detected'>;
  readonly resolved: Recorded<'conflict.resolved'> | null;
  readonly carried: boolean;
}

export interface TransactionState {
  readonly id: string;
  readonly prepared: Recorded<'transaction.prepared'>;
  readonly state: 'prepared' | 'committed' | 'rolled-back';
  readonly carried: boolean;
}

export interface ProcessFold {
  readonly process: ProcessRecord;
  readonly invocation: string | null;
  readonly background: boolean;
  readonly startedAt: string;
  readonly outcome: 'gone' | 'stopped' | 'left-running' | null;
}

export interface CheckpointFold {
  readonly commit: string;
  readonly tree: string;
  readonly reason: Event<'checkpoint.taken'>['reason'];
  readonly at: string;
  readonly seq: number;
}

/** How `TaskState.keys` names an event. */
export function keyIn(type: EventType, key: string): string {
  return `${type} ${key}`;
}
