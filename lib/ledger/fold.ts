/**
 * State of a task by its events alone: pure, total over all event types, never throws on a decoded event.
 *
 *     const folding = new Folding(initialState(task));
 *     for (const recorded of events) folding.add(recorded);
 *     const state = folding.state();
 *
 * `fold` and `foldAll` are the same in one call. A fold may begin at a task's first event, or at its newest
 * `turn.started` from a state seeded by `seededState` with what that event carried over: both give the same state,
 * because `turn.started` forgets all that is not named in its `carried` (held by test). An event that fits nothing (an
 * answer to an unknown approval) changes nothing but the head: evidence is judged by verify, not here.
 */
import type { Carried, EventType, Recorded } from '../event.js';
import { carriedOver, isUnused } from './carried.js';
import { KeyIndex } from './key-index.js';
import {
  keyIn,
  type ApprovalPhase,
  type ApprovalState,
  type ConflictState,
  type InvocationFold,
  type LedgerHead,
  type TaskState,
  type TransactionState,
} from './state.js';
import {
  begun,
  changeCall,
  frozen,
  proposed,
  proposeIn,
  reconcileIn,
  thawed,
  type TurnFolding,
} from './turn-fold.js';

export function initialState(task: string): TaskState {
  return {
    task,
    objective: '',
    standing: false,
    opened: null,
    head: null,
    turn: null,
    turnStart: null,
    keys: KeyIndex.empty(),
    approvals: new Map(),
    conflicts: new Map(),
    transactions: new Map(),
    lastCheckpoint: null,
    rewinds: [],
    epochs: new Map(),
  };
}

/** Where to begin a fold at a `turn.started`: `opened` is the task's first event, `carried` what that event names. */
export function seededState(
  task: string,
  opened: Recorded<'task.opened'>,
  carried: readonly Recorded[],
): TaskState {
  return foldAll(initialState(task), [opened, ...carried]);
}

export function fold(state: TaskState, recorded: Recorded): TaskState {
  return foldAll(state, [recorded]);
}

export function foldAll(state: TaskState, events: Iterable<Recorded>): TaskState {
  const folding = new Folding(state);
  for (const recorded of events) folding.add(recorded);
  return folding.state();
}

/** A fold in progress: owns its containers, so that adding costs the event and not the state. */
export class Folding {
  readonly #task: string;
  #objective: string;
  #standing: boolean;
  #opened: string | null;
  #head: LedgerHead | null;
  #turn: TurnFolding | null;
  #turnStart: string | null;
  #keys: KeyIndex;
  #approvals: Map<string, ApprovalState>;
  #conflicts: Map<string, ConflictState>;
  #transactions: Map<string, TransactionState>;
  #lastCheckpoint: string | null;
  #rewinds: Recorded<'conversation.rewound'>[];
  #epochs: Map<string, number>;

  constructor(state: TaskState) {
    this.#task = state.task;
    this.#objective = state.objective;
    this.#standing = state.standing;
    this.#opened = state.opened;
    this.#head = state.head;
    this.#turn = state.turn === null ? null : thawed(state.turn);
    this.#turnStart = state.turnStart;
    this.#keys = KeyIndex.from(state.keys);
    this.#approvals = new Map(state.approvals);
    this.#conflicts = new Map(state.conflicts);
    this.#transactions = new Map(state.transactions);
    this.#lastCheckpoint = state.lastCheckpoint;
    this.#rewinds = [...state.rewinds];
    this.#epochs = new Map(state.epochs);
  }

  /** The state after all that was added. The folding must not be used afterwards. */
  state(): TaskState {
    return {
      task: this.#task,
      objective: this.#objective,
      standing: this.#standing,
      opened: this.#opened,
      head: this.#head,
      turn: this.#turn === null ? null : frozen(this.#turn, this.#transactions),
      turnStart: this.#turnStart,
      keys: this.#keys,
      approvals: this.#approvals,
      conflicts: this.#conflicts,
      transactions: this.#transactions,
      lastCheckpoint: this.#lastCheckpoint,
      rewinds: this.#rewinds,
      epochs: this.#epochs,
    };
  }

  add(recorded: Recorded): void {
    const { event, commit, chain } = recorded;
    this.#reduce(event.type, recorded);
    this.#head = { commit, seq: event.seq, chain };
    if (event.key !== null) this.#keys = this.#keys.with(keyIn(event.type, event.key), commit);
    if (event.lease !== null && event.epoch !== null) this.#epochs.set(event.lease, event.epoch);
    if (this.#turn !== null && event.turn === this.#turn.id) this.#turn.lastEventAt = event.at;
  }

  #reduce<T extends EventType>(type: T, recorded: Recorded<T>): void {
    this.#reducers[type](recorded);
  }

