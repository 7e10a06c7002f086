/**
 * One taking of a snapshot, in one quarantine: find the names, look at them, bring the private index up to date, write the
 * tree. lib/git/snapshot.ts says what it is for and what it promises.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  type BigIntStats,
} from 'node:fs';
import { NameFinder, linkFinder, parseState, type ChangedNames, type IndexState } from './changed-names.js';
import { errno, isAbsence } from './disk.js';
import { fsPath, splitPaths } from './path.js';
import { preload } from './preload.js';
import type { PrivateDir } from './private-dir.js';
import { PrivateIndex, type Feed, type Outcome, type Suspect } from './private-index.js';
import type { Quarantine } from './quarantine.js';
import { isQuiet } from './stable-read.js';
import type { Storage } from './storage.js';
import { parseComparison, type Comparison } from './tree-changes.js';
import { below, isRepository } from './walk.js';

export type SkipReason = 'too-large' | 'nested-repository' | 'unreadable' | 'special';

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
}

interface Sorted {
  readonly feeds: AsyncGenerator<Feed>;
  readonly held: string[];
  readonly removed: string[];
  /** How many feeds there are at most. */
  readonly count: number;
}

export class Taking {
  readonly #storage: Storage;
  readonly #dir: PrivateDir;
  readonly #quarantine: Quarantine;
  readonly #finder: NameFinder;
  readonly #skipped = new Map<string, SkipReason>();
  readonly #isBeyondLink: (path: string) => boolean;
  readonly #compared = new Map<string, Promise<Comparison>>();

  constructor(storage: Storage, dir: PrivateDir, quarantine: Quarantine) {
    this.#storage = storage;
    this.#dir = dir;
    this.#quarantine = quarantine;
    this.#finder = new NameFinder(storage, dir, quarantine);
    this.#isBeyondLink = linkFinder(storage.layout.workTree);
  }

