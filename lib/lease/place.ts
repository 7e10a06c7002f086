/**
 * Where a path of the work tree lies on disk, checked: no write of ours leaves the work tree or enters a git dir.
 *
 * A path is relative to the work tree, `/`-separated. Refused are absolute paths, `.` and `..`, any component that git
 * would refuse as `.git`, and paths beyond a symbolic link: one that leads outside would write there, one that leads
 * elsewhere inside names a file that has another path (git's own "beyond a symbolic link").
 *
 * Caveat: another process may put a link in a parent's place between this look and the rename; node has no openat(2).
 */
import { lstatSync, realpathSync, type Stats } from 'node:fs';
import { sep } from 'node:path';
import { DurableError } from '../errors.js';
import { diskError, errno, type DiskPath } from '../git/disk.js';
import { displayPath, fsPath } from '../git/path.js';

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
export function placeIn(workTree: string, path: string): Place {
  const parts = checkedParts(path);
  const missing: DiskPath[] = [];
  for (let depth = 1; depth < parts.length; depth += 1) {
    const folder = parts.slice(0, depth).join('/');
    const stat = missing.length > 0 ? null : statOf(fsPath(workTree, folder));
    if (stat === null) missing.push(fsPath(workTree, folder));
    else checkFolder({ workTree, path, folder, stat });
  }
  const parent = parts.slice(0, -1).join('/');
  const prefix = parent === '' ? '' : `${parent}/`;
  return {
    path,
    file: fsPath(workTree, path),
    parent: parent === '' ? workTree : fsPath(workTree, parent),
    missing,
    beside: (name) => ({ file: fsPath(workTree, prefix + name), text: `${workTree}/${prefix}${name}` }),
  };
}

/** lstat, null where nothing is. */
export function statOf(file: DiskPath): Stats | null {
  try {
    return lstatSync(file);
  } catch (error) {
    if (errno(error) === 'ENOENT' || errno(error) === 'ENOTDIR') return null;
    throw diskError(error, file);
  }
}

function checkedParts(path: string): string[] {
  const parts = path.split('/');
  if (path === '' || path.startsWith('/') || parts.includes('..'))
    throw new DurableError('path-outside', { path: displayPath(path) });
  if (path.includes('\0'))
    throw new DurableError('path-refused', { path: displayPath(path), why: 'it holds a NUL' });
  if (parts.some((part) => part === '' || part === '.'))
    throw new DurableError('path-refused', { path: displayPath(path), why: 'an empty or dot component' });
  if (parts.some((part) => /^\.git$/i.test(part)))
    throw new DurableError('path-refused', { path: displayPath(path), why: 'it is inside a git dir' });
  return parts;
}

function checkFolder(at: { workTree: string; path: string; folder: string; stat: Stats }): void {
  const path = displayPath(at.path);
  const folder = displayPath(at.folder);
  if (at.stat.isDirectory()) return;
  if (!at.stat.isSymbolicLink())
    throw new DurableError('path-refused', { path, why: `'${folder}' is a file` });
  if (leadsOutside(at.workTree, at.folder)) throw new DurableError('path-outside', { path });
  throw new DurableError('path-refused', { path, why: `it is beyond the symbolic link '${folder}'` });
}

function leadsOutside(workTree: string, folder: string): boolean {
  try {
    const real = realpathSync.native(fsPath(workTree, folder), 'buffer');
    const root = realpathSync.native(workTree, 'buffer');
    return (
      !real.equals(root) && !real.subarray(0, root.length + 1).equals(Buffer.concat([root, Buffer.from(sep)]))
    );
  } catch {
    // It leads nowhere (dangling, or in a circle): not provably inside.
    return true;
  }
}
