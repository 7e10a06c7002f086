/**
 * A byte-exact snapshot of the work tree as a git tree, taken beside the user's git and never through it.
 *
 * Calling order: `takeSnapshot` · look at it (`tree`, `changes`) · `publish` makes its objects durable in the object store · the
 * caller moves a ref to a commit that holds the tree · `settle` remembers it as the next one's start · or `discard`, at
 * any moment, and nothing has happened but in the quarantine. `settle` and `discard` end it.
 *
 * What is in it: see changed-names.ts. Every byte as it is on disk (private-dir.ts), exec bits, links, deletions, empty
 * files, any name but `.git` (and no link named `.gitmodules`, which git refuses). Left out and named (`skipped`): files over durable.maxFileSize, nested repositories and
 * submodules, what cannot be read or does not stand still, fifos, sockets and devices. Paths of a sparse checkout that
 * are not on disk are `absent`: neither kept nor deleted.
 *
 * Guarantees: the user's index, HEAD, refs and stash are read at most; a file that changes meanwhile ends nothing and is
 * kept as it was at one moment (stable-read.ts); a full disk is 'out-of-space' with nothing left behind. A private index
 * that git cannot use (torn, or naming objects that were pruned) is thrown away once, and every file is read.
 *
 * No lock is taken: each process works on its own copy of the index, and the last one to settle leaves its own, which is as
 * true as any. Caveats: folders that hold nothing but empty folders are not kept, nor are owners, times, ACLs and the
 * permission bits git does not know. A fifo or socket that was never tracked is not named: git does not list it.
 */
import {
  existsSync,
  fstatSync,
  closeSync,
  lstatSync,
  openSync,
  readFileSync,
  type BigIntStats,
} from 'node:fs';
import { DurableError, hasCode } from '../errors.js';
import { NameFinder, linkFinder, parseState, type ChangedNames, type IndexState } from './changed-names.js';
import { errno, isAbsence } from './disk.js';
import { fsPath, splitPaths } from './path.js';
import { preload } from './preload.js';
import { PrivateDir } from './private-dir.js';
import { PrivateIndex, type Feed, type Outcome, type Suspect } from './private-index.js';
import { Quarantine, sweepQuarantines } from './quarantine.js';
import { isQuiet } from './stable-read.js';
import type { Storage } from './storage.js';
import { parseChanges, type TreeChange } from './tree-changes.js';
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

/**
 * `also`: paths relative to the work tree that are kept even when ignored; a folder means all below it.
 * Errors: 'out-of-space', 'permission-denied', 'io-failed', 'checkpoint-incomplete', 'git-missing'.
 */
export async function takeSnapshot(storage: Storage, also: readonly string[] = []): Promise<Snapshot> {
  sweepQuarantines(storage);
  const dir = new PrivateDir(storage);
  dir.prepare();
  try {
    return await attempt(storage, dir, also);
  } catch (error) {
    if (!hasCode(error, 'git-failed')) throw error;
    dir.reset();
    dir.prepare();
  }
  try {
    return await attempt(storage, dir, also);
  } catch (error) {
    if (!hasCode(error, 'git-failed')) throw error;
    throw new DurableError('checkpoint-incomplete', { detail: error.message }, error);
  }
}

/** Throws the private index away: the next snapshot reads every file. For contents that were pruned or purged. */
export function forgetSnapshots(storage: Storage): void {
  new PrivateDir(storage).reset();
}

async function attempt(storage: Storage, dir: PrivateDir, also: readonly string[]): Promise<Snapshot> {
  const quarantine = Quarantine.open(storage);
  try {
    return await new Taking(storage, dir, quarantine).take(also);
  } catch (error) {
    dir.release(quarantine);
    throw error;
  }
}

export class Snapshot {
  readonly facts: SnapshotFacts;
  readonly #parts: SnapshotParts;
  #pack: string | null = null;

  constructor(facts: SnapshotFacts, parts: SnapshotParts) {
    this.facts = facts;
    this.#parts = parts;
  }

  /** What differs between another tree and this one (null: every path is new). Errors: 'git-failed'. */
  async changes(from: string | null): Promise<TreeChange[]> {
    if (from === this.facts.tree) return [];
    return this.#parts.compare(from, this.facts.tree);
  }

