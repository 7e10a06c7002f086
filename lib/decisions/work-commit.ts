/**
 * Which commit contains the work of a turn.
 *
 * It is the oldest commit of HEAD's history that is new since the turn's baseline and whose tree has, for each path that the turn
 * changed, what the turn left there. A path that the turn added and that no commit has taken up
 * (a log, a scratch file) does not count against it, as long as another one is there. A turn that changed no file, but made commits,
 * is contained in the HEAD that it left.
 *
 * Reads only. Caveats: bytes are compared as the checkpoint has them, so a file that a filter converts on its way into a commit
 * (`autocrlf`, LFS) is not recognised; neither is work that was edited again before it was committed.
 */
import type { Image } from '../event.js';
import { treeChanges, type Difference } from '../files/diff.js';
import { readCheckpoint } from '../files/checkpoint-read.js';
import { parseCommit } from '../git/objects-format.js';
import type { Storage } from '../git/storage.js';
import type { TurnTrees } from './claim-facts.js';
import type { TurnRecord } from './claim-turn.js';

const MOST_COMMITS = 200;

export interface Look {
  readonly trees: TurnTrees;
  /** HEAD; null before the first commit. */
  readonly head: string | null;
  /** True when it is HEAD at the turn's end. Default false. */
  readonly isEnd?: boolean;
  /** Of HEAD's newest commits only so many are looked at. Default 200. */
  readonly most?: number;
}

/** Null when there is none (yet). Errors: 'object-missing' for a checkpoint that was pruned, 'git-failed'. */
export async function workCommit(
  storage: Storage,
  record: TurnRecord,
  { trees, head, isEnd = false, most = MOST_COMMITS }: Look,
): Promise<string | null> {
  const { baseline } = record.turn.started.event;
  const { after, differences } = trees;
  if (head === null || head === baseline.head || after === null || differences === null) return null;
  const commits = await newCommits(storage, { head, base: baseline.head, most });
  if (differences.length === 0) return isEnd && commits.length > 0 ? head : null;
  const { tree } = await readCheckpoint(storage, after);
  const atHead = await differing(storage, head, tree);
  // Added, and in no commit: left out on purpose, or not yet.
  const wanted = differences.filter(({ path, before }) => before !== null || atHead.get(path) !== null);
  const base = baseline.head;
  for (const commit of commits) {
    const differs = commit === head ? atHead : await differing(storage, commit, tree);
    if (wanted.length === 0 || wanted.some(({ path }) => differs.has(path))) continue;
    return (await isOwn(storage, { base, commit, wanted })) ? commit : null;
  }
  return null;
}

/** Where a commit is not as the tree, to what the commit has there. */
async function differing(storage: Storage, commit: string, tree: string): Promise<Map<string, Image>> {
  const changes = await treeChanges(storage, await treeOf(storage, commit), tree);
  return new Map(changes.map(({ path, before }) => [path, before]));
}

/** Some of it came with the commits, and was not there all along (edited, and so brought to what was committed already). */
async function isOwn(
  storage: Storage,
  {
    base,
    commit,
    wanted,
  }: { readonly base: string | null; readonly commit: string; readonly wanted: readonly Difference[] },
): Promise<boolean> {
  if (base === null) return true;
  const trees = [await treeOf(storage, base), await treeOf(storage, commit)] as const;
  const changed = new Set((await treeChanges(storage, ...trees)).map(({ path }) => path));
  return wanted.some(({ path }) => changed.has(path));
}

/** Oldest first. */
async function newCommits(
  storage: Storage,
  { head, base, most }: { readonly head: string; readonly base: string | null; readonly most: number },
): Promise<string[]> {
  const range = base === null ? [head] : [head, `^${base}`];
  const listed = await storage.git.run([
    'rev-list',
    `--max-count=${String(most)}`,
    '--topo-order',
    ...range,
    '--',
  ]);
  // The baseline's commit may have been pruned since.
  if (listed.code !== 0) return [];
  const commits = listed.stdout.toString('utf8').trim();
  return commits === '' ? [] : commits.split('\n').reverse();
}

async function treeOf(storage: Storage, commit: string): Promise<string> {
  const object = await storage.objects.read(commit);
  return object?.type === 'commit' ? parseCommit(object.body).tree : commit;
}
