/**
 * Checkpoints: the work tree as it was, kept among a task's contents and named by an event.
 *
 * Order (a crash between two steps leaves what the step says):
 *   1. snapshot into a quarantine (lib/git/snapshot.ts): nothing outside it
 *   2. its objects into the object store, as one pack with `.keep`: a pack that nothing names
 *   3. a contents commit with `worktree/` and `payload/scope`, and the ref moved to it: contents that no event names
 *   4. `checkpoint.taken` in the ledger: the checkpoint exists, for good
 *   5. the pack sealed, the private index adopted, the quarantine gone: the next checkpoint sweeps, and looks a little longer
 *
 * A checkpoint's id is that contents commit. A snapshot that cannot be taken is an error, never an empty or a partial
 * checkpoint. The user's index, HEAD, branches, stash and reflogs are not written (invariant 6).
 *
 * Measured on a warm tree of 50,000 files with 10 changed (test/bench/checkpoint.bench.ts), ratio to
 * `git --no-optional-locks status`: see the table there; the ways that were tried are in the commit that brought this file.
 */
import { DurableError, hasCode, isLoss } from '../errors.js';
import type { Event, Recorded } from '../event.js';
import { headTree } from '../git/head.js';
import { releaseKeeps } from '../git/keep.js';
import {
  forgetSnapshots,
  lastKeptTree,
  takeSnapshot,
  type Snapshot,
  type SkippedPath,
} from '../git/snapshot.js';
import { displayPath } from '../git/path.js';
import { readWhole } from '../git/objects.js';
import type { Storage } from '../git/storage.js';
import { refuseDetour, statIn, treePath } from '../git/tree-path.js';
import { canonicalJson } from '../canonical.js';
import type { Ledger } from '../ledger/ledger.js';
import type { AppendBy } from '../ledger/plan.js';
import { readCheckpoint, type Scope } from './checkpoint-read.js';

export type CheckpointReason = Event<'checkpoint.taken'>['reason'];

export interface CheckpointRequest {
  /** For people, cut at 2,000 characters. */
  readonly message: string;
  readonly reason: CheckpointReason;
  /**
   * Paths relative to the work tree that are kept even when ignored; a folder means all below it ('' the whole tree), a file is
   * kept even over durable.maxFileSize.
   */
  readonly paths?: readonly string[];
  /** Default: the task's open turn. */
  readonly turn?: string | null;
  /** With a lease the event is verified against it. */
  readonly by: Omit<AppendBy, 'lease'> & Partial<Pick<AppendBy, 'lease'>>;
}

export interface TakenCheckpoint {
  /** Id of the contents commit: what `restore`, `diff` and `show` take. */
  readonly checkpoint: string;
  /** The work tree's own tree. */
  readonly tree: string;
  /** Files and links in it. */
  readonly files: number;
  /** Paths that differ from the checkpoint before, of this task or else of this work tree (all, when there is none). */
  readonly changed: number;
  /** All that was left out; the event names 100 of them at most. */
  readonly skipped: readonly (SkippedPath & { readonly digest: string | null })[];
  readonly event: Recorded<'checkpoint.taken'>;
}

/** An event's list does not grow with the tree (openai/codex#7395: one record of 3.9 GB). */
const NAMED_AT_MOST = 100;

/**
 * Errors: 'out-of-space', 'permission-denied', 'io-failed' (nothing left behind), 'checkpoint-incomplete' (git cannot do
 * it), 'path-outside', 'path-refused', those of an append.
 */
export async function takeCheckpoint(
  storage: Storage,
  ledger: Ledger,
  request: CheckpointRequest,
): Promise<TakenCheckpoint> {
  const named = (request.paths ?? []).map((path) => treePath(path));
  try {
    return await attempt(storage, ledger, { ...request, paths: named, isAnew: false });
  } catch (error) {
    if (!hasCode(error, 'git-failed') && !isLoss(error)) throw error;
    // The private index, or the checkpoint before, names objects that were pruned or purged meanwhile.
    forgetSnapshots(storage);
  }
  try {
    return await attempt(storage, ledger, { ...request, paths: named, isAnew: true });
  } catch (error) {
    if (!hasCode(error, 'git-failed')) throw error;
    throw new DurableError('checkpoint-incomplete', { detail: error.message }, error);
  }
}