  readonly #reducers: { readonly [T in EventType]: (recorded: Recorded<T>) => void } = {
    'task.opened': ({ commit, event }) => {
      this.#objective = event.objective;
      this.#standing = event.standing;
      this.#opened = commit;
    },
    'turn.started': (recorded) => {
      this.#start(recorded);
    },
    'turn.finished': (recorded) => {
      this.#inTurn(recorded, (turn) => {
        turn.state = 'finished';
        turn.finished = recorded;
      });
    },
    'turn.interrupted': (recorded) => {
      this.#inTurn(recorded, (turn) => {
        turn.state = 'interrupted';
        turn.interrupted = recorded;
      });
    },
    'turn.recovered': (recorded) => {
      this.#inTurn(recorded, (turn) => {
        turn.state = recorded.event.action === 'resume' ? 'open' : 'recovered';
        turn.recovered = recorded;
      });
    },
    'invocation.proposed': (recorded) => {
      this.#inTurn(recorded, (turn) => {
        proposeIn(turn.invocations, proposed(recorded));
      });
    },
    'invocation.started': ({ event }) => {
      this.#invocation(event.invocation, (invocation) => ({
        ...invocation,
        state: 'started',
        approval: event.approval,
        process: event.process,
        startedAt: event.at,
      }));
    },
    'invocation.finished': (recorded) => {
      this.#invocation(recorded.event.invocation, (invocation) => ({
        ...invocation,
        state: recorded.event.state,
        finished: recorded,
      }));
    },
    'approval.requested': (recorded) => {
      this.#approvals.set(recorded.event.approval, requested(recorded));
    },
    'approval.resolved': (recorded) => {
      const { approval, decision } = recorded.event;
      // What was approved and not used may still expire or be invalidated.
      const ends = decision === 'expired' || decision === 'invalidated';
      this.#approval(approval, ends ? ['pending', 'approved'] : ['pending'], {
        state: decision,
        resolved: recorded,
      });
    },
    'approval.consumed': (recorded) => {
      this.#approval(recorded.event.approval, ['approved', 'rejected'], {
        state: 'consumed',
        consumed: recorded,
      });
    },
    'steering.received': () => undefined,
    'usage.recorded': () => undefined,
    'checkpoint.taken': ({ event }) => {
      this.#lastCheckpoint = event.checkpoint;
      if (event.turn === null || event.turn !== this.#turn?.id) return;
      const { checkpoint: commit, tree, reason, at, seq } = event;
      this.#turn.checkpoints.push({ commit, tree, reason, at, seq });
    },
    'transaction.prepared': (recorded) => {
      const id = recorded.event.transaction;
      this.#transactions.set(id, { id, prepared: recorded, state: 'prepared', carried: false });
    },
    'transaction.committed': ({ event }) => {
      this.#settle(event.transaction, 'committed');
    },
    'transaction.rolled-back': ({ event }) => {
      this.#settle(event.transaction, 'rolled-back');
    },
    'conflict.detected': (recorded) => {
      const id = recorded.event.conflict;
      this.#conflicts.set(id, { id, state: 'open', detected: recorded, resolved: null, carried: false });
    },
    'conflict.resolved': (recorded) => {
      const conflict = this.#conflicts.get(recorded.event.conflict);
      if (conflict?.state !== 'open') return;
      this.#conflicts.set(conflict.id, { ...conflict, state: recorded.event.choice, resolved: recorded });
    },
    'process.started': ({ event }) => {
      const { process, invocation, background, at } = event;
      this.#turn?.processes.push({ process, invocation, background, startedAt: at, outcome: null });
    },
    'process.reconciled': ({ event }) => {
      if (this.#turn !== null) reconcileIn(this.#turn.processes, event);
    },
    'conversation.rewound': (recorded) => {
      this.#rewinds.push(recorded);
      for (const approval of this.#approvals.values()) {
        if (approval.requested.event.seq <= recorded.event.toSeq || !isUnused(approval)) continue;
        this.#approvals.set(approval.id, { ...approval, state: 'invalidated', rewound: recorded });
      }
    },
    'workspace.restored': (recorded) => {
      this.#inTurn(recorded, (turn) => turn.restores.push(recorded));
    },
    'git.observed': () => undefined,
    'lease.acquired': () => undefined,
    'lease.lost': () => undefined,
    'lease.released': () => undefined,
    'agent.switched': () => undefined,
  };

  #start(recorded: Recorded<'turn.started'>): void {
    const { event, commit } = recorded;
    const named = (kind: Carried['kind']): string[] =>
      event.carried.filter((carried) => carried.kind === kind).map((carried) => carried.id);
    this.#approvals = carriedOver(this.#approvals, named('approval'));
    this.#conflicts = carriedOver(this.#conflicts, named('conflict'));
    this.#transactions = carriedOver(this.#transactions, named('transaction'));
    this.#keys = KeyIndex.empty();
    this.#epochs = new Map();
    this.#rewinds = [];
    this.#turnStart = commit;
    this.#opened = event.opened;
    this.#lastCheckpoint = event.checkpoint ?? event.previousCheckpoint;
    this.#turn = event.turn === null ? null : begun(event.turn, recorded);
  }

  #inTurn(recorded: Recorded, change: (turn: TurnFolding) => void): void {
    if (this.#turn !== null && recorded.event.turn === this.#turn.id) change(this.#turn);
  }

  #invocation(id: string, change: (call: InvocationFold) => InvocationFold): void {
    if (this.#turn !== null) changeCall(this.#turn.invocations, id, change);
  }

  #approval(id: string, from: readonly ApprovalPhase[], change: Partial<ApprovalState>): void {
    const approval = this.#approvals.get(id);
    if (approval === undefined || !from.includes(approval.state)) return;
    this.#approvals.set(id, { ...approval, ...change });
  }

  #settle(id: string, state: TransactionState['state']): void {
    const transaction = this.#transactions.get(id);
    if (transaction?.state !== 'prepared') return;
    this.#transactions.set(id, { ...transaction, state });
    if (state === 'rolled-back') this.#reopen(id);
  }

  /** 'keep-mine' that was taken back decides nothing. */
  #reopen(transaction: string): void {
    for (const conflict of this.#conflicts.values()) {
      if (conflict.resolved?.event.transaction !== transaction) continue;
      this.#conflicts.set(conflict.id, { ...conflict, state: 'open', resolved: null });
    }
  }
}

function requested(recorded: Recorded<'approval.requested'>): ApprovalState {
  const id = recorded.event.approval;
  return {
    id,
    state: 'pending',
    requested: recorded,
    resolved: null,
    consumed: null,
    rewound: null,
    carried: false,
  };
}