  /**
   * Makes every object durable in the store that `reached` (trees that refs hold) does not reach. Errors: 'out-of-space',
   * 'permission-denied', 'io-failed', 'git-failed'.
   */
  async publish(reached: readonly string[]): Promise<void> {
    if (reached.includes(this.facts.tree)) return;
    const { storage, quarantine, dir } = this.#parts;
    // git knows the empty tree without having it.
    if (this.facts.files === 0) await storage.objects.write('tree', Buffer.alloc(0));
    const run: Parameters<Quarantine['pack']>[2] = (args, options) => dir.output(quarantine, args, options);
    this.#pack = await quarantine.pack(this.facts.tree, reached, run);
    if (this.#pack !== null) quarantine.publish(this.#pack);
  }

  /** To be called when a ref reaches the tree. */
  async settle(): Promise<void> {
    const { quarantine, dir, state, behind } = this.#parts;
    if (this.#pack !== null) quarantine.seal(this.#pack);
    if (behind > FAR_BEHIND) await dir.anchor(quarantine, this.facts.tree);
    dir.adopt(quarantine, JSON.stringify(state));
    dir.release(quarantine);
  }

  discard(): void {
    this.#parts.dir.release(this.#parts.quarantine);
  }
}

/** Paths by which the private HEAD may differ from the index before listing them costs more than a new commit. */
const FAR_BEHIND = 200;

interface SnapshotParts {
  readonly quarantine: Quarantine;
  readonly dir: PrivateDir;
  readonly storage: Storage;
  readonly state: IndexState;
  readonly behind: number;
  readonly compare: (from: string | null, to: string) => Promise<TreeChange[]>;
}

interface Sorted {
  readonly feeds: AsyncGenerator<Feed>;
  readonly held: string[];
  readonly removed: string[];
  /** How many feeds there are at most. */
  readonly count: number;
}

/** One taking, in one quarantine. */
class Taking {
  readonly #storage: Storage;
  readonly #dir: PrivateDir;
  readonly #quarantine: Quarantine;
  readonly #finder: NameFinder;
  readonly #skipped = new Map<string, SkipReason>();
  readonly #isBeyondLink: (path: string) => boolean;

  constructor(storage: Storage, dir: PrivateDir, quarantine: Quarantine) {
    this.#storage = storage;
    this.#dir = dir;
    this.#quarantine = quarantine;
    this.#finder = new NameFinder(storage, dir, quarantine);
    this.#isBeyondLink = linkFinder(storage.layout.workTree);
  }

  async take(also: readonly string[]): Promise<Snapshot> {
    const old = this.#copyIndex();
    const names = old === null ? await this.#finder.all() : await this.#finder.since(old);
    for (const path of [...names.nested, ...names.base.submodules])
      if (isRepository(this.#storage.layout.workTree, path)) this.#skipped.set(path, 'nested-repository');
    const named = this.#named(also);
    const look = [...new Set([...names.look, ...named])];
    const ignored = names.ignored.filter((path) => !named.has(path));
    const outcome = await this.#update(look, { names, ignored });
    const tree = old !== null && outcome === null ? old.tree : await this.#writeTree();
    const suspects = [...names.suspects, ...(outcome?.suspects ?? [])];
    return this.#snapshot({ old, tree, names, suspects });
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
    if (!isFirst && sorted.count + sorted.held.length + removed.length === 0) {
      index.backdate();
      return null;
    }
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
    const unknown = new Set([...names.untracked, ...names.base.missing]);
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

  async #writeTree(): Promise<string> {
    const output = await this.#dir.output(this.#quarantine, ['write-tree'], { site: 'snapshot.tree' });
    new PrivateIndex(this.#storage, this.#dir, this.#quarantine).backdate();
    return output.toString('latin1').trim();
  }

  async #snapshot(made: {
    old: IndexState | null;
    tree: string;
    names: ChangedNames;
    suspects: readonly Suspect[];
  }): Promise<Snapshot> {
    const { old, tree, names, suspects } = made;
    const { base } = names;
    const extras = new Set(base.extras);
    const missing = new Set(base.missing);
    const { added, removed } = await this.#difference(old, tree);
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
      files,
      mark: base.mark,
      extras: [...extras],
      missing: [...missing],
      sparse: base.sparse.map(String),
      submodules: base.submodules.map(String),
      suspects: [...suspects],
    };
    const [storage, quarantine, dir] = [this.#storage, this.#quarantine, this.#dir];
    const compare = (from: string | null, to: string): Promise<TreeChange[]> => this.#compare(from, to);
    const parts = { storage, quarantine, dir, state, behind: names.behind, compare };
    return new Snapshot({ tree, files, skipped, absent }, parts);
  }

  /** Names that came into the index and went. */
  async #difference(old: IndexState | null, tree: string): Promise<{ added: string[]; removed: string[] }> {
    if (old?.tree === tree) return { added: [], removed: [] };
    if (old === null) {
      const listing = await this.#dir.output(this.#quarantine, ['ls-files', '-z']);
      return { added: splitPaths(listing), removed: [] };
    }
    const changes = await this.#compare(old.tree, tree);
    return {
      added: changes.filter(({ before }) => before === null).map(({ path }) => path),
      removed: changes.filter(({ after }) => after === null).map(({ path }) => path),
    };
  }

  async #compare(from: string | null, to: string): Promise<TreeChange[]> {
    const base = from ?? (await this.#emptyTree());
    const args = ['diff-tree', '-r', '-z', '--raw', '--no-renames', '--no-ext-diff', base, to];
    return parseChanges(await this.#dir.output(this.#quarantine, args));
  }

  async #emptyTree(): Promise<string> {
    const args = ['hash-object', '-t', 'tree', '-w', '--stdin'];
    const output = await this.#dir.output(this.#quarantine, args, {
      site: 'snapshot.tree',
      input: Buffer.alloc(0),
    });
    return output.toString('latin1').trim();
  }
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
