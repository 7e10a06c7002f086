/**
 * Where a repair wants each path to go, and which paths it leaves alone.
 *
 *   keep           nothing moves
 *   roll-back      to the image as the turn found it
 *   roll-forward   to the last intended image; a path whose last intent is not known stays as the turn left it
 *
 * A path that a killed repair has moved is judged, and moved on, from what the turn had left there.
 *
 * A foreign path never moves: it is kept and named. So is one where a folder or a file of another kind is in the way, one whose
 * bytes were purged, and one that the checkpoint of the repair does not hold as it is (or, where a killed repair moved it, as it was
 * before that): nothing could undo its move.
 */
import type { FileFinding, Findings } from './findings.js';
import type { Move } from '../files/manifest.js';
import { foldersAbove } from '../git/tree-path.js';
import { readCheckpoint } from '../files/checkpoint-read.js';
import { leftOutOf } from '../files/diff.js';
import { tangleAt } from '../files/tangle.js';
import { matches, type Expected } from '../files/verdict.js';
import { readWhole } from '../git/objects.js';
import type { Storage } from '../git/storage.js';
import type { KeptPath, RepairAction } from './document.js';
import { TreeView } from './tree-view.js';

export interface Aim {
  readonly moves: readonly Move[];
  /** Sorted. */
  readonly kept: readonly KeptPath[];
  /** Folders that go when they are empty then. */
  readonly prune: ReadonlySet<string>;
}

/** `checkpoint`: of the tree just before the repair, by which it can be undone. */
export async function aimOf(
  storage: Storage,
  at: { readonly action: RepairAction; readonly findings: Findings; readonly checkpoint: string },
): Promise<Aim> {
  const { action, findings, checkpoint } = at;
  const kept: KeptPath[] = findings.files
    .filter(isForeign)
    .map(({ touched: { path } }) => ({ path, why: 'foreign' }));
  if (action === 'keep') return { moves: [], kept, prune: new Set() };
  const isHeld = await holderOf(storage, checkpoint);
  const moves: Move[] = [];
  for (const finding of findings.files) {
    const move = isForeign(finding) ? null : moveOf(action, finding);
    if (move === null) continue;
    const { path } = move;
    if (!(await isReadable(storage, move))) kept.push({ path, why: 'bytes-missing' });
    else if (!(await isHeld(finding, move))) kept.push({ path, why: 'not-held' });
    else moves.push(move);
  }
  const free = untangled(storage, moves);
  for (const { path } of moves.filter((move) => !free.includes(move))) kept.push({ path, why: 'in-the-way' });
  kept.sort((a, b) => (a.path < b.path ? -1 : 1));
  return { moves: free, kept, prune: pruned(action, findings) };
}

/** Says whether the checkpoint has what a move replaces, and a restore of it would put that back. */
async function holderOf(
  storage: Storage,
  checkpoint: string,
): Promise<(finding: FileFinding, move: Move) => Promise<boolean>> {
  const tree = await TreeView.open(storage, `${checkpoint}:worktree`);
  const isLeftOut = leftOutOf((await readCheckpoint(storage, checkpoint)).scope);
  return async ({ displaced }, { path, from }) => {
    // The repair of a turn takes its checkpoint as if the killed one had not moved it, that of a restore as it is.
    const last = displaced === null ? [from] : [displaced.original, from];
    if (last.includes(null)) return true;
    const leaf = isLeftOut(path) ? null : await tree.leaf(path);
    return leaf !== null && last.some((image) => leaf.oid === image?.oid && leaf.mode === image.mode);
  };
}

function isForeign({ left }: FileFinding): boolean {
  return left.state === 'foreign';
}

function moveOf(action: RepairAction, { touched, left, displaced, sight }: FileFinding): Move | null {
  const wanted: Expected = action === 'roll-back' ? left.before : left.target;
  const to = wanted === 'unknown' && displaced !== null ? displaced.original : wanted;
  if (to === 'unknown' || sight.found === 'special' || matches(sight.found, to)) return null;
  const from = sight.found === 'directory' ? null : sight.found;
  const permissions = action === 'roll-back' ? touched.permissions : null;
  return { path: touched.path, from, to, permissions };
}

async function isReadable(storage: Storage, { to }: Move): Promise<boolean> {
  return to === null || (await readWhole(storage.objects, to.oid)) !== undefined;
}

/** Taking a move out may tangle another one, so this is repeated until nothing is tangled. */
function untangled(storage: Storage, moves: readonly Move[]): readonly Move[] {
  const after = new Map(moves.map(({ path, to }) => [path, to]));
  const free = moves.filter(({ path, to }) => {
    return to === null || tangleAt(storage.layout.workTree, path, after) === null;
  });
  return free.length === moves.length ? free : untangled(storage, free);
}

/** Rolling back: folders that a transaction made; above a file that a call made, nobody knows which were made with it. */
function pruned(action: RepairAction, { files, folders }: Findings): ReadonlySet<string> {
  if (action !== 'roll-back') return new Set();
  const prune = new Set(folders);
  for (const { touched, verdict } of files) {
    if (verdict.before !== null || touched.isListed) continue;
    for (const folder of foldersAbove(touched.path)) prune.add(folder);
  }
  return prune;
}
