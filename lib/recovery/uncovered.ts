/**
 * What of a turn no checkpoint tells anything about, so that no repair touches it: it must be named, or a roll back would pass for
 * more than it is.
 *
 * Only a call whose paths nobody named (a shell command, the agent under `run`) can have changed such a path unseen. Listed are the
 * paths that a checkpoint around such a call left out (lib/git/snapshot.ts), and what is ignored, whole folders by their name, but
 * for what the checkpoint holds by name. Whether the turn has changed them nobody knows. Costs one `git ls-files`.
 */
import { isLoss } from '../errors.js';
import { readCheckpoint } from '../files/checkpoint-read.js';
import { isAtOrBelow } from '../files/diff.js';
import { splitPaths } from '../git/path.js';
import { foldersAbove } from '../git/tree-path.js';
import type { Storage } from '../git/storage.js';
import type { Uncovered } from './document.js';
import type { Findings } from './findings.js';
import { hasUnknownEffect } from './touched.js';

const IGNORED = ['ls-files', '--others', '--ignored', '--exclude-standard', '--directory', '-z'];

/** Sorted by path. Errors: 'git-failed'. */
export async function uncoveredIn(storage: Storage, findings: Findings): Promise<Uncovered[]> {
  const blind = findings.calls.filter(({ call, state }) => hasUnknownEffect(call) && state !== 'not-started');
  if (blind.length === 0) return [];
  const named = new Set<string>();
  for (const { call } of blind)
    if (call.checkpoint !== null) for (const path of await namedIn(storage, call.checkpoint)) named.add(path);
  const found = new Map<string, Uncovered['why']>();
  for (const path of splitPaths(await storage.git.output(IGNORED))) {
    const plain = path.replace(/\/$/, '');
    if (!isAtOrBelow(plain, named)) found.set(plain, 'ignored');
  }
  for (const { path, why } of findings.leftOut) found.set(path, why);
  // These have a verdict, and what a repair replaces of them it keeps.
  for (const { touched } of findings.files) found.delete(touched.path);
  const places = new Set(found.keys());
  const isInside = (path: string): boolean => foldersAbove(path).some((folder) => places.has(folder));
  return [...found]
    .filter(([path]) => !isInside(path))
    .map(([path, why]) => ({ path, why }))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** None where it is lost, which the findings say. */
async function namedIn(storage: Storage, checkpoint: string): Promise<readonly string[]> {
  try {
    return (await readCheckpoint(storage, checkpoint)).scope.named;
  } catch (error) {
    if (isLoss(error)) return [];
    throw error;
  }
}
