/**
 * What differs between two checkpoints, or between one and the work tree as it is now.
 *
 * Looking writes nothing: the work tree is read into a quarantine that goes again (anomalyco/opencode#5910), elsewhere where the
 * git dir takes none. Renames are not
 * guessed. A path that one side left out (`skipped`) is told from one that is not there: it is named as `unknown` there.
 */
import type { Image } from '../event.js';
import { looking } from '../git/looking.js';
import { takeSnapshot } from '../git/snapshot.js';
import type { Storage } from '../git/storage.js';
import { parseComparison, type TreeChange } from '../git/tree-changes.js';
import { readCheckpoint, type Scope, type StoredCheckpoint } from './checkpoint-read.js';
import { comparing, type Root } from './comparing.js';

export interface Difference {
  readonly path: string;
  /** 'retyped': a file became a link or the other way round; 'modified' covers exec bits, and sides that are not known. */
  readonly status: 'added' | 'deleted' | 'modified' | 'retyped';
  /** null: no file there; 'unknown': left out of that side. */
  readonly before: Image | 'unknown';
  readonly after: Image | 'unknown';
}

export type LeftOut = Scope['skipped'][number];

export interface Compared {
  readonly differences: Difference[];
  /** What either side did not look into, by path: nobody knows whether it differs. */
  readonly leftOut: readonly LeftOut[];
}

/** The differences alone of `compareCheckpoints`. */
export async function diffCheckpoints(
  storage: Storage,
  from: string,
  to = 'worktree',
): Promise<Difference[]> {
  return (await compareCheckpoints(storage, from, to)).differences;
}

/**
 * By path. `to` is a checkpoint's id, or 'worktree' for the work tree as it is now. Ids are whole (`resolveCheckpoint`). Errors: 'not-found', 'object-missing',
 * those of a snapshot.
 */
export async function compareCheckpoints(storage: Storage, from: string, to = 'worktree'): Promise<Compared> {
  const before = await readCheckpoint(storage, from);
  if (to === 'worktree') return looking(storage, (at) => diffWorkTree(at, before));
  const after = await readCheckpoint(storage, to);
  const changes = await changesOf(storage, rootOf(before), rootOf(after));
  return described(changes, before.scope, after.scope);
}

/** Differences of two trees that are in the object store. Errors: 'object-missing', 'object-damaged', 'git-failed'. */
export function treeChanges(storage: Storage, from: string, to: string): Promise<TreeChange[]> {
  return changesOf(storage, { tree: from, of: `tree ${from}` }, { tree: to, of: `tree ${to}` });
}

async function changesOf(storage: Storage, from: Root, to: Root): Promise<TreeChange[]> {
  if (from.tree === to.tree) return [];
  const args = ['diff-tree', '-r', '-z', '--raw', '--no-renames', '--no-ext-diff', from.tree, to.tree];
  const output = await comparing(storage, [from, to], () => storage.git.output(args));
  return [...parseComparison(output).changes];
}

export const rootOf = ({ tree, checkpoint }: StoredCheckpoint): Root => ({
  tree,
  of: `checkpoint ${checkpoint}`,
});

async function diffWorkTree(storage: Storage, before: StoredCheckpoint): Promise<Compared> {
  // What the checkpoint holds by name, though ignored, is compared too.
  const snapshot = await takeSnapshot(storage, before.scope.named);
  try {
    const changes = await comparing(storage, [rootOf(before)], () => snapshot.changes(before.tree));
    return described(changes, before.scope, snapshot.facts);
  } finally {
    snapshot.discard();
  }
}

interface Side {
  readonly skipped: readonly LeftOut[];
  readonly absent: readonly string[];
}

function described(changes: readonly TreeChange[], from: Side, to: Side): Compared {
  const isOut = { before: leftOutOf(from), after: leftOutOf(to) };
  const differences = changes.map(({ path, before, after }): Difference => {
    const left = before === null && isOut.before(path) ? 'unknown' : before;
    const right = after === null && isOut.after(path) ? 'unknown' : after;
    return { path, status: statusOf(left, right), before: left, after: right };
  });
  return { differences, leftOut: [...byPath([...from.skipped, ...to.skipped]).values()] };
}

/** Each path once, sorted; where two say why, the later one counts. */
function byPath(leftOut: readonly LeftOut[]): ReadonlyMap<string, LeftOut> {
  const sorted = leftOut.toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  return new Map(sorted.map((one) => [one.path, one]));
}

function statusOf(before: Difference['before'], after: Difference['after']): Difference['status'] {
  if (before === null) return 'added';
  if (after === null) return 'deleted';
  if (before === 'unknown' || after === 'unknown') return 'modified';
  return (before.mode === '120000') === (after.mode === '120000') ? 'modified' : 'retyped';
}

/** Without what lies in a folder that the later side could not enter: it is not gone, and nobody can look at it. */
export function inSight({ differences, leftOut }: Compared): readonly Difference[] {
  const skipped = leftOut.filter(({ why }) => why === 'unreadable');
  const isHidden = leftOutOf({ skipped, absent: [] });
  return differences.filter(({ path, after }) => after !== 'unknown' || !isHidden(path));
}

/** Says of a path whether a snapshot left it, or a folder above it, out. */
export function leftOutOf(side: Side): (path: string) => boolean {
  const out = new Set([...side.skipped.map(({ path }) => path), ...side.absent]);
  return (path) => isAtOrBelow(path, out);
}

/** True when the path or a folder above it is in the set. */
export function isAtOrBelow(path: string, places: ReadonlySet<string>): boolean {
  if (places.size === 0) return false;
  for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1))
    if (places.has(path.slice(0, end))) return true;
  return places.has('');
}
