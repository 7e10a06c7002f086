/** The order in which people are shown what waits for them. */
import type { Event } from '../event.js';

/**
 * Oldest first. In one task the ledger's order decides, whatever the clock said; between tasks there is only the clock, and
 * at the same moment the task's id.
 */
export function oldestFirst<T>(items: readonly T[], eventOf: (item: T) => Event): T[] {
  const inTask = items.toSorted((a, b) => eventOf(a).seq - eventOf(b).seq);
  // A clock set back within a task must not change its order: an event counts from the latest time before it.
  const reached = new Map<string, string>();
  const placed = inTask.map((item) => {
    const { task, at } = eventOf(item);
    const since = reached.get(task) ?? '';
    const from = at > since ? at : since;
    reached.set(task, from);
    return { item, from, task };
  });
  return placed
    .toSorted((a, b) => compare(a.from, b.from) || compare(a.task, b.task))
    .map(({ item }) => item);
}

const compare = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1);
