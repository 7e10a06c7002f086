/**
 * Bringing the private index (a copy of it in a quarantine) up to date with files that have changed.
 *
 * Why its time of change is set back to the quarantine's birth: git compares stat in whole seconds and takes an entry for
 * clean when its file's time lies before the index's (Documentation/technical/racy-git). An index written at the end of
 * a snapshot that took longer than a second hides a same-size edit made while it was taken. With the time at which the
 * snapshot began, every entry that can have changed since is compared by content.
 *
 * Two ways for bytes to get in:
 * - *fed*: git reads the file itself (`update-index`). For files that have been quiet since before the snapshot, and
 *   are found unchanged afterwards: by us where they are few, by git (`changedSince`) where they are many.
 * - *held*: we read it until it stands still (stable-read.ts) and store the bytes. For files that were changed a moment ago
 *   or while we looked, and for whatever git stumbled over: a file that shrinks while git reads it ends git ("confused by
 *   unstable object source data"). Its entry has no stat data, so that the next snapshot compares its content.
 */
import { existsSync, lstatSync, readFileSync, type BigIntStats } from 'node:fs';
import { errno, isAbsence } from './disk.js';
import { readByTwo } from './first-index.js';
import { fsPath, listOf, splitPaths } from './path.js';
import { gitFailure, type PrivateDir } from './private-dir.js';
import type { Quarantine } from './quarantine.js';
import { isQuiet, sameStat, stableRead } from './stable-read.js';
import type { Storage } from './storage.js';
import { second, statText, type Suspect } from './suspects.js';
import type { TreeEdit } from './tree-edit.js';

export interface Filled {
  readonly outcome: Outcome;
  /** Every name is in the index, as git read it. */
  readonly isWhole: boolean;
  /** Names that are not: gone, or left out by git. */
  readonly absent: readonly string[];
}

export interface Outcome {
  /** Left out after all, and why. */
  readonly skipped: { readonly path: string; readonly why: 'special' | 'unreadable' | 'too-large' }[];
  /**
   * Files whose stat cannot show every later edit to git: changed in the very second in which the snapshot began, but with
   * an older time of change (copied with times, or touched). The next snapshot compares their stat in nanoseconds.
   */
  readonly suspects: Suspect[];
}

/** What was read of some paths by us. */
export interface HeldPaths extends Outcome {
  /** Null image: nothing is there that belongs into a snapshot. */
  readonly entries: TreeEdit[];
  /** Of all that was read. */
  bytes: number;
}

export interface Feed {
  readonly path: string;
  /** As it was before git reads the file; null when git is to verify it afterwards. */
  readonly stat: BigIntStats | null;
}

export class PrivateIndex {
  readonly #storage: Storage;
  readonly #dir: PrivateDir;
  readonly #quarantine: Quarantine;
  readonly #outcome: Outcome = { skipped: [], suspects: [] };
  readonly #named: ReadonlySet<string>;
  /** Those that git must not read again. */
  readonly #failed = new Set<string>();

  /** `named` are read whatever their size. */
  constructor(
    storage: Storage,
    { dir, quarantine, named }: { dir: PrivateDir; quarantine: Quarantine; named: ReadonlySet<string> },
  ) {
    this.#storage = storage;
    this.#dir = dir;
    this.#quarantine = quarantine;
    this.#named = named;
  }

