/**
 * Which paths may be written, and how a path is looked at without being led astray.
 *
 * A path is relative to the work tree and `/`-separated. `checkedPath` refuses what never may be written: absolute
 * paths and `..` ('path-outside'), `.git` in any component and any case, whether of this repository or of one nested in it
 * ('path-refused'). `refuseDetour` looks at the disk: no component above the path may be a symbolic link (it would lead
 * out of the work tree) or this repository's own git dir under another name. It is asked again just before each rename;
 * what a hostile process does between that look and the rename is the race window that path replacement keeps.
 */
import { lstatSync, type Stats } from 'node:fs';
import { DurableError } from '../errors.js';
import { diskError, isAbsence } from '../git/disk.js';
import { fsPath } from '../git/path.js';
import type { Layout } from '../git/layout.js';

/** Characters that HFS+ leaves out when it compares names (git's utf8.c, next_hfs_char, lists the same). */
const IGNORED_BY_HFS = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/gu;

/** The path with empty and `.` components left out. Throws 'path-outside', 'path-refused'. */
export function checkedPath(path: string): string {
  if (path.startsWith('/')) throw new DurableError('path-outside', { path });
  if (path.includes('\0')) throw new DurableError('path-refused', { path, why: 'it has a NUL byte' });
  if (path.endsWith('/')) throw new DurableError('path-refused', { path, why: 'it names a folder' });
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw new DurableError('path-outside', { path });
  if (parts.length === 0)
    throw new DurableError('path-refused', { path, why: 'it names the work tree itself' });
  if (parts.some((part) => part.replace(IGNORED_BY_HFS, '').toLowerCase() === '.git'))
    throw new DurableError('path-refused', { path, why: "git's own folder is not written this way" });
  return parts.join('/');
}

/** The folders above a path, outermost first: `a/b/c` has `a` and `a/b`. */
export function foldersAbove(path: string): string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}

/** Throws 'path-refused' when a folder above the path is a link or the git dir. What is not there cannot lead astray. */
export function refuseDetour(layout: Layout, path: string): void {
  for (const folder of foldersAbove(path)) {
    const stat = statOf(layout.workTree, folder);
    if (stat === null) return;
    if (stat.isSymbolicLink())
      throw new DurableError('path-refused', { path, why: `'${folder}' is a symbolic link` });
    if (!stat.isDirectory()) return;
    if (isGitDir(layout, stat))
      throw new DurableError('path-refused', { path, why: `'${folder}' is the git dir` });
  }
}

/** lstat of a path of the work tree; null where nothing is. Throws 'permission-denied', 'io-failed'. */
export function statOf(workTree: string, path: string): Stats | null {
  const place = fsPath(workTree, path);
  try {
    return lstatSync(place);
  } catch (error) {
    if (isAbsence(error)) return null;
    throw diskError(error, place);
  }
}

function isGitDir(layout: Layout, stat: Stats): boolean {
  return [layout.gitDir, layout.commonDir].some((dir) => {
    const own = lstatSync(dir, { throwIfNoEntry: false });
    return own !== undefined && own.ino === stat.ino && own.dev === stat.dev;
  });
}
