/** Which decoder and encoder an agent has. */
import { decodeHook, encodeHook } from './hook-payload.js';
import { decodePlugin, encodePlugin } from './plugin-payload.js';
import type { AgentName, Reply, Step } from './step.js';

export interface Translation {
  /** Null for an event that says nothing here. Throws for what is no payload of this agent. */
  readonly decode: (payload: unknown) => Step | null;
  /** The host's own output; empty for nothing. */
  readonly encode: (kind: Step['kind'], reply: Reply) => string;
}

const HOOK: Translation = { decode: decodeHook, encode: encodeHook };
const PLUGIN: Translation = { decode: decodePlugin, encode: encodePlugin };

export const TRANSLATIONS: { readonly [A in AgentName]: Translation } = {
  'claude-code': HOOK,
  codex: HOOK,
  opencode: PLUGIN,
  kilo: PLUGIN,
};

/** Null for an event that says nothing here. Throws for what is no payload of this agent. */
export function stepIn(agent: AgentName, payload: string): Step | null {
  const said: unknown = JSON.parse(payload);
  return TRANSLATIONS[agent].decode(said);
}