  /**
   * Takes in `feeds`, reads `held` paths ourselves, and takes `removed` out. Feeds without stat are to be verified by
   * `changedSince`. Errors: 'out-of-space', 'git-failed'.
   */
  async update(change: {
    readonly feeds: AsyncIterable<readonly Feed[]>;
    readonly held: readonly string[];
    readonly removed: readonly string[];
  }): Promise<Outcome> {
    await this.set(change.removed.map((path) => ({ path, image: null })));
    const fed = await this.#feed(change.feeds);
    const moved = this.#changedStats(fed.filter(({ stat }) => stat !== null));
    const held = new Set([...change.held, ...moved, ...this.#failed]);
    await this.hold([...held]);
    for (const { path, stat } of fed) if (stat !== null && !held.has(path)) this.#suspect(path, stat);
    // Nothing at all to take in, ever: an index of no entries is one all the same.
    if (!existsSync(this.#quarantine.path('index')))
      await this.#dir.output(this.#quarantine, ['read-tree', '--empty'], { site: 'snapshot.add' });
    this.backdate();
    return this.#outcome;
  }

  /**
   * Fills an index that is not there yet with a great many sorted names that nobody has looked at (first-index.ts). Null when each of
   * them has to be looked at: nothing is done then. Errors: 'out-of-space', 'git-failed'.
   */
  async fill(names: readonly string[]): Promise<Filled | null> {
    const read = await readByTwo(
      { storage: this.#storage, dir: this.#dir, quarantine: this.#quarantine },
      names,
    );
    if (read === null) return null;
    this.#quarantine.scratch.create('quarantine.scratch', this.#quarantine.path('index'), read.index);
    await this.hold(read.fresh);
    this.backdate();
    const isWhole = read.absent.length === 0 && read.fresh.length === 0;
    return { outcome: this.#outcome, isWhole, absent: read.absent };
  }

  /**
   * Paths that differ from the index, by git, which compares the content of what its stat may hide. It reads a copy, so that
   * a tree can be written meanwhile.
   */
  async changedSince(): Promise<string[]> {
    const copy = this.#quarantine.path('verified');
    this.#quarantine.scratch.create('quarantine.scratch', copy, readFileSync(this.#quarantine.path('index')));
    this.backdate(copy);
    const env = { GIT_INDEX_FILE: copy };
    return splitPaths(await this.#dir.output(this.#quarantine, ['diff-files', '-z', '--name-only'], { env }));
  }

  backdate(index = this.#quarantine.path('index')): void {
    const seconds = Number(second(this.#quarantine.bornAt));
    this.#quarantine.scratch.setModified('quarantine.scratch', index, seconds);
  }

  /** Gives git the names to read; what it fails on is narrowed down and held. Returns what was fed. */
  async #feed(feeds: AsyncIterable<readonly Feed[]>): Promise<readonly Feed[]> {
    const fed: Feed[] = [];
    const iterator = feeds[Symbol.asyncIterator]();
    const first = await iterator.next();
    if (first.done === true) return fed;
    /** The first try, while the names are still being looked at. */
    async function* names(): AsyncGenerator<Uint8Array> {
      for (
        let next: IteratorResult<readonly Feed[]> = first;
        next.done !== true;
        next = await iterator.next()
      ) {
        for (const feed of next.value) fed.push(feed);
        yield listOf(next.value.map(({ path }) => path));
      }
    }
    const isFine = await this.#updateIndex(names());
    // What git did not wait for is fed with the rest.
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next())
      for (const feed of next.value) fed.push(feed);
    if (!isFine) await this.#feedAgain(fed);
    return fed;
  }

  async #feedAgain(feeds: readonly Feed[]): Promise<void> {
    const moved = new Set(this.#changedStats(feeds));
    for (const path of moved) this.#failed.add(path);
    const rest = feeds.filter(({ path }) => !moved.has(path));
    if (rest.length === 0 || (await this.#updateIndex(listOf(rest.map(({ path }) => path))))) return;
    if (rest.length === 1) {
      // Not readable, or a name git refuses: holding it finds out which.
      for (const { path } of rest) this.#failed.add(path);
      return;
    }
    const half = Math.ceil(rest.length / 2);
    await this.#feedAgain(rest.slice(0, half));
    await this.#feedAgain(rest.slice(half));
  }

  async #updateIndex(input: Uint8Array | AsyncIterable<Uint8Array>): Promise<boolean> {
    const args = ['update-index', '-z', '--add', '--remove', '--replace', '--stdin'];
    const result = await this.#dir.run(this.#quarantine, args, { site: 'snapshot.add', input });
    if (result.code === 0) return true;
    const failure = gitFailure(this.#quarantine, args, result);
    if (failure.code === 'out-of-space') throw failure;
    return false;
  }

  /** Of what was fed: paths whose stat is another one now, or is so fresh that it may hide a change. */
  #changedStats(feeds: Iterable<Feed>): string[] {
    const moved: string[] = [];
    for (const { path, stat } of feeds) {
      const now = this.#stat(path);
      if (now === null || (stat !== null && !sameStat(now, stat)) || !isQuiet(now, this.#quarantine.bornAt))
        moved.push(path);
    }
    return moved;
  }

  /** Reads these ourselves and sets their entries. Errors: 'out-of-space', 'git-failed'. */
  async hold(paths: readonly string[]): Promise<void> {
    const { entries, skipped, suspects } = await this.read(paths);
    this.#outcome.skipped.push(...skipped);
    this.#outcome.suspects.push(...suspects);
    await this.set(entries);
  }

  /** Reads these ourselves and stores their bytes in the quarantine; no entry is set. Errors: 'out-of-space'. */
  async read(paths: readonly string[]): Promise<HeldPaths> {
    const held: HeldPaths = { entries: [], skipped: [], suspects: [], bytes: 0 };
    for (const path of paths) {
      const before = this.#stat(path);
      const read = await this.#read(path);
      if (read.is === 'read') {
        const { oid, now } = this.#quarantine.store('blob', read.bytes);
        held.entries.push({ path, image: { mode: read.mode, oid } });
        held.bytes += read.bytes.length;
        const suspect = before === null ? null : this.#suspectHeld(path, before, now);
        if (suspect !== null) held.suspects.push(suspect);
        continue;
      }
      held.entries.push({ path, image: null });
      if (read.is === 'special' || read.is === 'too-large') held.skipped.push({ path, why: read.is });
      if (read.is === 'unreadable' || read.is === 'unstable') held.skipped.push({ path, why: 'unreadable' });
    }
    return held;
  }

  #read(path: string): ReturnType<typeof stableRead> {
    const { layout, settings } = this.#storage;
    const { bornAt } = this.#quarantine;
    const limit = this.#named.has(path) ? Infinity : settings.maxFileSize;
    return stableRead(fsPath(layout.workTree, path), { since: bornAt, limit });
  }

  /** Sets entries as they are, without a look at the disk; a null image takes the path out. Errors: 'git-failed'. */
  async set(entries: readonly TreeEdit[]): Promise<void> {
    if (entries.length === 0) return;
    const none = '0'.repeat(this.#storage.layout.objectFormat === 'sha256' ? 64 : 40);
    // Removals first: a file's name may have become a folder's.
    const ordered = [
      ...entries.filter(({ image }) => image === null),
      ...entries.filter(({ image }) => image !== null),
    ];
    const lines = ordered.map(({ path, image }) =>
      Buffer.concat([Buffer.from(`${image?.mode ?? '0'} ${image?.oid ?? none}\t`), listOf([path])]),
    );
    const args = ['update-index', '-z', '--add', '--replace', '--index-info'];
    await this.#dir.output(this.#quarantine, args, { site: 'snapshot.add', input: Buffer.concat(lines) });
  }

  #suspect(path: string, stat: BigIntStats): void {
    const born = second(this.#quarantine.bornAt);
    if (second(stat.ctimeNs) >= born && second(stat.mtimeNs) < born)
      this.#outcome.suspects.push({ path, stat: statText(stat) });
  }

  /** A change in the same step of the clock as the last one before the reading would not show in nanoseconds either. */
  #suspectHeld(path: string, stat: BigIntStats, now: bigint): Suspect | null {
    if (second(stat.ctimeNs) < second(this.#quarantine.bornAt)) return null;
    return { path, stat: isQuiet(stat, now) ? statText(stat) : '' };
  }

  #stat(path: string): BigIntStats | null {
    try {
      return lstatSync(fsPath(this.#storage.layout.workTree, path), { bigint: true });
    } catch (error) {
      if (isAbsence(error) || errno(error) === 'EACCES') return null;
      throw error;
    }
  }
}
