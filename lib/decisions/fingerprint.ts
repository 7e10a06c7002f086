/**
 * What makes two requests the same decision: tool, exact arguments, the command it starts, working
 * directory and task, and nothing else. Turn, epoch
 * and checkpoint are left out, or an answer given while the agent was dead would never match (PROTOCOL.md 24).
 */
import { canonicalJson, digest } from '../canonical.js';
import { DurableError, messageOf } from '../errors.js';
import { jsonLoss } from '../json-loss.js';

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

/**
 * Arguments of a call as the text that is kept: a string as it is, anything else as the JSON that JSON.stringify gives, undefined as null.
 * Throws 'usage' for what JSON cannot say: it would be kept, shown and decided as something else.
 */
export function argsText(args: unknown): string {
  if (typeof args === 'string') return args;
  if (args === undefined) return 'null';
  const loss = lossOf(args);
  if (loss === null) return JSON.stringify(args);
  throw new DurableError('usage', {
    detail: `arguments are kept as JSON, and ${loss}; give what JSON can say, or the text itself`,
  });
}

function lossOf(args: unknown): string | null {
  try {
    return jsonLoss(args);
  } catch (error) {
    // Nested beyond the stack, or a `toJSON` or a getter of theirs that throws.
    return `they cannot be read (${messageOf(error)})`;
  }
}
