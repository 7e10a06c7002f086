/**
 * Restoring the work tree, whole or by path, to a checkpoint: recorded, and undone by restoring the checkpoint before it.
 *
 * Order: what is to be done (`previewRestore`, which writes nothing) · a checkpoint of now that holds every path that will be
 * written or removed · one transaction (lib/files/transaction.ts), which a crash leaves to recovery · `workspace.restored`.
 *
 * Guarantees: the paths asked for are as the checkpoint has them, byte for byte, and no others are written; what is not in it
 * is removed under the rules of restore-plan.ts only, and folders that this empties go with it. The user's index is
 * not written: `git status` afterwards shows what is on disk. HEAD and branches stay, so the files of before a git command
 * can be had back without moving them. A restore that finds nothing to do writes nothing and says so. Undo is a new
 * restore, of `checkpoint`: the exact inverse.
 * Caveats: empty folders, owners, times and permission bits beyond the executable one are not in a checkpoint.
 */
import { DurableError, hasCode, isLoss } from '../errors.js';
import { ignoredUnder } from '../git/ignore-rules.js';
import { looking } from '../git/looking.js';
import { takeSnapshot } from '../git/snapshot.js';
import { displayPath, splitPaths } from '../git/path.js';
import type { Storage } from '../git/storage.js';
import type { TreeChange } from '../git/tree-changes.js';
import { statIn, treePath } from '../git/tree-path.js';
import { takeCheckpoint } from './checkpoint.js';
import { refuseConflicting } from './conflict.js';
import { readCheckpoint, type Scope, type StoredCheckpoint } from './checkpoint-read.js';
import { comparing } from './comparing.js';
import { isAtOrBelow, rootOf, treeChanges } from './diff.js';
import type { Move } from './manifest.js';
import { planRestore, type RestorePlan } from './restore-plan.js';
import { applyEntries, type TransactionContext } from './transaction.js';

export interface RestoreRequest {
  /** Whole id (`resolveCheckpoint`). */
  readonly checkpoint: string;
  /** Relative to the work tree, literally; a folder means all below it. Default: the whole work tree. */
  readonly paths?: readonly string[];
}

export interface Restored {
  /** Paths that were written, by path. */
  readonly restored: readonly string[];
  readonly removed: readonly string[];
  /** Paths that differ and were left as they are, and why. */
  readonly skipped: RestorePlan['skipped'];
  /** The checkpoint just before: restoring it undoes this. Null when there was nothing to do, and in a preview. */
  readonly checkpoint: string | null;
}

/**
 * What `restore` would do now. Writes nothing. Errors: 'not-found' (no such checkpoint, or a named path that is neither in it
 * nor here), 'path-outside', 'path-refused', 'object-missing', those of a snapshot.
 */
export async function previewRestore(storage: Storage, request: RestoreRequest): Promise<Restored> {
  return outcome((await looking(storage, (at) => look(at, request))).plan, null);
}

/**
 * Errors: as `previewRestore`, those of a checkpoint and of a transaction ('conflict' when a path changed after the
 * checkpoint of now; everything is then as it was), 'lease-lost'.
 */
export async function restore(
  context: TransactionContext,
  request: RestoreRequest,
  invocation?: string,
): Promise<Restored> {
  const { storage, ledger, held, agent, workspace, turn } = context;
  const { target, plan, named } = await look(storage, request);
  if (plan.moves.length + plan.uncovered.length === 0) return outcome(plan, null);
  // A person may restore over a conflict of his own; an agent has to wait for his decision.
  if (turn !== null)
    await refuseConflicting({ storage, ledger, workspace }, [
      ...plan.moves.map(({ path }) => path),
      ...plan.uncovered,
    ]);
  const before = await takeCheckpoint(storage, ledger, {
    message: `before restoring ${request.checkpoint.slice(0, 12)}`,
    reason: 'before-restore',
    paths: [...named, ...plan.uncovered],
    turn,
    by: { lease: null, agent, workspace },
  });
  const now = await readCheckpoint(storage, before.checkpoint);
  const final = await planFor(storage, { target, now, paths: request.paths });
  const isKept = await isOwn(context, request.checkpoint);
  const options = { purpose: 'restore', isKept, prune: 'emptied' } as const;
  const { transaction } = await namingLost(request.checkpoint, final.moves, () =>
    applyEntries(context, final.moves, { ...options, ...(invocation === undefined ? {} : { invocation }) }),
  );
  const done = outcome(final, before.checkpoint);
  await ledger.append(
    () => [
      {
        type: 'workspace.restored',
        turn,
        checkpoint: request.checkpoint,
        undo: before.checkpoint,
        transaction,
        paths: request.paths === undefined ? null : request.paths.map((path) => treePath(path) || '.'),
        restored: done.restored.length,
        removed: done.removed.length,
        skipped: done.skipped.length,
      },
    ],
    { lease: held.token, agent, workspace },
  );
  return done;
}

/** Where the bytes of a file are lost nothing is restored, and the file is named. */
async function namingLost<T>(
  checkpoint: string,
  moves: readonly Move[],
  apply: () => Promise<T>,
): Promise<T> {
  try {
    return await apply();
  } catch (error) {
    if (!isLoss(error)) throw error;
    const { oid } = error.fields;
    const move = moves.find(({ to }) => to?.oid === oid);
    if (move === undefined) throw error;
    const file = `'${displayPath(move.path)}' of checkpoint ${checkpoint.slice(0, 12)}`;
    if (hasCode(error, 'object-missing'))
      throw new DurableError('object-missing', { oid, needed: `${file}; nothing was restored` }, error);
    throw new DurableError('object-damaged', { oid, detail: `${file}; nothing was restored` }, error);
  }
}

