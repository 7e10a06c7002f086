/**
 * What makes two requests the same decision: tool, exact arguments, the command it starts, working
 * directory and task, and nothing else. Turn, epoch
 * and checkpoint are left out, or an answer given while the agent was dead would never match (PROTOCOL.md 24).
 */
import { canonicalJson, digest } from '../canonical.js';
import { DurableError } from '../errors.js';

export interface Action {
  readonly tool: string;
  /** The arguments byte for byte, as they will be shown to the person who decides. */
  readonly args: string;
  /** Absolute, or relative to the work tree. */
  readonly cwd: string;
  /** The words of the command that the approval starts, where it starts one. */
  readonly command?: readonly string[];
}

/** Lower-case hex SHA-256. */
export function fingerprint(action: Action, task: string): string {
  const { args, command, cwd, tool } = action;
  return digest(canonicalJson({ args, command, cwd, task, tool }));
}

/** Text as the bytes that are kept. Throws 'usage' for a lone surrogate: no bytes stand for it, and another text would be kept. */
export function exactBytes(what: string, text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text, 'utf8');
  throw new DurableError('usage', {
    detail: `${what} must be valid Unicode: a lone surrogate, or a byte that is not UTF-8, is in it; write it without`,
  });
}

/** Arguments of a call as the text that is kept: a string as it is, anything else as the JSON that JSON.stringify gives. */
export function argsText(args: unknown): string {
  if (typeof args === 'string') return args;
  const text = JSON.stringify(args) as string | undefined;
  return text ?? 'null';
}
