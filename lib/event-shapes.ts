/**
 * The shapes that fields of events share (lib/event.ts): ids, digests, texts, files, processes, holders.
 */
import * as v from 'valibot';

export const text = v.pipe(v.string(), v.maxLength(2000));
export const summary = v.pipe(v.string(), v.maxLength(200));
export const id = v.pipe(
  v.string(),
  v.regex(/^[a-z0-9][a-z0-9-]{0,63}$/, 'an id is lower-case letters, digits and dashes'),
);
export const oid = v.pipe(
  v.string(),
  v.regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/, 'an object id is 40 or 64 hex digits'),
);
export const sha = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/, 'a digest is 64 hex digits'));
export const count = v.pipe(v.number(), v.integer(), v.minValue(0));
export const time = v.pipe(v.string(), v.isoTimestamp());
/** A path relative to the work tree, `/`-separated; a byte that is not UTF-8 is a lone surrogate (lib/git/path.ts). */
export const path = v.pipe(v.string(), v.minLength(1), v.maxLength(4096));
export const fileMode = v.picklist(['100644', '100755', '120000']);

/** One file's content and kind: the blob (for a link: its target) and git's mode; null where no file is. */
export const image = v.nullable(v.strictObject({ oid, mode: fileMode }));

/** A path an invocation will write: what is there before, and what will be, where that is known. */
export const touched = v.strictObject({
  path,
  before: image,
  /** 'unknown' when the tool's effect cannot be told beforehand. */
  expected: v.union([image, v.literal('unknown')]),
});

/** Bytes kept among the contents: the blob, its SHA-256 and its length. */
export const kept = v.strictObject({ oid, digest: sha, bytes: count });

export const process = v.strictObject({
  pid: count,
  /** Start time as the system gives it (Linux: clock ticks since boot, /proc/<pid>/stat field 22). */
  start: v.string(),
  command: summary,
});

export const holder = v.strictObject({
  runtime: id,
  agent: v.string(),
  host: v.string(),
  hostname: v.string(),
  boot: v.string(),
  pidNamespace: v.string(),
  pid: count,
  start: v.string(),
});

export const baseline = v.strictObject({
  head: v.nullable(oid),
  /** Full ref name, null when HEAD is detached. */
  branch: v.nullable(v.string()),
  /** Digest of the user's index file, null when there is none. */
  index: v.nullable(sha),
  operation: v.nullable(v.picklist(['merge', 'rebase', 'cherry-pick', 'revert', 'bisect', 'am'])),
  submodules: v.array(v.strictObject({ path, commit: v.nullable(oid) })),
  /** Output of `git status --porcelain=v1 -z --untracked-files=all` at the start. */
  status: kept,
});

/**
 * What earlier turns left undecided: an approval not answered or answered and unused, an open conflict, a transaction
 * without an end. The commits of its request and of its answer, so that folding a turn needs nothing older.
 */
export const carried = v.strictObject({
  kind: v.picklist(['approval', 'conflict', 'transaction']),
  id,
  commit: oid,
  answer: v.nullable(oid),
});

export const invocationState = v.picklist(['finished', 'failed', 'denied', 'in-doubt', 'not-started']);
export const fileState = v.picklist(['untouched', 'written', 'partial', 'foreign', 'deleted', 'changed']);

/** The shapes that fields share, by the names under which the README's table speaks of them. */
export const SHAPES = {
  text,
  summary,
  id,
  'object id': oid,
  digest: sha,
  count,
  time,
  path,
  image,
  touched,
  kept,
  process,
  holder,
  baseline,
  carried,
} as const;

export type Carried = v.InferOutput<typeof carried>;
export type Image = v.InferOutput<typeof image>;
export type FileMode = v.InferOutput<typeof fileMode>;
export type Touched = v.InferOutput<typeof touched>;
export type Kept = v.InferOutput<typeof kept>;
export type ProcessRecord = v.InferOutput<typeof process>;
export type HolderRecord = v.InferOutput<typeof holder>;
export type Baseline = v.InferOutput<typeof baseline>;
export type FileState = v.InferOutput<typeof fileState>;
export type InvocationState = v.InferOutput<typeof invocationState>;
