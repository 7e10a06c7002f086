/**
 * What an agent does and what it is told, in the words of this library: the middle between four hosts' payloads and one gate.
 *
 *     payload --decode (hook-payload.ts, plugin-payload.ts)--> Step --gate--> Reply --encode--> the host's own output
 *
 * Decoders and encoders are pure, and look at no file. A payload of an event that says nothing here is null; one that is not
 * what the host has been seen to send throws, and whoever calls decides what that means.
 */
export const AGENTS = ['claude-code', 'codex', 'opencode', 'kilo'] as const;
export type AgentName = (typeof AGENTS)[number];

interface FromSession {
  /** The host's own id of the conversation; subagents have the one of the session that started them. */
  readonly session: string;
  /** Absolute; null where the host does not say. */
  readonly cwd: string | null;
  /** Where the host keeps the conversation, if it says so. */
  readonly transcript: string | null;
}

export interface ToolCall {
  /** The host's own call id; null where the event has none. */
  readonly call: string | null;
  readonly tool: string;
  /** As the host sent it, decoded from JSON. */
  readonly input: unknown;
}

export interface ToolEnd {
  readonly isFailed: boolean;
  /** Text as the host gives it, anything else as JSON. */
  readonly result: string;
  /** Null where the host does not say. */
  readonly exit: number | null;
  readonly durationMs: number | null;
}

export type Step = FromSession &
  (
    | { readonly kind: 'session-start'; readonly source: string }
    /** `id`: of this prompt; null where the host gives none. */
    | { readonly kind: 'prompt'; readonly id: string | null; readonly text: string }
    | ({ readonly kind: 'before-tool' } & ToolCall)
    | ({ readonly kind: 'after-tool' } & ToolCall & ToolEnd)
    /** `request`: the host's own id of its question; null where it has none. */
    | ({ readonly kind: 'permission'; readonly request: string | null } & ToolCall)
    | { readonly kind: 'answer'; readonly request: string; readonly isAllowed: boolean }
    | {
        readonly kind: 'stop';
        readonly outcome: 'completed' | 'failed' | 'abandoned';
        /** The agent's final text, where it gives one. */
        readonly summary: string;
        /** What the host's transcript calls this turn, and the model; null where the host does not say. */
        readonly turn: string | null;
        readonly model: string | null;
      }
    | { readonly kind: 'session-end'; readonly reason: string }
  );

export type StepOf<K extends Step['kind']> = Extract<Step, { readonly kind: K }>;

export type Reply =
  /** The host goes on as it would have. */
  | { readonly kind: 'pass' }
  /** The model is told this; for the steps 'session-start' and 'prompt'. */
  | { readonly kind: 'context'; readonly text: string }
  /** The tool does not run, and the model reads why; for 'before-tool' and 'permission'. */
  | { readonly kind: 'deny'; readonly reason: string }
  /** The tool runs without the host's question; for 'permission'. */
  | { readonly kind: 'allow' };

export const PASS: Reply = { kind: 'pass' };
