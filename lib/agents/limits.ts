/**
 * How long each host waits for its hook, and what that leaves to us.
 *
 * A host kills a hook that takes longer and goes on as if there were none: the tool runs. So a tool that may change files is
 * refused before that, while somebody still listens. Sources: Claude Code 2.1.332 and Codex CLI 0.171.0 as they were seen;
 * OpenCode and Kilo have no limit of their own that is known; the plugin in them gives up after as long as said here.
 */
import type { AgentName, Step } from './step.js';

const SECOND = 1000;

interface Limits {
  readonly usual: number;
  /** At the end of a session, and where a person interrupts. */
  readonly sessionEnd: number;
  readonly interrupt: number;
}

const PLUGIN: Limits = { usual: 120 * SECOND, sessionEnd: 120 * SECOND, interrupt: 120 * SECOND };

export const LIMITS: { readonly [A in AgentName]: Limits } = {
  'claude-code': { usual: 600 * SECOND, sessionEnd: 1.5 * SECOND, interrupt: 600 * SECOND },
  codex: { usual: 600 * SECOND, sessionEnd: 3 * SECOND, interrupt: 3 * SECOND },
  opencode: PLUGIN,
  kilo: PLUGIN,
};

/** The part of a limit in which an answer still arrives for sure. */
const SHARE = 0.8;

/**
 * Milliseconds from the hook's start in which it has to answer. `hookLimitMs`: the limit that the hook was given in the host's
 * configuration, 0 for none.
 */
export function answerWithin(agent: AgentName, step: Step, hookLimitMs: number): number {
  const limit = limitOf(LIMITS[agent], step);
  return SHARE * (hookLimitMs > 0 ? Math.min(limit, hookLimitMs) : limit);
}

/** Whether the host leaves no time for more than the record that it ended. */
export function isBrief(agent: AgentName, step: Step): boolean {
  return limitOf(LIMITS[agent], step) <= 3 * SECOND;
}

function limitOf({ usual, sessionEnd, interrupt }: Limits, step: Step): number {
  if (step.kind === 'session-end') return sessionEnd;
  return step.kind === 'stop' && step.outcome === 'abandoned' ? interrupt : usual;
}
