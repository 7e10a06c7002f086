/**
 * Names from the user's index, and nothing else of it: not its stat data, flags or blobs (a filter or an end-of-line
 * setting makes those differ from the bytes on disk).
 *
 * `git ls-files` reads without refreshing, takes no lock, and expands a sparse index in memory. A missing index
 * (entireio/cli#2111: absent for a moment, and a commit deleted every file), an unreadable and an empty one all give
 * the names of HEAD as well, so that no snapshot is ever emptied by it.
 */
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { splitPaths } from './path.js';
import type { Storage } from './storage.js';

export interface UserNames {
  /** Files and links, in git's order; an unmerged path stands once. */
  readonly files: ReadonlySet<string>;
  /** Those that a sparse checkout leaves out: when absent they are not deletions. */
  readonly sparse: ReadonlySet<string>;
  readonly submodules: readonly string[];
}

/** Changes whenever the user's index was written; HEAD's commit is in it where there is no index. */
export async function userIndexMark(storage: Storage): Promise<string> {
  const index = lstatSync(indexFile(storage), { bigint: true, throwIfNoEntry: false });
  if (index !== undefined) return [index.ino, index.size, index.mtimeNs, index.ctimeNs].join(' ');
  const head = await storage.git.run(['rev-parse', '--verify', '-q', 'HEAD']);
  return `no index, HEAD ${head.stdout.toString('latin1').trim()}`;
}

export async function userNames(storage: Storage): Promise<UserNames> {
  const listed = await storage.git.run(['ls-files', '-z', '-s', '-t']);
  const fromIndex = listed.code === 0 ? parseStage(listed.stdout) : NONE;
  if (fromIndex.files.size > 0)
    return (await isSparse(storage, fromIndex)) ? fromIndex : { ...fromIndex, sparse: NONE.sparse };
  const head = await storage.git.run(['ls-tree', '-r', '-z', '--full-tree', 'HEAD']);
  return head.code === 0 ? parseTree(head.stdout) : fromIndex;
}

/** The flag alone says nothing: people set it by hand to hide their changes, and a deletion of such a file is one. */
async function isSparse(storage: Storage, { sparse }: UserNames): Promise<boolean> {
  if (sparse.size === 0) return false;
  const setting = await storage.git.run(['config', '--type=bool', 'core.sparseCheckout']);
  return setting.stdout.toString('latin1').trim() === 'true';
}

const NONE: UserNames = { files: new Set(), sparse: new Set(), submodules: [] };

/** `<tag> <mode> <oid> <stage>\t<path>`; a skip-worktree entry has the tag S. */
function parseStage(output: Buffer): UserNames {
  return collect(output, (line) => ({
    isSubmodule: line.startsWith('160000', 2),
    isSparse: line.startsWith('S'),
  }));
}

/** `<mode> <type> <oid>\t<path>` */
function parseTree(output: Buffer): UserNames {
  return collect(output, (line) => ({ isSubmodule: line.startsWith('160000'), isSparse: false }));
}

function collect(
  output: Buffer,
  read: (line: string) => { readonly isSubmodule: boolean; readonly isSparse: boolean },
): UserNames {
  const files = new Set<string>();
  const sparse = new Set<string>();
  const submodules: string[] = [];
  for (const line of splitPaths(output)) {
    const path = line.slice(line.indexOf('\t') + 1);
    const { isSubmodule, isSparse } = read(line);
    if (isSubmodule) submodules.push(path);
    else files.add(path);
    if (isSparse) sparse.add(path);
  }
  return { files, sparse, submodules };
}

const indexFile = (storage: Storage): string => join(storage.layout.gitDir, 'index');
