/**
 * Looking at paths of the work tree: what belongs into a snapshot, what is left out and why, and which way in its bytes take
 * (private-index.ts: fed to git, or held).
 */
import { lstatSync, type BigIntStats, type Stats } from 'node:fs';
import { linkFinder } from './beyond-link.js';
import type { ChangedNames } from './changed-names.js';
import { closedAbove } from './closed-folders.js';
import { errno, isAbsence } from './disk.js';
import { fsPath } from './path.js';
import type { Feed } from './private-index.js';
import { CLOCK_STEP_NS, isQuiet } from './stable-read.js';
import type { Storage } from './storage.js';

export type SkipReason = 'too-large' | 'nested-repository' | 'unreadable' | 'special';

export interface Sorted {
  readonly feeds: AsyncGenerator<readonly Feed[]>;
  readonly held: string[];
  readonly removed: string[];
  /** How many feeds there are at most. */
  readonly count: number;
}

export class PathLooks {
  readonly #storage: Storage;
  readonly #since: bigint;
  readonly #skipped: Map<string, SkipReason>;
  readonly #named: ReadonlySet<string>;
  readonly #isBeyondLink: (path: string) => boolean;

  /**
   * `since`: file system clock, nanoseconds, when the snapshot began; what is left out is put into `skipped`; `named` are taken
   * whatever their size.
   */
  constructor(
    storage: Storage,
    at: { since: bigint; skipped: Map<string, SkipReason>; named: ReadonlySet<string> },
  ) {
    this.#storage = storage;
    this.#since = at.since;
    this.#skipped = at.skipped;
    this.#named = at.named;
    this.#isBeyondLink = linkFinder(storage.layout.workTree);
  }

  /**
   * What is to be done with each path. The first time they are looked at while git reads the earlier ones (two
   * processors); later there are few, and what goes must be known before anything comes.
   */
  sort(look: readonly string[], { names, isFirst }: { names: ChangedNames; isFirst: boolean }): Sorted {
    const held: string[] = [];
    const removed: string[] = [];
    const doubted = new Set(names.doubted);
    const untracked = new Set(isFirst ? [] : names.untracked);
    const sortOne = (path: string): Feed | null => {
      const found = this.#lookAt(path);
      if (found !== null && !doubted.has(path) && isQuiet(found, this.#since)) return { path, stat: found };
      if (found !== null) held.push(path);
      else if (!untracked.has(path) && !names.base.missing.has(path)) removed.push(path);
      return null;
    };
    if (isFirst && look.length > MANY) {
      const glanceAt = (path: string): Feed | null => this.#glance(path, held);
      return { feeds: stream(look, glanceAt), held, removed, count: look.length };
    }
    if (isFirst) return { feeds: stream(look, sortOne), held, removed, count: look.length };
    const feeds = look.map(sortOne).filter((feed) => feed !== null);
    return { feeds: stream(feeds, (feed) => feed), held, removed, count: feeds.length };
  }

  /** The same for a great many: numbers instead of big ones, and git verifies. What is too fresh is held. */
  #glance(path: string, held: string[]): Feed | null {
    const stat = this.#seen(path, (place) => lstatSync(place, { throwIfNoEntry: false }));
    if (stat === null || stat.isDirectory() || this.#isBeyondLink(path)) return null;
    const why = this.#refusal(path, stat);
    if (why !== null) {
      this.#skipped.set(path, why);
      return null;
    }
    const born = Number(this.#since / 1_000_000n);
    const quiet = born - Number(CLOCK_STEP_NS / 1_000_000n);
    if (stat.mtimeMs >= quiet || stat.ctimeMs >= quiet) {
      held.push(path);
      return null;
    }
    const isSuspect = stat.ctimeMs >= born - (born % 1000) && stat.mtimeMs < born - (born % 1000);
    return { path, stat: isSuspect ? this.stat(path) : null };
  }

  /** lstat of what belongs into the snapshot; null: nothing there that does. */
  #lookAt(path: string): BigIntStats | null {
    const stat = this.stat(path);
    if (stat === null || stat.isDirectory() || this.#isBeyondLink(path)) return null;
    const why = this.#refusal(path, stat);
    if (why === null) return stat;
    this.#skipped.set(path, why);
    return null;
  }

  #refusal(path: string, stat: Stats | BigIntStats): SkipReason | null {
    if (/(?:^|\/)\.git(?:\/|$)/i.test(path)) return 'special';
    // git refuses that one link in any index (CVE-2018-17456: it would read its settings through it).
    if (stat.isSymbolicLink()) return /(?:^|\/)\.gitmodules$/i.test(path) ? 'special' : null;
    if (!stat.isFile()) return 'special';
    return this.isLarge(stat) && !this.#named.has(path) ? 'too-large' : null;
  }

  isLarge(stat: Stats | BigIntStats): boolean {
    return stat.size > this.#storage.settings.maxFileSize;
  }

  /** lstat, in nanoseconds; null where nothing is, or (then it is named) where nobody may look. */
  stat(path: string): BigIntStats | null {
    return this.#seen(path, (place) => lstatSync(place, { bigint: true, throwIfNoEntry: false }));
  }

  /** One folder is named, and not each path in it. */
  #closed(path: string): string {
    return closedAbove(this.#storage.layout.workTree, path) ?? path;
  }

  #seen<S>(path: string, see: (place: string | Buffer) => S | undefined): S | null {
    try {
      return see(fsPath(this.#storage.layout.workTree, path)) ?? null;
    } catch (error) {
      if (errno(error) === 'EACCES') this.#skipped.set(this.#closed(path), 'unreadable');
      else if (!isAbsence(error)) throw error;
      return null;
    }
  }
}

/** Above this many files git verifies what it was fed; below, we do. */
export const MANY = 2000;
/** Paths between two turns of the event loop, in which git is given what was found. */
const AT_ONCE = 1000;

async function* stream<T>(
  items: readonly T[],
  find: (item: T) => Feed | null,
): AsyncGenerator<readonly Feed[]> {
  for (let at = 0; at < items.length; at += AT_ONCE) {
    const feeds = items
      .slice(at, at + AT_ONCE)
      .map(find)
      .filter((feed) => feed !== null);
    if (feeds.length > 0) yield feeds;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
