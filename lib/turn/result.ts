/**
 * What a call's effect returned or threw, as bytes and back.
 *
 * A result is kept as canonical JSON of what JSON can say of it. A failure is kept as its message, one of ours with its code
 * and fields, so that a function that looks at `code` takes the same way when it is run again.
 */
import { canonicalJson } from '../canonical.js';
import { errorFrom, isDurableError, messageOf } from '../errors.js';
import type { Answer } from './rerun.js';

/** null for undefined. */
export function encodeResult(value: unknown): Buffer | null {
  if (value === undefined) return null;
  return Buffer.from(canonicalJson(JSON.parse(JSON.stringify(value)) as unknown), 'utf8');
}

export function encodeFailure(error: unknown): { summary: string; result: Buffer } {
  const summary = messageOf(error);
  const kept = isDurableError(error) ? canonicalJson({ code: error.code, fields: error.fields }) : summary;
  return { summary, result: Buffer.from(kept, 'utf8') };
}

/** What an effect returned, or its failure thrown again. */
export function resultOf({ state, result, summary }: Answer): unknown {
  if (state === 'finished')
    return result === null ? undefined : (JSON.parse(result.toString('utf8')) as unknown);
  const kept = result?.toString('utf8') ?? summary;
  throw errorFrom(kept) ?? new Error(kept);
}
