/**
 * Where a path of the work tree lies on disk, checked by lib/git/tree-path.ts: no write of ours leaves the work tree or
 * enters a git dir. A path that is not written in its shortest form is refused: its caller did not check it.
 */
import { DurableError } from '../errors.js';
import type { DiskPath } from '../git/disk.js';
import type { Layout } from '../git/layout.js';
import { displayPath, fsPath } from '../git/path.js';
import { filePath, foldersAbove, refuseDetour, statIn } from '../git/tree-path.js';

export interface Place {
  /** Relative to the work tree, as it was given. */
  readonly path: string;
  /** As node:fs takes it. */
  readonly file: DiskPath;
  readonly parent: DiskPath;
  /** Missing folders, the outermost first. */
  readonly missing: readonly DiskPath[];
  /** Another name in the same folder. */
  readonly beside: (name: string) => { readonly file: DiskPath; readonly text: string };
}

/**
 * Errors: 'path-outside', 'path-refused', 'permission-denied', 'io-failed'.
 */
export function placeIn(layout: Layout, path: string): Place {
  const { workTree } = layout;
  if (filePath(path) !== path)
    throw new DurableError('path-refused', { path: displayPath(path), why: 'an empty or dot component' });
  refuseDetour(layout, path);
  const missing: DiskPath[] = [];
  for (const folder of foldersAbove(path)) {
    const stat = missing.length > 0 ? null : statIn(workTree, folder);
    if (stat === null) missing.push(fsPath(workTree, folder));
    else if (!stat.isDirectory())
      throw new DurableError('path-refused', {
        path: displayPath(path),
        why: `'${displayPath(folder)}' is a file`,
      });
  }
  const parent = foldersAbove(path).at(-1) ?? '';
  const prefix = parent === '' ? '' : `${parent}/`;
  return {
    path,
    file: fsPath(workTree, path),
    parent: parent === '' ? workTree : fsPath(workTree, parent),
    missing,
    beside: (name) => ({ file: fsPath(workTree, prefix + name), text: `${workTree}/${prefix}${name}` }),
  };
}