/**
 * Paths that somebody named, as `CheckpointRequest.paths` takes them. A name that keeps nothing is refused, or its owner
 * would believe it kept: 'path-outside', 'path-refused'.
 */
export function presentPaths({ layout }: Storage, paths: readonly string[]): string[] {
  return paths.map((given) => {
    const path = treePath(given);
    if (path === '') return path;
    refuseDetour(layout, path);
    if (statIn(layout.workTree, path) === null)
      throw new DurableError('path-refused', { path: displayPath(given), why: 'nothing is there' });
    return path;
  });
}

interface Attempt extends CheckpointRequest {
  readonly paths: readonly string[];
  /** Nothing of earlier checkpoints is believed to be there. */
  readonly isAnew: boolean;
}

async function attempt(storage: Storage, ledger: Ledger, request: Attempt): Promise<TakenCheckpoint> {
  const [snapshot, parent, head] = await Promise.all([
    takeSnapshot(storage, request.paths),
    request.isAnew ? null : parentTree(storage, ledger),
    headTree(storage),
  ]);
  try {
    const [changed] = await Promise.all([
      parent === null ? snapshot.facts.files : snapshot.changes(parent).then(({ length }) => length),
      snapshot.publish({ parent, head }),
    ]);
    return await record(storage, ledger, { request, snapshot, changed });
  } catch (error) {
    snapshot.discard();
    throw error;
  }
}

interface Recording {
  readonly request: Attempt;
  readonly snapshot: Snapshot;
  readonly changed: number;
}

async function record(storage: Storage, ledger: Ledger, recording: Recording): Promise<TakenCheckpoint> {
  const { request, snapshot, changed } = recording;
  const { tree, files, absent } = snapshot.facts;
  const skipped = snapshot.facts.skipped.map((one) => ({ ...one, digest: null }));
  const scope: Scope = {
    v: 1,
    named: [...request.paths],
    skipped: [...snapshot.facts.skipped],
    absent: [...absent],
  };
  const payload = new Map([
    ['scope', await storage.objects.write('blob', Buffer.from(canonicalJson(scope)))],
  ]);
  const message = `checkpoint: ${request.message}`;
  const checkpoint = await ledger.contents.commitTree({ worktree: tree, payload, message });
  try {
    const [event] = await ledger.append(
      () => [
        {
          type: 'checkpoint.taken',
          ...(request.turn === undefined ? {} : { turn: request.turn }),
          checkpoint,
          tree,
          message: request.message,
          files,
          changed,
          skipped: skipped.length,
          skippedList: skipped.slice(0, NAMED_AT_MOST),
          reason: request.reason,
        },
      ],
      { lease: null, ...request.by },
    );
    return { checkpoint, tree, files, changed, skipped, event: taken(event) };
  } finally {
    snapshot.settle({ ref: ledger.contents.ref, commit: checkpoint });
    releaseKeeps(storage);
  }
}

function taken(recorded: Recorded | undefined): Recorded<'checkpoint.taken'> {
  if (recorded?.event.type !== 'checkpoint.taken')
    throw new TypeError('an append gave another event than was asked for');
  return { commit: recorded.commit, chain: recorded.chain, event: recorded.event };
}

/**
 * The tree of the checkpoint before, of this task or else of this work tree; null when there is none or it was pruned. Errors:
 * 'object-missing' when its root is lost: a tree that is the same now would be taken for one that is kept.
 */
async function parentTree(storage: Storage, ledger: Ledger): Promise<string | null> {
  const { lastCheckpoint } = await ledger.state();
  const tree = await (lastCheckpoint === null ? lastKeptTree(storage) : treeIn(storage, lastCheckpoint));
  if (tree !== null && (await readWhole(storage.objects, tree)) === undefined)
    throw new DurableError('object-missing', { oid: tree, needed: 'the checkpoint before' });
  return tree;
}

async function treeIn(storage: Storage, checkpoint: string): Promise<string | null> {
  try {
    return (await readCheckpoint(storage, checkpoint)).tree;
  } catch (error) {
    if (isLoss(error)) return null;
    throw error;
  }
}
