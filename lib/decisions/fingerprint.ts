/**
 * What makes two requests the same decision: tool, exact arguments, working directory and task, and nothing else. Turn, epoch
 * and checkpoint are left out, or an answer given while the agent was dead would never match (PROTOCOL.md 24).
 */
import { canonicalJson, digest } from '../canonical.js';

export interface Action {
  readonly tool: string;
  /** The arguments byte for byte, as they will be shown to the person who decides. */
  readonly args: string;
  /** Absolute, or relative to the work tree. */
  readonly cwd: string;
}

/** Lower-case hex SHA-256. */
export function fingerprint(action: Action, task: string): string {
  return digest(canonicalJson({ args: action.args, cwd: action.cwd, task, tool: action.tool }));
}

/** Arguments of a call as the text that is kept: a string as it is, anything else as the JSON that JSON.stringify gives. */
export function argsText(args: unknown): string {
  if (typeof args === 'string') return args;
  const text = JSON.stringify(args) as string | undefined;
  return text ?? 'null';
}
