/**
 * What turns have used, folded per task, agent and day: a projection of `usage.recorded` and of the turns' own beginning and end.
 *
 *     const folding = new UsageFolding();
 *     for await (const { event } of ledger.forwards()) folding.add(event);
 *     for (const row of folding.rows()) …
 *
 * Each record counts once, on the UTC day it was made, for the agent that its event names: a harness records a call's usage or its
 * turn's, not both. A turn counts on the day it began; its time is from its first to its last event by the
 * writer's clock, interrupted or not, and 0 where a clock went back. A rewind changes nothing: what was left was paid for.
 */
import type { Event } from '../event.js';
import { UsageSums, type Used } from './usage-sums.js';

export interface UsageRow extends Used {
  readonly task: string;
  readonly agent: string;
  /** UTC, YYYY-MM-DD. */
  readonly day: string;
  /** Turns that began on that day. */
  readonly turns: number;
  /** From first to last event, summed over these turns. Milliseconds. */
  readonly turnMs: number;
}

interface Row {
  readonly task: string;
  readonly agent: string;
  readonly day: string;
  turns: number;
  turnMs: number;
  readonly sums: UsageSums;
}

interface Span {
  readonly row: Row;
  readonly began: number;
  /** What is in the row of it so far. Milliseconds. */
  counted: number;
}

/** A fold in progress over events of any number of tasks, each task's oldest first. */
export class UsageFolding {
  readonly #rows = new Map<string, Row>();
  readonly #turns = new Map<string, Span>();

  add(event: Event): void {
    if (event.type === 'turn.started' && event.turn !== null) this.#begin(event, event.turn);
    if (event.type === 'usage.recorded') this.#row(event).sums.add(event);
    const span = event.turn === null ? undefined : this.#turns.get(`${event.task} ${event.turn}`);
    if (span !== undefined) lengthen(span, Date.parse(event.at));
  }

  /** By day, then task, then agent. Days and tasks of which nothing is known have no row. */
  rows(): UsageRow[] {
    const order = ({ day, task, agent }: Row): string => `${day} ${task} ${agent}`;
    return [...this.#rows.values()]
      .sort((a, b) => (order(a) < order(b) ? -1 : 1))
      .map(({ sums, ...row }) => ({ ...row, ...sums.used() }));
  }

  #begin(event: Event<'turn.started'>, turn: string): void {
    const row = this.#row(event);
    row.turns += 1;
    this.#turns.set(`${event.task} ${turn}`, { row, began: Date.parse(event.at), counted: 0 });
  }

  #row({ task, agent, at }: Event): Row {
    const day = at.slice(0, 10);
    const key = JSON.stringify([task, agent, day]);
    const known = this.#rows.get(key);
    if (known !== undefined) return known;
    const row = { task, agent, day, turns: 0, turnMs: 0, sums: new UsageSums() };
    this.#rows.set(key, row);
    return row;
  }
}

function lengthen(span: Span, now: number): void {
  const length = Math.max(span.counted, now - span.began);
  span.row.turnMs += length - span.counted;
  span.counted = length;
}
