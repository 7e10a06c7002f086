/**
 * What a restore would do, path by path: a pure comparison of two trees, and a look at what lies in the way.
 *
 * The rules, and what taught them:
 * - a path of the checkpoint is put there as it was (anomalyco/opencode#3148), by a move from what the snapshot of now holds;
 * - an addition is removed only when that snapshot holds it, so that it can be had back (github/copilot-cli#1675);
 * - never touched are paths the checkpoint did not look at: skipped (openai/codex#8055), ignored by its own rules, absent in
 *   a sparse checkout; nor what the snapshot of now cannot hold, whatever the checkpoint says of it;
 * - a folder that holds anything else does not give way to a file, nor does such a file to a folder.
 */
import { lstatSync, type Stats } from 'node:fs';
import { diskError, isAbsence } from '../git/disk.js';
import { fsPath } from '../git/path.js';
import type { Storage } from '../git/storage.js';
import type { TreeChange } from '../git/tree-changes.js';
import { below } from '../git/walk.js';
import type { Scope } from './checkpoint-read.js';
import { isAtOrBelow, leftOutOf } from './diff.js';
import type { Move } from './manifest.js';
import { foldersAbove, treePath } from '../git/tree-path.js';

export type Untouched = Scope['skipped'][number]['why'] | 'ignored' | 'absent' | 'in-the-way';

export interface RestorePlan {
  readonly moves: readonly Move[];
  readonly skipped: readonly { readonly path: string; readonly why: Untouched }[];
  /** There, not in the snapshot of now, but in the checkpoint: a snapshot that is to hold them must name them. */
  readonly uncovered: readonly string[];
}

export interface PlanRestore {
  /** From the checkpoint (before) to now (after), of the paths asked for. */
  readonly changes: readonly TreeChange[];
  /** What was asked for; undefined: everything. */
  readonly paths: readonly string[] | undefined;
  readonly target: Scope;
  readonly now: Pick<Scope, 'skipped' | 'absent'> | NowFacts;
  /** Of what is not in the checkpoint: paths that its own ignore rules match. */
  readonly ignored: ReadonlySet<string>;
}

interface NowFacts {
  readonly skipped: readonly Scope['skipped'][number][];
  readonly absent: readonly string[];
}

/** Errors: 'permission-denied', 'io-failed'. */
export function planRestore(storage: Storage, plan: PlanRestore): RestorePlan {
  return new Planning(storage, plan).plan();
}

class Planning {
  readonly #root: string;
  readonly #plan: PlanRestore;
  readonly #moves: Move[] = [];
  readonly #skipped = new Map<string, Untouched>();
  readonly #uncovered: string[] = [];
  readonly #removed = new Set<string>();

  constructor(storage: Storage, plan: PlanRestore) {
    this.#root = storage.layout.workTree;
    this.#plan = plan;
  }

  plan(): RestorePlan {
    const { changes } = this.#plan;
    for (const change of changes) if (change.before === null) this.#remove(change);
    for (const change of changes) if (change.before !== null) this.#put(change);
    this.#nameLost();
    const skipped = [...this.#skipped].map(([path, why]) => ({ path, why }));
    return { moves: this.#moves, skipped, uncovered: this.#uncovered };
  }

  /** What the checkpoint left out and is gone now cannot be put back, which must not be kept quiet. */
  #nameLost(): void {
    const { target, paths } = this.#plan;
    const places = paths === undefined ? null : new Set(paths.map((path) => treePath(path)));
    for (const { path, why } of target.skipped)
      if ((places === null || isAtOrBelow(path, places)) && this.#stat(path) === null)
        this.#skipped.set(path, why);
  }

  #remove({ path, after }: TreeChange): void {
    const { target, ignored } = this.#plan;
    const why = reasonIn(target, path);
    if (why !== null) this.#skipped.set(path, why);
    else if (ignored.has(path) && !isAtOrBelow(path, new Set(target.named)))
      this.#skipped.set(path, 'ignored');
    else {
      this.#removed.add(path);
      this.#moves.push({ path, from: after, to: null });
    }
  }

  #put({ path, before, after }: TreeChange): void {
    const why =
      reasonIn(this.#plan.now, path) ?? (this.#isBlocked(path, after !== null) ? 'in-the-way' : null);
    if (why !== null) this.#skipped.set(path, why);
    else if (after === null && this.#isThere(path)) this.#uncovered.push(path);
    else this.#moves.push({ path, from: after, to: before });
  }

  /** A folder in the file's place that keeps something, or a file above it that stays. */
  #isBlocked(path: string, isHeld: boolean): boolean {
    for (const folder of foldersAbove(path)) {
      const stat = this.#stat(folder);
      if (stat === null) return false;
      if (!stat.isDirectory()) return !this.#removed.has(folder);
    }
    const stat = isHeld ? null : this.#stat(path);
    if (stat?.isDirectory() !== true) return false;
    const { files, nested, unreadable } = below(this.#root, path);
    return nested.length + unreadable.length > 0 || files.some((file) => !this.#removed.has(file));
  }

  #isThere(path: string): boolean {
    for (const folder of foldersAbove(path)) if (this.#removed.has(folder)) return false;
    const stat = this.#stat(path);
    return stat !== null && !stat.isDirectory();
  }

  #stat(path: string): Stats | null {
    const place = fsPath(this.#root, path);
    try {
      return lstatSync(place);
    } catch (error) {
      if (isAbsence(error)) return null;
      throw diskError(error, place);
    }
  }
}

function reasonIn(side: PlanRestore['now'], path: string): Untouched | null {
  if (!leftOutOf(side)(path)) return null;
  const skipped = side.skipped.find((one) => path === one.path || path.startsWith(`${one.path}/`));
  return skipped?.why ?? 'absent';
}
