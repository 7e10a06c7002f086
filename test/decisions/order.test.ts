import test from 'ava';
import { oldestFirst } from '../../lib/decisions/order.js';
import type { Event } from '../../lib/event.js';

interface Item {
  readonly task: string;
  readonly seq: number;
  readonly at: string;
}

const item = (task: string, seq: number, minute: number): Item => ({
  task,
  seq,
  at: `2026-01-01T00:${String(minute).padStart(2, '0')}:00.000Z`,
});

const ordered = (items: readonly Item[]): string[] =>
  oldestFirst(items, (one) => one as unknown as Event).map(({ task, seq }) => `${task}${String(seq)}`);

test('in one task the ledger decides, though the clock was set back', (t) => {
  t.deepEqual(ordered([item('a', 3, 1), item('a', 1, 30), item('a', 2, 5)]), ['a1', 'a2', 'a3']);
});

test('between tasks the clock decides, and at the same moment the order is one and the same', (t) => {
  const items = [item('b', 1, 2), item('a', 9, 2), item('a', 1, 1), item('b', 2, 3)];
  t.deepEqual(ordered(items), ['a1', 'a9', 'b1', 'b2']);
  t.deepEqual(ordered(items.toReversed()), ['a1', 'a9', 'b1', 'b2']);
});
