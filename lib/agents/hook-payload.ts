/**
 * Claude Code and Codex: one JSON document on standard input for each event, one on standard output where there is something
 * to say. The two speak the same protocol but for a few keys (what is Claude's: `prompt_id`, results as objects, a failing
 * tool as an event of its own; what is Codex's: `turn_id`, results as text, `Interrupt`).
 *
 * Source: payloads recorded from Claude Code 2.1.332 and Codex CLI 0.171.0 (test/fixtures/agents). Keys that are not named here are
 * passed over, since hosts add some with every version. Codex refuses output keys that it does not know, so each answer has
 * only those of its event.
 */
import * as v from 'valibot';
import type { Reply, Step } from './step.js';

const optionalText = v.nullish(v.string(), null);

const PAYLOAD = v.object({
  hook_event_name: v.string(),
  session_id: v.pipe(v.string(), v.minLength(1)),
  cwd: v.pipe(v.string(), v.minLength(1)),
  transcript_path: optionalText,
  prompt_id: optionalText,
  turn_id: optionalText,
  tool_use_id: optionalText,
  tool_name: v.optional(v.string(), ''),
  tool_input: v.optional(v.unknown(), null),
  tool_response: v.optional(v.unknown(), ''),
  duration_ms: v.nullish(v.number(), null),
  source: v.optional(v.string(), ''),
  reason: v.optional(v.string(), ''),
  prompt: v.optional(v.string(), ''),
  error: v.optional(v.string(), ''),
  model: optionalText,
  last_assistant_message: v.nullish(v.string()),
});

type Payload = v.InferOutput<typeof PAYLOAD>;

/** Null for an event that says nothing here. Throws valibot's ValiError for what is no payload of these hosts. */
export function decodeHook(payload: unknown): Step | null {
  const said = v.parse(PAYLOAD, payload);
  const from = { session: said.session_id, cwd: said.cwd, transcript: said.transcript_path };
  const step = STEPS[said.hook_event_name]?.(said);
  return step === undefined ? null : { ...from, ...step };
}

type Bare<T> = T extends unknown ? Omit<T, 'session' | 'cwd' | 'transcript'> : never;

const STEPS: Readonly<Record<string, (said: Payload) => Bare<Step>>> = {
  SessionStart: ({ source }) => ({ kind: 'session-start', source }),
  UserPromptSubmit: ({ prompt, prompt_id, turn_id }) => ({
    kind: 'prompt',
    id: prompt_id ?? turn_id,
    text: prompt,
  }),
  PreToolUse: (said) => ({ kind: 'before-tool', ...callOf(said) }),
  PermissionRequest: (said) => ({ kind: 'permission', request: null, ...callOf(said) }),
  PostToolUse: (said) => ({
    kind: 'after-tool',
    ...callOf(said),
    isFailed: false,
    result: textOf(said.tool_response),
    exit: null,
    durationMs: said.duration_ms,
  }),
  PostToolUseFailure: (said) => ({
    kind: 'after-tool',
    ...callOf(said),
    isFailed: true,
    result: said.error,
    exit: exitIn(said.error),
    durationMs: said.duration_ms,
  }),
  Stop: (said) => ({
    kind: 'stop',
    outcome: 'completed',
    summary: said.last_assistant_message ?? '',
    ...turnOf(said),
  }),
  StopFailure: (said) => ({
    kind: 'stop',
    outcome: 'failed',
    summary: said.last_assistant_message ?? said.error,
    ...turnOf(said),
  }),
  Interrupt: (said) => ({
    kind: 'stop',
    outcome: 'abandoned',
    summary: 'interrupted by the person',
    ...turnOf(said),
  }),
  SessionEnd: ({ reason }) => ({ kind: 'session-end', reason }),
};

/** Every event that is read here. */
export const HOOK_EVENTS: readonly string[] = Object.keys(STEPS);

const callOf = (said: Payload): { call: string | null; tool: string; input: unknown } => ({
  call: said.tool_use_id,
  tool: said.tool_name,
  input: said.tool_input,
});

const turnOf = ({ prompt_id, turn_id, model }: Payload): { turn: string | null; model: string | null } => ({
  turn: prompt_id ?? turn_id,
  model,
});

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

function exitIn(error: string): number | null {
  const code = /^Exit code (\d+)/.exec(error)?.[1];
  return code === undefined ? null : Number(code);
}

/** What the hook prints: empty for nothing. A reply that the event has no words for is nothing, too. */
export function encodeHook(kind: Step['kind'], reply: Reply): string {
  const said = outputFor(kind, reply);
  return said === null ? '' : `${JSON.stringify({ hookSpecificOutput: said })}\n`;
}

function outputFor(kind: Step['kind'], reply: Reply): Record<string, unknown> | null {
  if (reply.kind === 'context' && (kind === 'session-start' || kind === 'prompt')) {
    const hookEventName = kind === 'prompt' ? 'UserPromptSubmit' : 'SessionStart';
    return { hookEventName, additionalContext: reply.text };
  }
  if (reply.kind === 'deny' && kind === 'before-tool') {
    const permissionDecisionReason = reply.reason;
    return { hookEventName: 'PreToolUse', permissionDecision: 'deny', permissionDecisionReason };
  }
  if (kind !== 'permission') return null;
  const hookEventName = 'PermissionRequest';
  if (reply.kind === 'allow') return { hookEventName, decision: { behavior: 'allow' } };
  if (reply.kind === 'deny') return { hookEventName, decision: { behavior: 'deny', message: reply.reason } };
  return null;
}
