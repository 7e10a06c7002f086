/**
 * What a verb's end means to the shell that started it, and the one place where an error becomes a number.
 *
 * 0 done · 1 failed · 2 wrong usage, an unknown id, a path outside the work tree · 3 attention is needed ·
 * 4 refused: the lease is another's, or the decision is taken · 5 verification failed · 6 rejected.
 */
import { isDurableError, messageOf, type ErrorCode } from '../lib/errors.js';
import { diskError } from '../lib/git/disk.js';

export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  attention: 3,
  refused: 4,
  unverified: 5,
  rejected: 6,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** One number for each code, so that a new code does not compile until somebody has decided. */
const BY_ERROR: { readonly [C in ErrorCode]: ExitCode } = {
  'not-a-repository': EXIT.failed,
  'bare-repository': EXIT.failed,
  'unsafe-directory': EXIT.failed,
  'git-missing': EXIT.failed,
  'git-too-old': EXIT.failed,
  'reftable-unsupported': EXIT.failed,
  'git-failed': EXIT.failed,
  'ref-locked': EXIT.failed,
  'ref-moved': EXIT.failed,
  'ref-conflict': EXIT.failed,
  'ref-damaged': EXIT.failed,
  'object-missing': EXIT.failed,
  'object-damaged': EXIT.failed,
  'out-of-space': EXIT.failed,
  'permission-denied': EXIT.failed,
  'io-failed': EXIT.failed,
  'ledger-damaged': EXIT.failed,
  'event-invalid': EXIT.failed,
  'version-unsupported': EXIT.failed,
  'lease-held': EXIT.refused,
  'lease-lost': EXIT.refused,
  'index-locked': EXIT.refused,
  'lease-unproven': EXIT.refused,
  'recovery-needed': EXIT.attention,
  'turn-claimed': EXIT.refused,
  'turn-closed': EXIT.refused,
  'no-turn': EXIT.usage,
  'replay-diverged': EXIT.failed,
  'invocation-in-doubt': EXIT.attention,
  'agent-file': EXIT.failed,
  undelivered: EXIT.refused,
  conflict: EXIT.failed,
  'conflict-open': EXIT.attention,
  'path-outside': EXIT.usage,
  'path-refused': EXIT.usage,
  'stage-revoked': EXIT.refused,
  'transaction-failed': EXIT.failed,
  'checkpoint-incomplete': EXIT.failed,
  'approval-settled': EXIT.refused,
  'conflict-settled': EXIT.refused,
  'inside-turn': EXIT.refused,
  'not-found': EXIT.usage,
  ambiguous: EXIT.usage,
  usage: EXIT.usage,
};

/** The exit code for whatever a verb threw; what is not ours is a failure. */
export function exitCodeOf(error: unknown): ExitCode {
  return isDurableError(error) ? BY_ERROR[error.code] : EXIT.failed;
}

/** The sentence for a person, without the program's name. */
export function sentenceOf(error: unknown): string {
  if (isDurableError(error)) return error.message;
  const refused = systemRefusal(error);
  if (refused !== null) return refused;
  return `a defect in git-durable, please report it with what follows: ${messageOf(error)}`;
}

/** Where a defect was met; null for what is none. */
export function traceOf(error: unknown): string | null {
  if (isDurableError(error) || systemRefusal(error) !== null) return null;
  return error instanceof Error ? (error.stack ?? null) : null;
}

/** What the system refused where nobody expected it to is no defect: the folder's owner, a limit, a bad disk. */
function systemRefusal(error: unknown): string | null {
  const path =
    error instanceof Error && 'path' in error && typeof error.path === 'string' ? error.path : null;
  const known = path === null ? error : diskError(error, path);
  return isDurableError(known) ? known.message : null;
}
