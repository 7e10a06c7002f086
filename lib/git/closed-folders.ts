/**
 * Folders of the work tree that this process may not enter: what is in them is neither seen nor gone.
 *
 * git lists nothing of them, calls what it tracks there unchanged, and says so on standard error alone. Its words (untranslated: our
 * gits run with LC_ALL=C) are taken as a hint, and each name is held against the disk; a hint that does not bear out (a name
 * with a newline, or not UTF-8) is `isUnclear`, and the caller has to look at everything.
 */
import { accessSync, constants, lstatSync } from 'node:fs';
import { errno } from './disk.js';
import { fsPath } from './path.js';
import { foldersAbove } from './tree-path.js';

export interface ClosedFolders {
  /** Outermost ones, each once. */
  readonly folders: readonly string[];
  /** Tracked paths in them that git stumbled over. */
  readonly paths: readonly string[];
  readonly isUnclear: boolean;
}

const FOLDER = /^warning: could not open directory '(.*?)\/?': Permission denied$/;
const PATH = /^(?!warning: |error: |fatal: )(.+): Permission denied$/;

export function closedFolders(workTree: string, stderr: string): ClosedFolders {
  const folders = new Set<string>();
  const paths: string[] = [];
  let isUnclear = false;
  for (const line of stderr.split('\n')) {
    const [folder, path] = [FOLDER.exec(line)?.[1], PATH.exec(line)?.[1]];
    const name = folder ?? path;
    if (name === undefined) continue;
    const closed =
      closedAbove(workTree, name) ?? (folder !== undefined && isClosed(workTree, name) ? name : null);
    if (closed === null) isUnclear = true;
    else folders.add(closed);
    if (path !== undefined) paths.push(path);
  }
  return { folders: [...folders], paths, isUnclear };
}

/** The outermost folder above a path that may not be searched; null when each of them may. */
export function closedAbove(workTree: string, path: string): string | null {
  const places = [...foldersAbove(path), path];
  for (const [index, place] of places.entries()) {
    try {
      if (lstatSync(fsPath(workTree, place), { throwIfNoEntry: false }) === undefined) return null;
    } catch (error) {
      return errno(error) === 'EACCES' ? (places[index - 1] ?? null) : null;
    }
  }
  return null;
}

/** Not to be listed. */
function isClosed(workTree: string, folder: string): boolean {
  try {
    accessSync(fsPath(workTree, folder), constants.R_OK | constants.X_OK);
    return false;
  } catch (error) {
    return errno(error) === 'EACCES';
  }
}