  /** Errors: 'git-failed', 'out-of-space', the disk's. */
  async take(also: readonly string[]): Promise<Taken> {
    const old = this.#copyIndex();
    const names = old === null ? await this.#finder.all() : await this.#finder.since(old);
    for (const path of [...names.nested, ...names.base.submodules])
      if (isRepository(this.#storage.layout.workTree, path)) this.#skipped.set(path, 'nested-repository');
    const named = this.#named(also);
    const look = [...new Set([...names.look, ...named])];
    const ignored = names.ignored.filter((path) => !named.has(path));
    const outcome = await this.#update(look, { names, ignored });
    const [tree, listed] = await Promise.all([
      old !== null && outcome === null ? old.tree : this.#writeTree(),
      old === null ? this.#list() : [],
    ]);
    new PrivateIndex(this.#storage, this.#dir, this.#quarantine).backdate();
    const suspects = [...names.suspects, ...(outcome?.suspects ?? [])];
    return this.#result({ old, tree, names, suspects, listed });
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
  #named(also: readonly string[]): Set<string> {
    const { workTree } = this.#storage.layout;
    const named = new Set<string>();
    for (const path of also) {
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
    const index = new PrivateIndex(storage, dir, quarantine);
    const isFirst = !existsSync(quarantine.path('index'));
    const sorted = this.#sort(look, { names, isFirst });
    const removed = [...ignored, ...sorted.removed];
    if (!isFirst && sorted.count + sorted.held.length + removed.length === 0) return null;
    if (names.untracked.length >= MANY_NEW)
      await preload(storage, quarantine, { dir, paths: names.untracked });
    const outcome = await index.update({ ...sorted, removed });
    for (const { path, why } of outcome.skipped) this.#skipped.set(path, why);
    return outcome;
  }

  /**
   * What is to be done with each path. The first time they are looked at while git reads the earlier ones (two
   * processors); later there are few, and what goes must be known before anything comes.
   */
  #sort(look: readonly string[], { names, isFirst }: { names: ChangedNames; isFirst: boolean }): Sorted {
    const held: string[] = [];
    const removed: string[] = [];
    const doubted = new Set(names.doubted);
    const unknown = isFirst ? names.base.missing : new Set([...names.untracked, ...names.base.missing]);
    const sortOne = (path: string): Feed | null => {
      const found = this.#lookAt(path);
      if (found !== null && !doubted.has(path) && isQuiet(found, this.#quarantine.bornAt))
        return { path, stat: found };
      if (found !== null) held.push(path);
      else if (!unknown.has(path)) removed.push(path);
      return null;
    };
    if (isFirst) return { feeds: stream(look, sortOne), held, removed, count: look.length };
    const feeds = look.map(sortOne).filter((feed) => feed !== null);
    return { feeds: stream(feeds, (feed) => feed), held, removed, count: feeds.length };
  }

  /** lstat of what belongs into the snapshot; null: nothing there that does. */
  #lookAt(path: string): BigIntStats | null {
    const stat = this.#stat(path);
    if (stat === null || stat.isDirectory() || this.#isBeyondLink(path)) return null;
    const why = this.#refusal(path, stat);
    if (why === null) return stat;
    this.#skipped.set(path, why);
    return null;
  }

  #refusal(path: string, stat: BigIntStats): SkipReason | null {
    if (/(?:^|\/)\.git(?:\/|$)/i.test(path)) return 'special';
    // git refuses that one link in any index (CVE-2018-17456: it would read its settings through it).
    if (stat.isSymbolicLink()) return /(?:^|\/)\.gitmodules$/i.test(path) ? 'special' : null;
    if (!stat.isFile()) return 'special';
    return stat.size > this.#storage.settings.maxFileSize ? 'too-large' : null;
  }

  #stat(path: string): BigIntStats | null {
    try {
      const place = fsPath(this.#storage.layout.workTree, path);
      return lstatSync(place, { bigint: true, throwIfNoEntry: false }) ?? null;
    } catch (error) {
      if (errno(error) === 'EACCES') this.#skipped.set(path, 'unreadable');
      else if (!isAbsence(error)) throw error;
      return null;
    }
  }

  async #list(): Promise<string[]> {
    return splitPaths(await this.#dir.output(this.#quarantine, ['ls-files', '-z']));
  }

  async #writeTree(): Promise<string> {
    const output = await this.#dir.output(this.#quarantine, ['write-tree'], { site: 'snapshot.tree' });
    return output.toString('latin1').trim();
  }

  async #result(made: Made): Promise<Taken> {
    const { old, tree, names, suspects, listed } = made;
    const { base } = names;
    const extras = new Set(base.extras);
    const missing = new Set(base.missing);
    const { added, removed } =
      old === null ? { added: listed, removed: [] } : await this.#difference(made, old);
    for (const path of added) if (!missing.delete(path)) extras.add(path);
    for (const path of removed) if (!extras.delete(path)) missing.add(path);
    const files = (old?.files ?? 0) + added.length - removed.length;
    const sparse = new Set(base.sparse);
    const absent = [...missing].filter((path) => sparse.has(path) && this.#stat(path) === null);
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
      suspects: [...suspects],
    };
    const [storage, quarantine, dir] = [this.#storage, this.#quarantine, this.#dir];
    const compare = (from: string, to: string): Promise<Comparison> => this.#compare(from, to);
    const facts = { tree, files, skipped, absent };
    return { facts, storage, quarantine, dir, state, behind: names.behind, compare };
  }

  /** Names that came into the index and went. */
  async #difference({ tree }: Made, old: IndexState): Promise<{ added: string[]; removed: string[] }> {
    const { changes } = await this.#compare(old.tree, tree);
    return {
      added: changes.filter(({ before }) => before === null).map(({ path }) => path),
      removed: changes.filter(({ after }) => after === null).map(({ path }) => path),
    };
  }

  /** Asked twice for the same trees, when the task's last checkpoint is the work tree's last, it is answered once. */
  #compare(from: string, to: string): Promise<Comparison> {
    if (from === to) return Promise.resolve({ changes: [], objects: [] });
    const key = `${from} ${to}`;
    const known = this.#compared.get(key);
    if (known !== undefined) return known;
    const args = ['diff-tree', '-r', '-t', '-z', '--raw', '--no-renames', '--no-ext-diff', from, to];
    const asked = this.#dir.output(this.#quarantine, args).then(parseComparison);
    this.#compared.set(key, asked);
    return asked;
  }
}

interface Made {
  readonly old: IndexState | null;
  readonly tree: string;
  readonly names: ChangedNames;
  readonly suspects: readonly Suspect[];
  /** All names, when there was no index before. */
  readonly listed: readonly string[];
}

/** New files from which on git is given their bytes in one stream, not one loose object after another. */
const MANY_NEW = 500;
/** Paths between two turns of the event loop, in which git is given what was found. */
const AT_ONCE = 1000;

async function* stream<T>(items: readonly T[], find: (item: T) => Feed | null): AsyncGenerator<Feed> {
  let count = 0;
  for (const item of items) {
    const feed = find(item);
    count += 1;
    if (count % AT_ONCE === 0) await new Promise((resolve) => setImmediate(resolve));
    if (feed !== null) yield feed;
  }
}
