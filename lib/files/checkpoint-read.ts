/**
 * Checkpoints that exist: their tree and scope, and the one that a typed prefix means.
 *
 * A checkpoint is found by its event and read from its commit, whose tree has `worktree/` (the snapshot itself) and
 * `payload/scope`: what was named explicitly, left out, and absent, which a restore must know.
 */
import * as v from 'valibot';
import { DurableError } from '../errors.js';
import { parseCommit, parseTree, type TreeEntry } from '../git/objects-format.js';
import type { Storage } from '../git/storage.js';
import { findEvents } from '../ledger/find.js';

const scopeSchema = v.object({
  v: v.literal(1),
  /** Kept even when ignored; files or folders. */
  named: v.array(v.string()),
  skipped: v.array(
    v.object({
      path: v.string(),
      why: v.picklist(['too-large', 'nested-repository', 'unreadable', 'special']),
    }),
  ),
  absent: v.array(v.string()),
});
export type Scope = v.InferOutput<typeof scopeSchema>;

export interface StoredCheckpoint {
  readonly checkpoint: string;
  readonly tree: string;
  readonly scope: Scope;
}

/** By its whole id. Errors: 'not-found' when it is no checkpoint, 'object-missing' when it was pruned, 'object-damaged'. */
export async function readCheckpoint(storage: Storage, checkpoint: string): Promise<StoredCheckpoint> {
  const needed = `checkpoint ${checkpoint}`;
  const commit = await body(storage, { oid: checkpoint, type: 'commit', needed });
  const treeOf = async (oid: string): Promise<TreeEntry[]> =>
    parseTree(await body(storage, { oid, type: 'tree', needed }), storage.layout.objectFormat);
  const root = await treeOf(parseCommit(commit).tree);
  const tree = entryOf(root, 'worktree');
  if (tree === undefined) throw new DurableError('not-found', { what: 'checkpoint', id: checkpoint });
  const payload = entryOf(root, 'payload');
  const entries = payload === undefined ? [] : await treeOf(payload);
  const scope = entryOf(entries, 'scope');
  if (scope === undefined) throw new DurableError('not-found', { what: 'checkpoint', id: checkpoint });
  return {
    checkpoint,
    tree,
    scope: parseScope(scope, await body(storage, { oid: scope, type: 'blob', needed })),
  };
}

/**
 * The whole id that a prefix means. A ledger that is damaged somewhere does not hide the checkpoints that can be read.
 * Errors: 'usage' for one that is too short, 'not-found', 'ambiguous', those of reading ledgers.
 */
export async function resolveCheckpoint(storage: Storage, prefix: string): Promise<string> {
  if (prefix.length < SHORTEST) throw tooShort(prefix);
  const damage: Error[] = [];
  const onDamage = (error: Error): void => void damage.push(error);
  const found = await findEvents(storage, prefix.toLowerCase(), { onDamage });
  const ids = [...new Set(found.filter(({ as }) => as === 'checkpoint').map(({ id }) => id))];
  const [first] = ids;
  // It may be in what cannot be read.
  if (first === undefined && damage[0] !== undefined) throw damage[0];
  if (first === undefined) throw new DurableError('not-found', { what: 'checkpoint', id: prefix });
  if (ids.length > 1)
    throw new DurableError('ambiguous', { what: 'checkpoint', id: prefix, candidates: ids.slice(0, 10) });
  return first;
}

/** As git's own shortest abbreviation: below it nearly everything is ambiguous. */
const SHORTEST = 4;

const tooShort = (prefix: string): DurableError =>
  new DurableError('usage', {
    detail: `'${prefix}' is too short for a checkpoint's id; give four characters of it or more: type 'git durable checkpoints'`,
  });

const entryOf = (entries: readonly TreeEntry[], name: string): string | undefined =>
  entries.find((entry) => entry.name.toString() === name)?.oid;

async function body(
  storage: Storage,
  wanted: { readonly oid: string; readonly type: string; readonly needed: string },
): Promise<Buffer> {
  const { oid, type, needed } = wanted;
  const object = await storage.objects.read(oid);
  if (object === undefined) throw new DurableError('object-missing', { oid, needed });
  if (object.type === type) return object.body;
  throw new DurableError('object-damaged', { oid, detail: `a ${object.type} and not a ${type}` });
}

function parseScope(oid: string, bytes: Buffer): Scope {
  const parsed = v.safeParse(scopeSchema, json(oid, bytes));
  if (parsed.success) return parsed.output;
  throw new DurableError('object-damaged', {
    oid,
    detail: `the scope of a checkpoint: ${parsed.issues[0].message}`,
  });
}

function json(oid: string, bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    throw new DurableError('object-damaged', { oid, detail: 'the scope of a checkpoint is not JSON' }, error);
  }
}
