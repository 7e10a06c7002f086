/**
 * Refs as git keeps them in files: read without a process, moved by compare-and-swap in git's own lock protocol.
 *
 * `update` verifies some refs and moves one: it takes `<ref>.lock` of all of them by `link(ticket, …)` (PROTOCOL.md 10),
 * compares under the locks, writes the new value to a file beside the ref, flushes it, renames it onto the ref, flushes
 * the folder, and lets go. It keeps no reflog. Correctness comes from comparing under the lock, which git respects and
 * takes as well; nothing here waits while it holds a lock, so two updates never wait for each other in a circle.
 *
 * What stands in the way: a lock of a proven-dead owner of ours is removed by the claim chain (claims.ts), and what is
 * left of its new value with it; any other lock is waited for, with jitter, until the time budget ends ('ref-locked').
 *
 * Crash points: before the rename nothing happened; after it the ref has moved. Either way a lock and a value file of
 * a dead owner may be left, and the next update of that ref by anyone removes them.
 *
 * Guarantees: when `update` resolves with `moved: true`, ref, folder and the folders above it are flushed. Reftable is
 * refused when a repository is opened (layout.ts). The file system must have atomic link(2) and rename(2).
 */
import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { DurableError, hasCode } from '../errors.js';
import type { Host } from '../host.js';
import type { Locks } from './claims.js';
import { errno, type Disk } from './disk.js';
import type { Layout } from './layout.js';
import { checkName, entriesOf, looseNames, parents, readLoose } from './loose-refs.js';
import { PackedRefs } from './packed.js';
import type { Ticket, Tickets } from './tickets.js';

export interface RefChange {
  /** Refs that must be exactly there while the other one moves (a lease). */
  readonly verify?: readonly { readonly ref: string; readonly oid: string }[];
  /** `from: null`: the ref must not be there yet. */
  readonly move: { readonly ref: string; readonly from: string | null; readonly to: string };
}

export type RefOutcome =
  | { readonly moved: true }
  /** Nothing was changed: `ref` was at `was` (null: absent) and not where the change expected it. */
  | { readonly moved: false; readonly ref: string; readonly was: string | null };

export interface RefStore {
  /** The object id a ref is at, symbolic refs followed; null when it is not there. Throws 'ref-damaged'. */
  read(ref: string): string | null;
  /** Every ref that begins with `prefix`, sorted by name. Throws 'ref-damaged'. */
  list(prefix: string): Map<string, string>;
  /** As the keys of `list`, with those whose value is damaged; without those below `without`, a folder such as `refs/durable`. */
  names(prefix: string, without?: string): string[];
  /** Gives a ref whose file holds no object id a value. False: it is not damaged. Throws 'ref-locked', disk errors. */
  mend(ref: string, to: string): boolean;
  /** Throws 'ref-locked' when the time budget (default 10,000 ms) ends, 'ref-conflict', 'ref-damaged', disk errors. */
  update(change: RefChange, budgetMs?: number): Promise<RefOutcome>;
}

const DEFAULT_BUDGET_MS = 10_000;
const LONGEST_PAUSE_MS = 32;

interface Parts {
  readonly layout: Layout;
  readonly disk: Disk;
  readonly tickets: Tickets;
  readonly locks: Locks;
  readonly host: Host;
}

type Attempt = RefOutcome | { readonly busy: string; readonly ref: string };

