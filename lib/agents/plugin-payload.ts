/**
 * OpenCode and Kilo: a plugin in the agent's own process hands on what its hooks are called with, as
 *
 *     { "hook": "tool.execute.before", "directory": "/abs", "input": {...}, "output": {...} }
 *
 * and does with the answer what it says: `{"deny": "why"}` is thrown before a tool, `{"context": "text"}` goes into the system
 * prompt, `{"reply": "once" | "reject"}` answers the host's question. Events of the bus come as `event:<type>`.
 *
 * Source: payloads recorded from OpenCode 1.18.33 and Kilo 7.7.9 (test/fixtures/agents).
 */
import * as v from 'valibot';
import type { Reply, Step } from './step.js';

const text = v.pipe(v.string(), v.minLength(1));
const session = v.object({ sessionID: text });
const called = v.object({ sessionID: text, tool: v.string(), callID: text });

const ENVELOPE = v.object({
  hook: v.string(),
  directory: v.nullish(text, null),
  input: v.unknown(),
  output: v.optional(v.unknown(), null),
});
const MESSAGE = v.object({
  message: v.object({ id: text }),
  parts: v.array(v.object({ type: v.string(), text: v.optional(v.string(), '') })),
});
const BEFORE = v.object({ args: v.unknown() });
const AFTER_INPUT = v.object({ ...called.entries, args: v.unknown() });
const AFTER_OUTPUT = v.object({
  output: v.optional(v.string(), ''),
  metadata: v.optional(v.object({ exit: v.nullish(v.number(), null) }), { exit: null }),
});
const event = <E extends v.ObjectEntries>(entries: E) => v.object({ properties: v.object(entries) });
const ASKED = event({
  ...session.entries,
  id: text,
  permission: v.string(),
  metadata: v.optional(v.unknown(), null),
  tool: v.nullish(v.object({ callID: text }), null),
});
/** What 'experimental.text.complete' said last, which the plugin lays beside the event. */
const IDLE = v.nullish(v.object({ text: v.optional(v.string(), '') }));
const REPLIED = event({ ...session.entries, requestID: text, reply: v.string() });

type Said = v.InferOutput<typeof ENVELOPE>;
type Bare<T> = T extends unknown ? Omit<T, 'cwd' | 'transcript'> : never;

/** Null for a hook that says nothing here. Throws valibot's ValiError for what is no payload of these hosts. */
export function decodePlugin(payload: unknown): Step | null {
  const said = v.parse(ENVELOPE, payload);
  const step = STEPS[said.hook]?.(said);
  return step === undefined ? null : { cwd: said.directory, transcript: null, ...step };
}

const STEPS: Readonly<Record<string, (said: Said) => Bare<Step>>> = {
  'event:session.created': ({ input }) => ({
    kind: 'session-start',
    session: sessionOf(input),
    source: 'startup',
  }),
  'chat.message': ({ input, output }) => {
    const { message, parts } = v.parse(MESSAGE, output);
    const typed = parts.filter(({ type }) => type === 'text').map((part) => part.text);
    const { sessionID } = v.parse(session, input);
    return { kind: 'prompt', session: sessionID, id: message.id, text: typed.join('\n') };
  },
  'tool.execute.before': ({ input, output }) => {
    const { sessionID, tool, callID } = v.parse(called, input);
    const { args } = v.parse(BEFORE, output);
    return { kind: 'before-tool', session: sessionID, call: callID, tool, input: args };
  },
  'tool.execute.after': ({ input, output }) => {
    const { sessionID, tool, callID, args } = v.parse(AFTER_INPUT, input);
    const { output: result, metadata } = v.parse(AFTER_OUTPUT, output);
    const { exit } = metadata;
    const isFailed = exit !== null && exit !== 0;
    const call = { session: sessionID, call: callID, tool, input: args };
    return { kind: 'after-tool', ...call, isFailed, result, exit, durationMs: null };
  },
  'event:permission.asked': ({ input }) => {
    const { id, sessionID, permission, metadata, tool } = v.parse(ASKED, input).properties;
    const call = { call: tool?.callID ?? null, tool: permission, input: metadata };
    return { kind: 'permission', session: sessionID, request: id, ...call };
  },
  'event:permission.replied': ({ input }) => {
    const { sessionID, requestID, reply } = v.parse(REPLIED, input).properties;
    return { kind: 'answer', session: sessionID, request: requestID, isAllowed: reply !== 'reject' };
  },
  'event:session.idle': ({ input, output }) => ({
    kind: 'stop',
    session: sessionOf(input),
    outcome: 'completed',
    summary: v.parse(IDLE, output)?.text ?? '',
    turn: null,
    model: null,
  }),
  'event:session.deleted': ({ input }) => ({
    kind: 'session-end',
    session: sessionOf(input),
    reason: 'deleted',
  }),
};

/** Every hook that is read here: a plugin needs to hand on no other. */
export const PLUGIN_HOOKS: readonly string[] = Object.keys(STEPS);

const sessionOf = (input: unknown): string => v.parse(event(session.entries), input).properties.sessionID;

/** What the plugin reads back: one line of JSON, empty for nothing. */
export function encodePlugin(kind: Step['kind'], reply: Reply): string {
  const said = outputFor(kind, reply);
  return said === null ? '' : `${JSON.stringify(said)}\n`;
}

function outputFor(kind: Step['kind'], reply: Reply): Record<string, string> | null {
  if (reply.kind === 'context' && (kind === 'session-start' || kind === 'prompt'))
    return { context: reply.text };
  if (reply.kind === 'deny' && kind === 'before-tool') return { deny: reply.reason };
  if (kind !== 'permission') return null;
  if (reply.kind === 'deny') return { reply: 'reject', message: reply.reason };
  return reply.kind === 'allow' ? { reply: 'once' } : null;
}
