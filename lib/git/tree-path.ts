/**
 * Which paths may be named and written, and how a path is looked at without being led astray: the one place that decides.
 *
 * A path is relative to the work tree and `/`-separated. `treePath` takes what may be named, '' being the work tree itself;
 * `filePath` what may be written. Refused are absolute paths and `..` ('path-outside'), and `.git` in any component and any
 * case, whether of this repository or of one nested in it ('path-refused'). `refuseDetour` looks at the disk: no folder above
 * the path may be a symbolic link (git's "beyond a symbolic link") or this repository's own git dir under another name.
 * What lies beyond a link is not in the work tree: `statIn` finds nothing there, and `linkAbove` says which link it is.
 *
 * Caveat: another process may put a link in a folder's place between that look and a rename; node has no openat(2).
 */
import { lstatSync, realpathSync, type Stats } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { DurableError } from '../errors.js';
import { diskError, isAbsence, type DiskPath } from './disk.js';
import type { Layout } from './layout.js';
import { displayPath, fsPath } from './path.js';

/** Characters that HFS+ leaves out when it compares names (git's utf8.c, next_hfs_char, lists the same). */
const IGNORED_BY_HFS = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/gu;

/** The path with empty and `.` components left out; '' is the work tree. Throws 'path-outside', 'path-refused'. */
export function treePath(path: string): string {
  if (path.startsWith('/')) throw outside(path);
  if (path.includes('\0')) throw refused(path, 'it has a NUL byte');
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw outside(path);
  if (parts.some((part) => part.replace(IGNORED_BY_HFS, '').toLowerCase() === '.git'))
    throw refused(path, "git's own folder is no part of the work tree");
  return parts.join('/');
}

/** The path of a file, as `treePath` gives it. Throws also 'path-refused' for what names a folder. */
export function filePath(path: string): string {
  const file = treePath(path);
  if (file === '') throw refused(path, 'it names the work tree itself');
  if (path.endsWith('/')) throw refused(path, 'it names a folder');
  return file;
}

/** The folders above a path, outermost first: `a/b/c` has `a` and `a/b`. */
export function foldersAbove(path: string): string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}

/**
 * Throws 'path-outside' where a link above the path leads out of the work tree, 'path-refused' where one leads elsewhere
 * inside or where a folder above is the git dir. What is not there cannot lead astray.
 */
export function refuseDetour(layout: Layout, path: string): void {
  for (const folder of foldersAbove(path)) {
    const stat = statOf(fsPath(layout.workTree, folder));
    if (stat === null) return;
    if (stat.isSymbolicLink()) {
      if (leadsOutside(layout.workTree, folder)) throw outside(path);
      throw refused(path, `it is beyond the symbolic link '${displayPath(folder)}'`);
    }
    if (!stat.isDirectory()) return;
    if (isGitDir(layout, stat)) throw refused(path, `'${displayPath(folder)}' is the git dir`);
  }
}

/** The outermost folder above the path that is a link; null when there is none. Throws 'permission-denied', 'io-failed'. */
export function linkAbove(workTree: string, path: string): string | null {
  for (const folder of foldersAbove(path)) {
    const stat = statOf(fsPath(workTree, folder));
    if (stat?.isDirectory() !== true) return stat?.isSymbolicLink() === true ? folder : null;
  }
  return null;
}

/**
 * lstat of a path of the work tree; null where nothing is, and beyond a link. Throws 'permission-denied', 'io-failed'.
 */
export function statIn(workTree: string, path: string): Stats | null {
  return linkAbove(workTree, path) === null ? statOf(fsPath(workTree, path)) : null;
}

/** lstat; null where nothing is. Throws 'permission-denied', 'io-failed'. */
export function statOf(file: DiskPath): Stats | null {
  try {
    return lstatSync(file);
  } catch (error) {
    if (isAbsence(error)) return null;
    throw diskError(error, file);
  }
}

/** The absolute path with its folder resolved: it may lead to the work tree through a link outside of it (/tmp on macOS), or inside. */
export function throughLinks(path: string): string {
  const folder = dirname(path);
  if (folder === path) return path;
  try {
    return join(realpathSync(fsPath('', folder.slice(1))), path.slice(folder.length));
  } catch {
    return join(throughLinks(folder), path.slice(folder.length));
  }
}

function isGitDir(layout: Layout, stat: Stats): boolean {
  return [layout.gitDir, layout.commonDir].some((dir) => {
    const own = lstatSync(dir, { throwIfNoEntry: false });
    return own !== undefined && own.ino === stat.ino && own.dev === stat.dev;
  });
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

const outside = (path: string): DurableError => new DurableError('path-outside', { path: displayPath(path) });

const refused = (path: string, why: string): DurableError =>
  new DurableError('path-refused', { path: displayPath(path), why });
