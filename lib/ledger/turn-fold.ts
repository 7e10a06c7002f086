/**
 * The part of a fold that is one turn: its calls, processes and checkpoints, as containers that a fold in progress owns.
 */
import type { Event, Recorded } from '../event.js';
import type { InvocationFold, ProcessFold, TransactionState, TurnState } from './state.js';

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer E)[] ? E[] : T[K] };
export type TurnFolding = Mutable<Omit<TurnState, 'transactions'>>;

/** A turn at its first event. */
export function begun(id: string, started: Recorded<'turn.started'>): TurnFolding {
  return {
    id,
    state: 'open',
    started,
    lastEventAt: started.event.at,
    invocations: [],
    processes: [],
    checkpoints: [],
    restores: [],
    interrupted: null,
    recovered: null,
    finished: null,
  };
}

/** A copy whose containers may be changed. */
export function thawed(turn: TurnState): TurnFolding {
  return {
    ...turn,
    invocations: [...turn.invocations],
    processes: [...turn.processes],
    checkpoints: [...turn.checkpoints],
    restores: [...turn.restores],
  };
}

/** The turn as a state holds it. */
export function frozen(turn: TurnFolding, transactions: ReadonlyMap<string, TransactionState>): TurnState {
  return {
    ...turn,
    transactions: [...transactions.values()].filter(({ prepared }) => prepared.event.turn === turn.id),
  };
}

export function proposed({ event }: Recorded<'invocation.proposed'>): InvocationFold {
  return {
    id: event.invocation,
    seq: event.seq,
    index: event.index,
    tool: event.tool,
    summary: event.summary,
    argsDigest: event.argsDigest,
    args: event.args,
    cwd: event.cwd,
    mutates: event.mutates,
    paths: event.paths,
    pathList: event.pathList,
    checkpoint: event.checkpoint,
    key: event.key,
    state: 'proposed',
    approval: null,
    process: null,
    proposedAt: event.at,
    startedAt: null,
    finished: null,
  };
}

/** A call that waited for an answer is proposed again, under its own id, with what its paths hold when it starts. */
export function proposeIn(invocations: InvocationFold[], call: InvocationFold): void {
  const at = invocations.findLastIndex((earlier) => earlier.id === call.id);
  if (at === -1) invocations.push(call);
  else if (invocations[at]?.state === 'proposed') invocations[at] = call;
}

export function changeCall(
  calls: InvocationFold[],
  id: string,
  change: (call: InvocationFold) => InvocationFold,
): void {
  const at = calls.findLastIndex((call) => call.id === id);
  const call = calls[at];
  if (call !== undefined) calls[at] = change(call);
}

/** How a process of the turn ended, or that it was left. */
export function reconcileIn(processes: ProcessFold[], event: Event<'process.reconciled'>): void {
  const { pid, start } = event.process;
  const at = processes.findLastIndex(({ process }) => process.pid === pid && process.start === start);
  const known = processes[at];
  if (known !== undefined) processes[at] = { ...known, outcome: event.outcome };
}
