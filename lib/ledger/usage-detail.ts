/**
 * What each turn and each call has used, in the order they began: the same records as in usage.ts, not summed further.
 *
 * A record that names a call counts for the call and for its turn. A turn's time is from its first to its last event by the
 * writer's clock, a call's from its start to its end by the monotonic clock of the process that made it.
 */
import type { Event } from '../event.js';
import { UsageSums, type Used } from './usage-sums.js';

export interface TurnUsage extends Used {
  readonly task: string;
  readonly turn: string;
  readonly agent: string;
  readonly startedAt: string;
  /** Milliseconds. */
  readonly turnMs: number;
  readonly calls: number;
}

export interface CallUsage extends Used {
  readonly task: string;
  readonly turn: string;
  readonly invocation: string;
  readonly tool: string;
  readonly agent: string;
  /** Milliseconds; null for a call without an end, or one whose end nobody timed. */
  readonly durationMs: number | null;
}

interface TurnSoFar {
  readonly place: Pick<TurnUsage, 'task' | 'turn' | 'agent' | 'startedAt'>;
  turnMs: number;
  readonly calls: Map<string, CallSoFar>;
  readonly sums: UsageSums;
}

interface CallSoFar {
  readonly place: Pick<CallUsage, 'task' | 'turn' | 'invocation' | 'tool' | 'agent'>;
  durationMs: number | null;
  readonly sums: UsageSums;
}

/** A fold in progress over events of any number of tasks, each task's oldest first. */
export class UsageDetail {
  readonly #turns = new Map<string, TurnSoFar>();

  add(event: Event): void {
    const place = `${event.task} ${event.turn ?? ''}`;
    if (event.type === 'turn.started') this.#turns.set(place, begun(event));
    const turn = this.#turns.get(place);
    if (turn === undefined) return;
    turn.turnMs = Math.max(turn.turnMs, Date.parse(event.at) - Date.parse(turn.place.startedAt));
    if (event.type === 'invocation.proposed' && !turn.calls.has(event.invocation))
      turn.calls.set(event.invocation, proposed(event));
    if (event.type === 'invocation.finished') {
      const call = turn.calls.get(event.invocation);
      if (call !== undefined) call.durationMs = event.durationMs;
    }
    if (event.type === 'usage.recorded') {
      turn.sums.add(event);
      turn.calls.get(event.invocation ?? '')?.sums.add(event);
    }
  }

  turns(): TurnUsage[] {
    return [...this.#turns.values()].map(({ place, turnMs, calls, sums }) => {
      return { ...place, turnMs, calls: calls.size, ...sums.used() };
    });
  }

  calls(): CallUsage[] {
    return [...this.#turns.values()].flatMap(({ calls }) =>
      [...calls.values()].map(({ place, durationMs, sums }) => ({ ...place, durationMs, ...sums.used() })),
    );
  }
}

/** What is held of a turn, and of a call, does not grow with their events. */
function begun({ task, turn, agent, at }: Event<'turn.started'>): TurnSoFar {
  const place = { task, turn: turn ?? '', agent, startedAt: at };
  return { place, turnMs: 0, calls: new Map(), sums: new UsageSums() };
}

function proposed({ task, turn, invocation, tool, agent }: Event<'invocation.proposed'>): CallSoFar {
  const place = { task, turn: turn ?? '', invocation, tool, agent };
  return { place, durationMs: null, sums: new UsageSums() };
}
