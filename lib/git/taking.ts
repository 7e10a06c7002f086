/**
 * One taking of a snapshot, in one quarantine: find the names, look at them, bring the private index up to date, write the
 * tree. lib/git/snapshot.ts says what it is for and what it promises.
 */
import { closeSync, existsSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { NameFinder, parseState, type ChangedNames, type IndexState } from './changed-names.js';
import { GREAT_MANY } from './first-index.js';
import { splitPaths } from './path.js';
import { MANY, PathLooks, type SkipReason } from './path-looks.js';
import { preload } from './preload.js';
import type { PrivateDir } from './private-dir.js';
import { PrivateIndex, type Feed, type Outcome } from './private-index.js';
import type { Quarantine } from './quarantine.js';
import type { Storage } from './storage.js';
import { Comparisons, type Comparison } from './tree-changes.js';
import { editTree, type TreeEdit } from './tree-edit.js';
import { below, isRepository } from './walk.js';

export interface SkippedPath {
  readonly path: string;
  readonly why: SkipReason;
}

export interface SnapshotFacts {
  /** The work tree's own tree. */
  readonly tree: string;
  /** Files and links in it. */
  readonly files: number;
  /** All of them, by path. */
  readonly skipped: readonly SkippedPath[];
  /** Tracked, left out by a sparse checkout, and not on disk. */
  readonly absent: readonly string[];
}

/** What a taking leaves for whoever publishes it. */
export interface Taken {
  readonly facts: SnapshotFacts;
  readonly storage: Storage;
  readonly quarantine: Quarantine;
  readonly dir: PrivateDir;
  readonly state: IndexState;
  /** How many paths the private HEAD differs by. */
  readonly behind: number;
  readonly compare: (from: string, to: string) => Promise<Comparison>;
  /** Brings the private index up to the tree, where that is still to be done. Errors: 'out-of-space', 'git-failed'. */
  readonly finishIndex: () => Promise<void>;
}

export class Taking {
  readonly #storage: Storage;
  readonly #dir: PrivateDir;
  readonly #quarantine: Quarantine;
  readonly #finder: NameFinder;
  readonly #index: PrivateIndex;
  readonly #skipped = new Map<string, SkipReason>();
  /** Files that were named themselves, not by a folder above: kept though they are over the limit. */
  readonly #named = new Set<string>();
  readonly #looks: PathLooks;
  readonly #comparisons: Comparisons;

  constructor(storage: Storage, dir: PrivateDir, quarantine: Quarantine) {
    this.#storage = storage;
    this.#dir = dir;
    this.#quarantine = quarantine;
    this.#finder = new NameFinder(storage, dir, quarantine);
    this.#comparisons = new Comparisons((args) => dir.output(quarantine, args));
    const named = this.#named;
    this.#index = new PrivateIndex(storage, { dir, quarantine, named });
    this.#looks = new PathLooks(storage, { since: quarantine.bornAt, skipped: this.#skipped, named });
  }

  /** Errors: 'git-failed', 'out-of-space', the disk's. */
  async take(also: readonly string[]): Promise<Taken> {
    const old = this.#copyIndex();
    const named = this.#namedFiles(also);
    return old === null ? this.#first(named) : this.#next(old, named);
  }

  /** git reads what is tracked while the rest is still being found. */
  async #first(named: ReadonlySet<string>): Promise<Taken> {
    const listing = this.#finder.others();
    // Awaited below, when tracked names may have failed first.
    listing.catch(() => undefined);
    const names = await this.#finder.tracked();
    const filled = names.look.length < GREAT_MANY ? null : await this.#index.fill(names.look);
    const left = filled === null ? names.look : filled.absent;
    const tracked = (await this.#update(left, { names, ignored: [] })) ?? filled?.outcome ?? null;
    const { files, nested, closed } = await this.#finder.othersAfter(names, await listing);
    const untracked = files.filter((path) => !names.base.missing.has(path));
    const look = [...new Set([...untracked, ...named])];
    const others = await this.#update(look, { names: { ...names, untracked: look }, ignored: [] });
    this.#nameNested([...nested, ...names.base.submodules]);
    this.#nameClosed(closed);
    const outcome = others ?? tracked;
    const known = others === null && filled?.isWhole === true ? names.look : null;
    const [tree, listed] = await this.#tree({ old: null, outcome, isMany: names.look.length > MANY, known });
    return this.#result({ old: null, tree, names: { ...names, closed }, outcome, listed, finishIndex });
  }

  async #next(old: IndexState, named: ReadonlySet<string>): Promise<Taken> {
    const names = await this.#finder.since(old);
    this.#nameNested([...names.nested, ...names.base.submodules]);
    this.#nameClosed(names.closed);
    const look = [...new Set([...names.look, ...named])];
    const ignored = names.ignored.filter((path) => !named.has(path));
    if (look.length + ignored.length <= FEW) {
      const edited = await this.#edited(old, { look, names, ignored });
      if (edited !== null) return edited;
    }
    const outcome = await this.#update(look, { names, ignored });
    const [tree, listed] = await this.#tree({ old, outcome, isMany: false, known: [] });
    return this.#result({ old, tree, names, outcome, listed, finishIndex });
  }

  /**
   * The next tree made from the last one by a few edits, without an index, which follows while the objects are packed. Null
   * when it takes an index after all.
   */
  async #edited(old: IndexState, { look, names, ignored }: Found): Promise<Taken | null> {
    const sorted = this.#looks.sort(look, { names, isFirst: false });
    const feeds: Feed[] = [];
    for await (const some of sorted.feeds) feeds.push(...some);
    const sizes = feeds.reduce((sum, { stat }) => sum + Number(stat?.size ?? 0), 0);
    if (sizes > FEW_BYTES) return null;
    const read = await this.#index.read([...feeds.map(({ path }) => path), ...sorted.held]);
    const gone = [...ignored, ...sorted.removed].map((path): TreeEdit => ({ path, image: null }));
    const edits = [...gone, ...read.entries];
    const edited = await editTree(this.#storage, old.tree, edits);
    if (edited === null) return null;
    for (const body of edited.made.values()) this.#quarantine.store('tree', body);
    this.#comparisons.know(old.tree, edited.tree, edited.comparison);
    const finishIndex = async (): Promise<void> => {
      await this.#index.set(edits);
      this.#index.backdate();
    };
    return this.#result({ old, tree: edited.tree, names, outcome: read, listed: [], finishIndex });
  }

  #nameNested(folders: readonly string[]): void {
    for (const path of folders)
      if (isRepository(this.#storage.layout.workTree, path)) this.#skipped.set(path, 'nested-repository');
  }

  #nameClosed(folders: readonly string[]): void {
    for (const path of folders) this.#skipped.set(path, 'unreadable');
  }

  /** Writes the tree and, unless its names are `known`, lists it, while git verifies what it was fed; again if something had moved. */
  async #tree(at: {
    old: IndexState | null;
    outcome: Outcome | null;
    isMany: boolean;
    known: readonly string[] | null;
  }): Promise<[string, readonly string[]]> {
    const write = (known: readonly string[] | null): Promise<[string, readonly string[]]> =>
      Promise.all([
        at.old !== null && at.outcome === null ? at.old.tree : this.#writeTree(),
        known ?? this.#list(),
      ]);
    const [written, moved] = await Promise.all([
      write(at.known),
      at.isMany ? this.#index.changedSince() : [],
    ]);
    if (moved.length > 0) await this.#index.hold(moved);
    const result = moved.length > 0 ? await write(at.old === null ? null : []) : written;
    this.#index.backdate();
    return result;
  }

  /** Copies the private index with its time of change; null when there is none whose state is known. */
  #copyIndex(): IndexState | null {
    const { index } = this.#dir;
    if (!existsSync(index)) return null;
    const fd = openSync(index, 'r');
    try {
      const { mtimeMs } = fstatSync(fd);
      const bytes = readFileSync(fd);
      const state = parseState(this.#dir.stateOf(bytes), this.#storage.settings.maxFileSize);
      if (state === null) return null;
      const copy = this.#quarantine.path('index');
      this.#quarantine.scratch.create('quarantine.scratch', copy, bytes);
      this.#quarantine.scratch.setModified('quarantine.scratch', copy, Math.floor(mtimeMs / 1000));
      return state;
    } finally {
      closeSync(fd);
    }
  }

  /** Files that were named explicitly. */
  #namedFiles(also: readonly string[]): Set<string> {
    const { workTree } = this.#storage.layout;
    const named = new Set<string>();
    for (const path of also) {
      this.#named.add(path);
      const found = below(workTree, path);
      for (const file of found.files) if (!this.#isInside(file)) named.add(file);
      for (const folder of found.nested) this.#skipped.set(folder, 'nested-repository');
      for (const folder of found.unreadable) this.#skipped.set(folder, 'unreadable');
    }
    return named;
  }

  /** True for a path inside a nested repository or a submodule, which is then named as skipped. */
  #isInside(path: string): boolean {
    const { workTree } = this.#storage.layout;
    for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1)) {
      const folder = path.slice(0, end);
      if (!isRepository(workTree, folder)) continue;
      this.#skipped.set(folder, 'nested-repository');
      return true;
    }
    return false;
  }

  /** Brings the index up to date; null when there was nothing to do. */
  async #update(
    look: readonly string[],
    { names, ignored }: { names: ChangedNames; ignored: readonly string[] },
  ): Promise<Outcome | null> {
    const [storage, quarantine, dir] = [this.#storage, this.#quarantine, this.#dir];
    const isFirst = !existsSync(quarantine.path('index'));
    const sorted = this.#looks.sort(look, { names, isFirst });
    const removed = [...ignored, ...sorted.removed];
    if (!isFirst && sorted.count + sorted.held.length + removed.length === 0) return null;
    if (names.untracked.length >= MANY_NEW)
      await preload(storage, quarantine, { dir, paths: names.untracked });
    return this.#index.update({ ...sorted, removed });
  }

  async #list(): Promise<string[]> {
    return splitPaths(await this.#dir.output(this.#quarantine, ['ls-files', '-z']));
  }

  async #writeTree(): Promise<string> {
    const output = await this.#dir.output(this.#quarantine, ['write-tree'], { site: 'snapshot.tree' });
    return output.toString('latin1').trim();
  }

  async #result(made: Made): Promise<Taken> {
    const { old, tree, names, outcome, listed } = made;
    const suspects = [...names.suspects, ...(outcome?.suspects ?? [])];
    for (const { path, why } of outcome?.skipped ?? []) this.#skipped.set(path, why);
    const { base } = names;
    const extras = new Set(base.extras);
    const missing = listed === names.look ? new Set<string>() : new Set(base.missing);
    const { added, removed } =
      old === null ? { added: listed, removed: [] } : await this.#difference(made, old);
    if (listed !== names.look) for (const path of added) if (!missing.delete(path)) extras.add(path);
    for (const path of removed) if (!extras.delete(path)) missing.add(path);
    const files = (old?.files ?? 0) + added.length - removed.length;
    const sparse = new Set(base.sparse);
    const absent = [...missing].filter((path) => sparse.has(path) && this.#looks.stat(path) === null);
    const skipped = [...this.#skipped].map(([path, why]) => ({ path, why }));
    const state: IndexState = {
      v: 1,
      limit: this.#storage.settings.maxFileSize,
      tree,
      kept: null,
      files,
      mark: base.mark,
      extras: [...extras],
      missing: [...missing],
      sparse: [...base.sparse],
      submodules: [...base.submodules],
      closed: [...names.closed],
      large: [...this.#named].filter((path) => this.#isLarge(path)),
      suspects,
    };
    const [storage, quarantine, dir] = [this.#storage, this.#quarantine, this.#dir];
    const compare: Taken['compare'] = (from, to) => this.#comparisons.of(from, to);
    const facts = { tree, files, skipped, absent };
    const { finishIndex } = made;
    return { facts, storage, quarantine, dir, state, behind: names.behind, compare, finishIndex };
  }

  #isLarge(path: string): boolean {
    const stat = this.#looks.stat(path);
    return stat?.isFile() === true && this.#looks.isLarge(stat);
  }

  /** Names that came into the index and went. */
  async #difference({ tree }: Made, old: IndexState): Promise<{ added: string[]; removed: string[] }> {
    const { changes } = await this.#comparisons.of(old.tree, tree);
    return {
      added: changes.filter(({ before }) => before === null).map(({ path }) => path),
      removed: changes.filter(({ after }) => after === null).map(({ path }) => path),
    };
  }
}

/** What a look at the names has found. */
interface Found {
  readonly look: readonly string[];
  readonly names: ChangedNames;
  readonly ignored: readonly string[];
}

interface Made {
  readonly old: IndexState | null;
  readonly tree: string;
  readonly names: ChangedNames;
  readonly outcome: Outcome | null;
  /** All names, when there was no index before. */
  readonly listed: readonly string[];
  readonly finishIndex: () => Promise<void>;
}

/** For a tree that was written from the index. */
const finishIndex = (): Promise<void> => Promise.resolve();

/** Paths, and bytes of what is quiet, up to which their tree is made without an index. */
const FEW = 200;
const FEW_BYTES = 16 * 1024 * 1024;

/** New files from which on git is given their bytes in one stream, not one loose object after another. */
const MANY_NEW = 500;
