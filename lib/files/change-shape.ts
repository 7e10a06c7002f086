/** The shape of a change, looked at before anything is recorded: a caller in JavaScript has no compiler to tell it. */
import * as v from 'valibot';
import { DurableError } from '../errors.js';
import type { Change } from './change.js';

const path = v.string();
const expected = v.optional(
  v.nullable(
    v.object({
      oid: v.pipe(v.string(), v.regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/)),
      mode: v.picklist(['100644', '100755', '120000']),
    }),
  ),
);

const CHANGE = v.variant('kind', [
  v.object({
    kind: v.literal('write'),
    path,
    expected,
    bytes: v.instance(Uint8Array),
    mode: v.optional(v.picklist(['100644', '100755'])),
  }),
  v.object({ kind: v.literal('delete'), path, expected }),
  v.object({ kind: v.literal('rename'), from: path, to: path, expected }),
  v.object({ kind: v.literal('chmod'), path, expected, executable: v.boolean() }),
  v.object({ kind: v.literal('symlink'), path, expected, target: v.string() }),
]);

/** Throws 'usage' for the first of them that is no change. */
export function refuseMalformed(changes: readonly Change[]): void {
  for (const [at, change] of changes.entries()) {
    const parsed = v.safeParse(CHANGE, change);
    if (parsed.success) continue;
    const [issue] = parsed.issues;
    const field = v.getDotPath(issue) ?? 'the change';
    const detail = `change ${String(at)} is none (${field}: ${issue.message}); its kind is one of write, delete, rename, chmod, symlink`;
    throw new DurableError('usage', { detail });
  }
}