export class FileRefs implements RefStore {
  readonly #parts: Parts;
  readonly #packed: PackedRefs;
  /** Folders (path and inode) whose own entry, and those above, this process has flushed. */
  readonly #flushed = new Set<string>();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#packed = new PackedRefs(join(parts.layout.commonDir, 'packed-refs'));
  }

  async update(change: RefChange, budgetMs = DEFAULT_BUDGET_MS): Promise<RefOutcome> {
    checkName(change.move.ref);
    const { host } = this.#parts;
    const begun = host.monotonicMs();
    for (let longest = 1; ; longest = Math.min(longest * 2, LONGEST_PAUSE_MS)) {
      const attempt = this.#attempt(change);
      if ('moved' in attempt) return attempt;
      // A refusal needs no lock: do not wait for one to learn that the ref is elsewhere.
      const refused = this.#compare(change);
      if (refused !== null) return refused;
      const waitedMs = Math.round(host.monotonicMs() - begun);
      if (waitedMs >= budgetMs)
        throw new DurableError('ref-locked', { ref: attempt.ref, owner: attempt.busy, waitedMs });
      await pause(longest * jitter(host));
    }
  }

  read(ref: string): string | null {
    for (let name = ref, hops = 0; ; hops += 1) {
      const value = this.#loose(name) ?? this.#packed.read(name);
      if (value === null || !value.startsWith('ref: ')) return value;
      if (hops === 5) throw new DurableError('ref-damaged', { ref, detail: 'symbolic refs in a circle' });
      name = value.slice('ref: '.length);
    }
  }

  list(prefix: string): Map<string, string> {
    const found = new Map<string, string>();
    // Loose first, and loose wins: one that is packed and pruned meanwhile is in the packed file by then.
    for (const ref of looseNames(this.#parts.layout.commonDir, prefix)) {
      const oid = this.read(ref);
      if (oid !== null) found.set(ref, oid);
    }
    for (const [ref, oid] of this.#packed.list(prefix)) if (!found.has(ref)) found.set(ref, oid);
    return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  names(prefix: string, without?: string): string[] {
    const loose = looseNames(this.#parts.layout.commonDir, prefix, without);
    const packed = [...this.#packed.list(prefix)].map(([ref]) => ref);
    const isIn = (ref: string): boolean => without === undefined || !ref.startsWith(`${without}/`);
    return [...new Set([...loose, ...packed.filter(isIn)])].sort();
  }

  mend(ref: string, to: string): boolean {
    checkName(ref);
    const lock = `${this.#path(ref)}.lock`;
    const busy = this.#take(ref, lock);
    if (busy !== null) throw new DurableError('ref-locked', { ref, owner: busy, waitedMs: 0 });
    try {
      if (!this.#isDamaged(ref)) return false;
      this.#move({ ref, from: '', to });
      return true;
    } finally {
      this.#parts.locks.release(lock);
    }
  }

  #isDamaged(ref: string): boolean {
    try {
      this.read(ref);
      return false;
    } catch (error) {
      if (hasCode(error, 'ref-damaged')) return true;
      throw error;
    }
  }

  /** One try, without waiting: all locks or none. */
  #attempt(change: RefChange): Attempt {
    const refs = [...new Set([...(change.verify ?? []).map(({ ref }) => ref), change.move.ref])];
    const taken: string[] = [];
    try {
      for (const ref of refs) {
        const lock = `${this.#path(ref)}.lock`;
        const busy = this.#take(ref, lock);
        if (busy !== null) return { busy, ref };
        taken.push(lock);
      }
      const refused = this.#compare(change);
      if (refused !== null) return refused;
      this.#move(change.move);
      return { moved: true };
    } finally {
      for (const lock of taken.reverse()) this.#parts.locks.release(lock);
    }
  }

  /** Null when taken, else who has it. A missing folder is made, a dead owner's lock removed. */
  #take(ref: string, lock: string): string | null {
    const { locks, disk, layout } = this.#parts;
    for (let tries = 0; tries < 8; tries += 1) {
      const outcome = this.#typed(ref, () => locks.take(lock));
      if (outcome === 'taken') return null;
      if (outcome === 'missing') {
        // Beside us `git pack-refs` and gc remove ref folders that they have emptied.
        this.#typed(ref, () => {
          disk.makePassingDir('ref.lock', dirname(lock), layout.bits.dir);
        });
        continue;
      }
      const healing = locks.heal(lock, (dead) => {
        disk.unlink('claim.unlock', this.#value(ref, dead));
      });
      if (healing.state === 'foreign') return 'git, or another program (its lock names nobody)';
      if (healing.state === 'held') return describe(healing.owner, healing.why);
    }
    return 'several processes in turn';
  }

  #compare(change: RefChange): RefOutcome | null {
    for (const { ref, oid } of change.verify ?? []) {
      const was = this.read(ref);
      if (was !== oid) return { moved: false, ref, was };
    }
    const was = this.read(change.move.ref);
    return was === change.move.from ? null : { moved: false, ref: change.move.ref, was };
  }

  #move(move: RefChange['move']): void {
    const { disk, tickets, layout } = this.#parts;
    if (move.from === null) this.#checkAvailable(move.ref);
    const path = this.#path(move.ref);
    const value = this.#value(move.ref, tickets);
    try {
      disk.create('ref.value', value, Buffer.from(`${move.to}\n`, 'latin1'), layout.bits.file);
      this.#replace(move.ref, value, path);
    } catch (error) {
      disk.unlink('ref.value', value);
      throw error;
    }
    this.#flush(dirname(path));
  }

  #replace(ref: string, value: string, path: string): void {
    const { disk } = this.#parts;
    if (disk.rename('ref.move', value, path) === 'done') return;
    // Git leaves empty folders where refs of that name once were.
    removeEmptyDirs(disk, path);
    if (disk.rename('ref.move', value, path) === 'done') return;
    throw new DurableError('ref-conflict', { ref, other: `${ref}/…` });
  }

  /** A ref may not be a folder of another one; the file system sees it among loose refs, not in the packed file. */
  #checkAvailable(ref: string): void {
    for (const [other] of this.#packed.list(`${ref}/`)) {
      if (this.read(other) !== null) throw new DurableError('ref-conflict', { ref, other });
    }
    for (const other of parents(ref)) {
      if (this.#packed.read(other) !== null) throw new DurableError('ref-conflict', { ref, other });
    }
  }

  #flush(dir: string): void {
    const { disk, layout } = this.#parts;
    disk.syncDir('ref.move', dir);
    for (let at = dir; at.startsWith(layout.commonDir) && at !== layout.commonDir; at = dirname(at)) {
      const { ino } = statSync(at, { bigint: true });
      const key = `${ino.toString()} ${at}`;
      if (this.#flushed.has(key)) return;
      // Made by git, or by a process that was killed before it flushed: its own entry may not be durable.
      disk.syncDir('ref.move', dirname(at));
      this.#flushed.add(key);
    }
  }

  /** Runs `act`; a file where a folder should be is another ref in the way. */
  #typed<T>(ref: string, act: () => T): T {
    try {
      return act();
    } catch (error) {
      if (!(error instanceof DurableError) || errno(error.cause) !== 'ENOTDIR') throw error;
      const other = parents(ref).find((name) => this.#loose(name) !== null);
      throw other === undefined ? error : new DurableError('ref-conflict', { ref, other }, error);
    }
  }

  #loose(ref: string): string | null {
    const bytes = readLoose(this.#path(ref));
    if (bytes === null) return null;
    const text = bytes.replace(/\s+$/, '');
    const size = this.#parts.layout.objectFormat === 'sha1' ? 40 : 64;
    if (text.startsWith('ref: ') || (text.length === size && /^[0-9a-f]+$/.test(text))) return text;
    throw new DurableError('ref-damaged', {
      ref,
      detail: text === '' ? 'the file is empty' : 'its file is torn',
    });
  }

  #path(ref: string): string {
    const { commonDir, gitDir } = this.#parts.layout;
    const own = !ref.startsWith('refs/') || /^refs\/(?:worktree|bisect|rewritten)\//.test(ref);
    return join(own ? gitDir : commonDir, ref);
  }

  /** The new value before it is the ref: git and its fsck ignore names that end in `.lock`. */
  #value(ref: string, owner: Ticket | Tickets): string {
    return `${this.#path(ref)}.${owner.id}.lock`;
  }
}

function describe(owner: Ticket, why: string): string {
  return `process ${String(owner.pid)} on ${owner.hostname} (${why})`;
}

function jitter(host: Host): number {
  const [high = 0, low = 0] = host.random(2);
  return (high * 256 + low) / 65_536;
}

function removeEmptyDirs(disk: Disk, path: string): void {
  for (const entry of entriesOf(path)) if (entry.isDirectory()) removeEmptyDirs(disk, join(path, entry.name));
  disk.removeDir('ref.move', path);
}
