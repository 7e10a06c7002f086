/**
 * A claim as a program states it at the end of a turn (`turn.finish({ outcome, claim })`), kept as canonical JSON among the contents.
 *
 * It is held to the record to the letter, other than one that is read out of a final text: a path that is claimed and not changed,
 * a command that no call of the turn ran, an exit code that was another one, each makes it false.
 */
import * as v from 'valibot';
import { canonicalJson } from '../canonical.js';
import { DurableError } from '../errors.js';
import { filePath } from '../git/tree-path.js';

const paths = v.optional(v.array(v.string()));

const schema = v.strictObject({
  /** Files that the turn changed, created or deleted; relative to the work tree, `/`-separated. */
  changed: paths,
  /** Files that it left as they were. */
  unchanged: paths,
  /** True: `changed` names every one. */
  complete: v.optional(v.boolean()),
  /** Commands it ran, as a shell is given them; with `exit` the code of the last time. */
  commands: v.optional(
    v.array(v.strictObject({ command: v.pipe(v.string(), v.minLength(1)), exit: v.optional(v.number()) })),
  ),
});

export type Claim = v.InferOutput<typeof schema>;

/** Bytes to keep. Errors: 'usage' for what is no claim, or says two things of one path, 'path-outside', 'path-refused'. */
export function encodeClaim(claim: Claim): Buffer {
  const parsed = v.safeParse(schema, claim);
  if (!parsed.success)
    throw new DurableError('usage', {
      detail: `the claim of a turn cannot be read (${parsed.issues[0].message}); give lists of paths and commands`,
    });
  const { changed, unchanged, ...more } = parsed.output;
  const said = {
    ...(changed === undefined ? {} : { changed: changed.map((path) => filePath(path)) }),
    ...(unchanged === undefined ? {} : { unchanged: unchanged.map((path) => filePath(path)) }),
  };
  refuseBoth(said.changed ?? [], said.unchanged ?? []);
  return Buffer.from(canonicalJson({ ...more, ...said }), 'utf8');
}

function refuseBoth(changed: readonly string[], unchanged: readonly string[]): void {
  const both = unchanged.find((path) => changed.includes(path));
  if (both === undefined) return;
  throw new DurableError('usage', {
    detail: `the claim of a turn says of '${both}' both that it was changed and that it was not; name it in one of the two lists`,
  });
}

/** Throws 'object-damaged' for bytes that are no claim of this version. */
export function decodeClaim(oid: string, bytes: Buffer): Claim {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), schema), bytes.toString('utf8'));
  if (parsed.success) return parsed.output;
  throw new DurableError('object-damaged', { oid, detail: `a claim: ${parsed.issues[0].message}` });
}
