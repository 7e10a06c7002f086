/**
 * From an agent's payload to what its hook prints: the same whether the hook's own process does it or the keeper of its turn
 * (serve.ts).
 *
 * Where the payload cannot be read, or the gate fails before a tool that may change files, the tool is refused; after a tool nothing
 * is: what cannot be recorded is kept, and what went wrong is a note. Outside of a repository nothing is said.
 */
import { hasCode, messageOf } from '../errors.js';
import type { Storage } from '../git/storage.js';
import { takeStep } from './gate.js';
import { answerWithin, isWithin } from './limits.js';
import type { AgentProcess, OwnTurn } from './own-turn.js';
import { isReport, report } from './report.js';
import { recordSeen } from './seen.js';
import { PASS, type AgentName, type Reply, type Step } from './step.js';
import { effectOf } from './tools.js';
import { TRANSLATIONS } from './translate.js';

export interface HookCall {
  readonly agent: AgentName;
  /** Of the installation whose hook fired; anything else is no installation's. */
  readonly nonce: string;
  /** A line for standard error. */
  readonly note: (line: string) => void;
}

/** In a payload that is not understood: a tool waits for the answer. */
const BEFORE_TOOL = /"(?:PreToolUse|tool\.execute\.before)"/;

/** Whether a payload that `stepIn` threw at asks before a tool: what it does not get to run need not be kept. */
export const isQuestionUnclear = (payload: string): boolean => BEFORE_TOOL.test(payload);

/** What is printed at a payload that `stepIn` threw at. */
export function unclear({ agent, note }: HookCall, payload: string, error: unknown): string {
  note(`this payload of ${agent} is not understood: ${messageOf(error)}`);
  const reason = `git-durable does not understand what ${agent} says of this call; nothing ran. To go on without records, take its hooks out`;
  return isQuestionUnclear(payload)
    ? TRANSLATIONS[agent].encode('before-tool', { kind: 'deny', reason })
    : '';
}

/** What is printed at a step. Throws nothing: `take` that fails is a refusal or a note. */
export async function answerTo(
  { agent, note }: HookCall,
  step: Step,
  take: (step: Step) => Promise<Reply>,
): Promise<string> {
  return TRANSLATIONS[agent].encode(step.kind, await replied(note, step, take));
}

async function replied(
  note: HookCall['note'],
  step: Step,
  take: (step: Step) => Promise<Reply>,
): Promise<Reply> {
  try {
    return await take(step);
  } catch (error) {
    if (hasCode(error, 'not-a-repository') || hasCode(error, 'bare-repository')) return PASS;
    note(messageOf(error));
    if (step.kind !== 'before-tool') return PASS;
    return {
      kind: 'deny',
      reason: `git-durable could not record this call, and nothing ran: ${messageOf(error)}`,
    };
  }
}

/**
 * The gate, and a refusal where it takes longer than the host listens: a host that gave up waiting lets the tool run. A report is
 * recorded or kept (report.ts).
 * `beganMs`: when the hook was started, by the host's monotonic clock. `onLate` is given what goes on behind that refusal, where the
 * process does not end with it. Errors: those of `takeStep`.
 */
export async function takeInTime(
  storage: Storage,
  { call, by, payload, own, beganMs, onLate }: Taking,
  step: Step,
): Promise<Reply> {
  noteSeen(storage, call);
  const endMs = beganMs + answerWithin(by.agent, step, storage.settings.hookLimitMs);
  const leftMs = (): number => endMs - storage.host.monotonicMs();
  if (isReport(step))
    return report(storage, { by, step, payload, own }, { leftMs: leftMs(), note: call.note });
  const reply = takeStep(storage, by, step, own);
  if (step.kind !== 'before-tool' || effectOf(by.agent, step.tool, step.input) === 'reads') return reply;
  if (await isWithin(reply, leftMs())) return reply;
  onLate?.(reply);
  return LATE;
}

interface Taking {
  readonly call: HookCall;
  readonly by: AgentProcess;
  /** As the hook read it. */
  readonly payload: string;
  /** The session's turn, when it was looked up a moment ago. */
  readonly own?: OwnTurn;
  readonly beganMs: number;
  readonly onLate?: (reply: Promise<Reply>) => void;
}

/** `doctor` says whether hooks fire; nothing depends on it. */
function noteSeen(storage: Storage, { agent, nonce, note }: HookCall): void {
  try {
    recordSeen(storage, agent, nonce);
  } catch (error) {
    note(messageOf(error));
  }
}

const LATE: Reply = {
  kind: 'deny',
  reason:
    "git-durable refused this call, and nothing ran: it was not on record within the time limit of the hook (durable.hookLimit, or the agent's own). See what holds it up with: git durable status",
};
