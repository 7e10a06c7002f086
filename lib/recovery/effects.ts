/**
 * What a call of unknown effect has changed: the difference between the checkpoint before it and the scene of the turn's
 * death, or, where there is no scene, the work tree as it is now.
 */
import type { Image } from '../event.js';
import { compareCheckpoints, inSight, type LeftOut } from '../files/diff.js';
import { statIn } from '../git/tree-path.js';
import { displacementAt, type Displaced } from './displaced.js';
import type { Aftermath } from './scene.js';
import type { RecoveryContext } from './touched.js';
import { TreeView } from './tree-view.js';

export interface Effects {
  /** Path to its image before the call. */
  readonly changed: ReadonlyMap<string, Image>;
  /** Of those: changed after the turn was over. */
  readonly late: ReadonlySet<string>;
  /** Paths that one of the compared trees did not look into. */
  readonly leftOut: readonly LeftOut[];
}

export interface Circumstances extends Aftermath {
  readonly displaced: Displaced;
}

/** What a checkpoint left out has no image to go back to, and is in neither list. Errors: those of a snapshot. */
export async function effectsOf(
  context: RecoveryContext,
  checkpoint: string,
  circumstances: Circumstances,
): Promise<Effects> {
  const { scene } = circumstances;
  if (scene === null) return untilNow(context, checkpoint, circumstances);
  const { storage } = context;
  const changed = new Map<string, Image>();
  const late = new Set<string>();
  const until = await compareCheckpoints(storage, checkpoint, scene.commit);
  for (const { path, before } of inSight(until)) if (before !== 'unknown') changed.set(path, before);
  const since = await compareCheckpoints(storage, scene.commit);
  for (const { path, before, after } of inSight(since)) {
    const isMoved = after !== 'unknown' && displacementAt(circumstances.displaced, path, after) !== undefined;
    if (before === 'unknown' || isMoved) continue;
    if (!changed.has(path)) changed.set(path, before);
    late.add(path);
  }
  return { changed, late, leftOut: [...until.leftOut, ...since.leftOut] };
}

async function untilNow(
  { storage }: RecoveryContext,
  checkpoint: string,
  { deadBy, displaced }: Circumstances,
): Promise<Effects> {
  const changed = new Map<string, Image>();
  const late = new Set<string>();
  const compared = await compareCheckpoints(storage, checkpoint);
  for (const { path, before } of inSight(compared)) {
    if (before === 'unknown') continue;
    changed.set(path, before);
    // Where nothing is, nothing says when it went; to bring it back loses nothing.
    const changedAt = statIn(storage.layout.workTree, path)?.ctimeMs ?? 0;
    if (deadBy !== null && changedAt > deadBy && !displaced.has(path)) late.add(path);
  }
  // A killed roll back has put these back to where they were, so they do not differ.
  const before = await TreeView.open(storage, `${checkpoint}:worktree`);
  for (const path of displaced.keys()) {
    const leaf = changed.has(path) ? undefined : await before.leaf(path);
    if (leaf !== undefined) changed.set(path, imageOf(leaf));
  }
  return { changed, late, leftOut: compared.leftOut };
}

function imageOf(leaf: { readonly mode: string; readonly oid: string } | null): Image {
  if (leaf === null) return null;
  const { mode, oid } = leaf;
  return mode === '100644' || mode === '100755' || mode === '120000' ? { mode, oid } : null;
}
