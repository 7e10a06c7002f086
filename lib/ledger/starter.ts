/** Who started a turn, as errors name it. */
import type { HolderSummary } from '../errors.js';
import type { Event } from '../event.js';

/** `now`: milliseconds since 1970. */
export function starterOf(event: Event<'turn.started'>, now: number): HolderSummary {
  return {
    agent: event.holder.agent,
    host: event.holder.hostname,
    pid: event.holder.pid,
    task: event.task,
    turn: event.turn,
    objective: event.objective,
    since: event.at,
    ageMs: now - Date.parse(event.at),
  };
}
