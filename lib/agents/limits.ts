/**
 * How long a host waits for its hook, and what that leaves to us.
 *
 * A host kills a hook that takes longer and goes on as if there were none: the tool runs. So a tool that may change files is
 * refused before that, while somebody still listens. What an installation asks of the host stands here too, so that both
 * go by the same numbers; left alone Claude Code 2.1.332 and Codex CLI 0.171.0 wait for 600 s, OpenCode and Kilo for ever.
 */
import type { AgentName, Step } from './step.js';

const SECOND = 1000;

/** Seconds that an installed hook gets. What records the work tree takes a checkpoint first, of a large one for the first time. */
export const USUAL_SECONDS = 120;
/** A question may wait for a person's answer (durable.wait); what hosts give a hook where nothing is said. */
export const QUESTION_SECONDS = 600;

interface Limits {
  readonly usual: number;
  readonly question: number;
  /** At the end of a session, and where a person interrupts; less than an installation may have asked for. */
  readonly sessionEnd: number;
  readonly interrupt: number;
}

const USUAL = USUAL_SECONDS * SECOND;
const ASKED = { usual: USUAL, question: QUESTION_SECONDS * SECOND, sessionEnd: USUAL, interrupt: USUAL };

/** Milliseconds. */
export const LIMITS: { readonly [A in AgentName]: Limits } = {
  'claude-code': { ...ASKED, sessionEnd: 1.5 * SECOND },
  codex: { ...ASKED, sessionEnd: 3 * SECOND, interrupt: 3 * SECOND },
  opencode: ASKED,
  kilo: ASKED,
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

/** Whether it is fulfilled within so many milliseconds; throws what it throws until then. What it throws later is nobody's to hear. */
export async function isWithin(awaited: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((over) => {
    timer = setTimeout(over, Math.max(0, ms), false);
  });
  try {
    return await Promise.race([awaited.then(() => true), late]);
  } finally {
    clearTimeout(timer);
    awaited.catch(() => undefined);
  }
}

/** Whether the host leaves no time for more than the record that it ended. */
export function isBrief(agent: AgentName, step: Step): boolean {
  return limitOf(LIMITS[agent], step) <= 3 * SECOND;
}

function limitOf({ usual, question, sessionEnd, interrupt }: Limits, step: Step): number {
  if (step.kind === 'permission') return question;
  if (step.kind === 'session-end') return sessionEnd;
  return step.kind === 'stop' && step.outcome === 'abandoned' ? interrupt : usual;
}