interface Look {
  readonly target: StoredCheckpoint;
  readonly plan: RestorePlan;
  /** What the checkpoint holds by name. */
  readonly named: readonly string[];
}

async function look(storage: Storage, request: RestoreRequest): Promise<Look> {
  const target = await readCheckpoint(storage, request.checkpoint);
  const { named } = target.scope;
  const snapshot = await takeSnapshot(storage, named);
  try {
    const all = await comparing(storage, [rootOf(target)], () => snapshot.changes(target.tree));
    const changes = selected(all, request.paths);
    await demandKnown(storage, { target, paths: request.paths, changes });
    const ignored = await ignoredAdditions(storage, target, changes);
    const plan = planRestore(storage, {
      changes,
      paths: request.paths,
      target: target.scope,
      now: snapshot.facts,
      ignored,
    });
    return { target, plan, named };
  } finally {
    snapshot.discard();
  }
}

async function planFor(
  storage: Storage,
  at: { target: StoredCheckpoint; now: StoredCheckpoint; paths: readonly string[] | undefined },
): Promise<RestorePlan> {
  const changes = selected(await treeChanges(storage, at.target.tree, at.now.tree), at.paths);
  const ignored = await ignoredAdditions(storage, at.target, changes);
  const now: Scope = at.now.scope;
  const plan = planRestore(storage, {
    changes,
    paths: at.paths,
    target: at.target.scope,
    now,
    ignored,
  });
  // Came between the two looks: the checkpoint of now does not hold it, so it stays.
  const late = plan.uncovered.map((path) => ({ path, why: 'in-the-way' as const }));
  return { moves: plan.moves, skipped: [...plan.skipped, ...late], uncovered: [] };
}

function ignoredAdditions(
  storage: Storage,
  target: StoredCheckpoint,
  changes: readonly TreeChange[],
): Promise<Set<string>> {
  const additions = changes.filter(({ before }) => before === null).map(({ path }) => path);
  return ignoredUnder(storage, target.tree, additions);
}

function selected(changes: readonly TreeChange[], paths: readonly string[] | undefined): TreeChange[] {
  if (paths === undefined) return [...changes];
  const places = new Set(paths.map((path) => treePath(path)));
  return changes.filter(({ path }) => isAtOrBelow(path, places));
}

/** A named path that is nowhere is an error: a restore that does nothing must not say done (anomalyco/opencode#29161). */
async function demandKnown(
  storage: Storage,
  at: { target: StoredCheckpoint; paths: readonly string[] | undefined; changes: readonly TreeChange[] },
): Promise<void> {
  const isChanged = (place: string): boolean =>
    at.changes.some(({ path }) => isAtOrBelow(path, new Set([place])));
  await demandHeld(
    storage,
    at.target,
    (at.paths ?? []).map((path) => treePath(path)).filter((place) => !isChanged(place)),
  );
}

/**
 * Refuses a request whose paths no restore could do anything about: a look before anything is taken or written. Errors:
 * 'path-outside', 'path-refused', 'not-found'.
 */
export async function checkPaths(storage: Storage, request: RestoreRequest): Promise<void> {
  const places = (request.paths ?? []).map((path) => treePath(path));
  const isHere = (place: string): boolean => statIn(storage.layout.workTree, place) !== null;
  const absent = places.filter((place) => !isHere(place));
  if (absent.length > 0) await demandHeld(storage, await readCheckpoint(storage, request.checkpoint), absent);
}

async function demandHeld(
  storage: Storage,
  target: StoredCheckpoint,
  places: readonly string[],
): Promise<void> {
  const unknown = places.filter((place) => place !== '');
  if (unknown.length === 0) return;
  const args = ['ls-tree', '-r', '-z', '--full-tree', '--name-only', target.tree];
  const { skipped, absent } = target.scope;
  const known = [
    ...splitPaths(await storage.git.output(args)),
    ...skipped.map(({ path }) => path),
    ...absent,
  ];
  for (const place of unknown) {
    if (known.some((path) => path === place || path.startsWith(`${place}/`))) continue;
    throw new DurableError('not-found', {
      what: `path in checkpoint ${target.checkpoint.slice(0, 12)}`,
      id: place,
    });
  }
}

/** True when the checkpoint is one of this task: its blobs are reachable from the same ref as the new one's. */
async function isOwn({ storage, ledger }: TransactionContext, checkpoint: string): Promise<boolean> {
  const tip = storage.refs.read(ledger.contents.ref);
  if (tip === null) return false;
  return (await storage.git.run(['merge-base', '--is-ancestor', checkpoint, tip])).code === 0;
}

function outcome(plan: RestorePlan, checkpoint: string | null): Restored {
  const paths = (moves: readonly Move[]): string[] => moves.map(({ path }) => path).sort();
  return {
    restored: paths(plan.moves.filter(({ to }) => to !== null))
      .concat(plan.uncovered)
      .sort(),
    removed: paths(plan.moves.filter(({ to }) => to === null)),
    skipped: plan.skipped,
    checkpoint,
  };
}
