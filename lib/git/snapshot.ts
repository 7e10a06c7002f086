/**
 * A byte-exact snapshot of the work tree as a git tree, taken beside the user's git and never through it.
 *
 * Calling order: `takeSnapshot` · look at it (`tree`, `changes`) · `publish` makes its objects durable in the object store · the
 * caller moves a ref to a commit that holds the tree · `settle` remembers it as the next one's start · or `discard`, at
 * any moment, and nothing has happened but in the quarantine. `settle` and `discard` end it.
 *
 * What is in it: see changed-names.ts. Every byte as it is on disk (private-dir.ts), exec bits, links, deletions, empty
 * files, any name but `.git` (and no link named `.gitmodules`, which git refuses). Left out and named (`skipped`): files over
 * durable.maxFileSize that were not named themselves, nested repositories and submodules, what cannot be read or does not stand
 * still, fifos, sockets and devices. Paths of a sparse checkout that are not on disk are `absent`: neither kept nor deleted.
 *
 * Guarantees: the user's index, HEAD, refs and stash are read at most; a file that changes meanwhile ends nothing and is
 * kept as it was at one moment (stable-read.ts); a full disk is 'out-of-space' with nothing left behind. A private index
 * that git cannot use (torn, or naming objects that were pruned) is thrown away once, and every file is read.
 *
 * No lock is taken: each process works on its own copy of the index, and the last one to settle leaves its own, which is as
 * true as any. Caveats: folders that hold nothing but empty folders are not kept, nor are owners, times, ACLs and the
 * permission bits git does not know. A fifo or socket that was never tracked is not named: git does not list it.
 */
import { existsSync, readFileSync } from 'node:fs';
import { DurableError, hasCode } from '../errors.js';
import { parseState } from './changed-names.js';
import { PrivateDir } from './private-dir.js';
import { Quarantine, sweepQuarantines, type RunGit } from './quarantine.js';
import type { Storage } from './storage.js';
import { Taking, type SnapshotFacts, type Taken } from './taking.js';
import type { Comparison, TreeChange } from './tree-changes.js';

export type { SkippedPath } from './taking.js';

/**
 * `also`: paths relative to the work tree that are kept even when ignored; a folder means all below it, a file is kept even over the
 * limit.
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

/**
 * The tree of the work tree's last checkpoint, of whatever task, while the ref that kept it still does; else null. Without
 * it each new task would store everything again that is not committed (anomalyco/opencode#6845: 169 GB in two days).
 */
export async function lastKeptTree(storage: Storage): Promise<string | null> {
  const dir = new PrivateDir(storage);
  if (!existsSync(dir.index)) return null;
  const state = parseState(dir.stateOf(readFileSync(dir.index)), storage.settings.maxFileSize);
  if (state?.kept == null) return null;
  const { ref, commit } = state.kept;
  const tip = storage.refs.read(ref);
  if (tip === null) return null;
  if (tip === commit) return state.tree;
  const isKept = (await storage.git.run(['merge-base', '--is-ancestor', commit, tip])).code === 0;
  return isKept ? state.tree : null;
}

async function attempt(storage: Storage, dir: PrivateDir, also: readonly string[]): Promise<Snapshot> {
  const quarantine = Quarantine.open(storage);
  try {
    return new Snapshot(await new Taking(storage, dir, quarantine).take(also));
  } catch (error) {
    dir.release(quarantine);
    throw error;
  }
}

/** Trees that refs hold, and whatever they reach with them: it needs no packing. */
export interface Reached {
  /** Of the checkpoint before. */
  readonly parent: string | null;
  /** Of the user's HEAD. */
  readonly head: string | null;
}

export class Snapshot {
  readonly facts: SnapshotFacts;
  readonly #taken: Taken;
  #packed: string | null = null;

  constructor(taken: Taken) {
    this.facts = taken.facts;
    this.#taken = taken;
  }

  /** What differs between another tree and this one. Errors: 'git-failed'. */
  async changes(from: string): Promise<readonly TreeChange[]> {
    return (await this.#comparison(from)).changes;
  }

  /**
   * Makes every object durable in the store that the trees in `reached` do not reach. Errors: 'out-of-space',
   * 'permission-denied', 'io-failed', 'git-failed'.
   */
  async publish(reached: Reached): Promise<void> {
    const ended = await Promise.allSettled([this.#taken.finishIndex(), this.#pack(reached)]);
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
    if (this.#packed !== null) this.#taken.quarantine.publish(this.#packed);
  }

  async #pack({ parent, head }: Reached): Promise<void> {
    const { facts } = this;
    const { storage, quarantine, dir } = this.#taken;
    // git knows the empty tree without having it.
    if (facts.files === 0) await storage.objects.write('tree', Buffer.alloc(0));
    if (facts.tree === parent || facts.tree === head) return;
    const run: RunGit = (args, options) => dir.output(quarantine, args, options);
    if (parent === null) this.#packed = await quarantine.packReached(facts.tree, head, run);
    else {
      const { objects } = await this.#comparison(parent);
      this.#packed = await quarantine.packObjects([facts.tree, ...objects], run);
    }
  }

  /** To be called when a ref reaches the tree, with the commit that holds it. */
  settle(kept: { readonly ref: string; readonly commit: string }): void {
    const { quarantine, dir, state, behind } = this.#taken;
    if (this.#packed !== null) quarantine.seal(this.#packed);
    if (behind > FAR_BEHIND) dir.anchor(quarantine, this.facts.tree);
    dir.adopt(quarantine, JSON.stringify({ ...state, kept }));
    dir.release(quarantine);
  }

  discard(): void {
    this.#taken.dir.release(this.#taken.quarantine);
  }

  #comparison(from: string): Promise<Comparison> {
    return this.#taken.compare(from, this.facts.tree);
  }
}

/** Paths by which the private HEAD may differ from the index before listing them costs more than a new commit. */
const FAR_BEHIND = 200;
