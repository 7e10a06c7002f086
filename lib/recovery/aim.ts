/**
 * Where a repair wants each path to go, and which paths it leaves alone.
 *
 *   keep           nothing moves
 *   roll-back      to the image as the turn found it
 *   roll-forward   to the last intended image; a path whose last intent is not known stays as the turn left it
 *
 * A path that a killed repair has moved is judged, and moved on, from what the turn had left there.
 *
 * A foreign path never moves: it is kept and named. So is one where a folder or a file of another kind is in the way, or
 * whose bytes were purged.
 */
import type { FileFinding, Findings } from './findings.js';
import type { Move } from '../files/manifest.js';
import { foldersAbove } from '../git/tree-path.js';
import { tangleAt } from '../files/tangle.js';
import { matches, type Expected } from '../files/verdict.js';
import type { Storage } from '../git/storage.js';
import type { RepairAction } from './document.js';

export interface Aim {
  readonly moves: readonly Move[];
  /** Sorted. */
  readonly kept: readonly string[];
  /** Folders that go when they are empty then. */
  readonly prune: ReadonlySet<string>;
}

export async function aimOf(storage: Storage, action: RepairAction, findings: Findings): Promise<Aim> {
  const kept = findings.files.filter(isForeign).map(({ touched }) => touched.path);
  if (action === 'keep') return { moves: [], kept, prune: new Set() };
  const moves: Move[] = [];
  for (const finding of findings.files) {
    const move = isForeign(finding) ? null : moveOf(action, finding);
    if (move === null) continue;
    if (await isReadable(storage, move)) moves.push(move);
    else kept.push(move.path);
  }
  const free = untangled(storage, moves);
  kept.push(...moves.filter((move) => !free.includes(move)).map(({ path }) => path));
  return { moves: free, kept: kept.sort(), prune: pruned(action, findings) };
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
  return to === null || (await storage.objects.read(to.oid)) !== undefined;
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
