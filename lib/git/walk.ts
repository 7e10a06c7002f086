/**
 * What a named path means on disk: itself, or everything below a folder, ignored or not.
 *
 * Nested repositories are named and not entered; links are not followed.
 */
import { existsSync, lstatSync, readdirSync } from 'node:fs';
import { errno, isAbsence } from './disk.js';
import { decodePath, encodePath, fsPath } from './path.js';

export interface Below {
  readonly files: string[];
  /** Folders that were entered, `path` itself first, each before those in it. */
  readonly folders: string[];
  readonly nested: string[];
  /** Folders that cannot be listed. */
  readonly unreadable: string[];
}

/** `path` is relative to `root`; '' is the root itself. A path that is not there gives itself: it was asked for. */
export function below(root: string, path: string): Below {
  const found: Below = { files: [], folders: [], nested: [], unreadable: [] };
  if (path === '' || isFolder(root, path)) enter(root, path, found);
  else found.files.push(path);
  return found;
}

/** True for a folder that holds a repository of its own, with or without commits. */
export function isRepository(root: string, folder: string): boolean {
  return existsSync(fsPath(root, `${folder}/.git`));
}

function enter(root: string, folder: string, found: Below): void {
  if (folder !== '' && isRepository(root, folder)) {
    found.nested.push(folder);
    return;
  }
  found.folders.push(folder);
  for (const entry of entriesOf(root, folder, found)) {
    const name = decodePath(entry.name);
    if (/^\.git$/i.test(name)) continue;
    const path = folder === '' ? name : `${folder}/${name}`;
    if (entry.isDirectory()) enter(root, path, found);
    else found.files.push(path);
  }
}

function entriesOf(root: string, folder: string, found: Below): { name: Buffer; isDirectory(): boolean }[] {
  const place = folder === '' ? encodePath(root) : fsPath(root, folder);
  try {
    return readdirSync(place, { withFileTypes: true, encoding: 'buffer' });
  } catch (error) {
    if (isAbsence(error)) return [];
    if (errno(error) !== 'EACCES') throw error;
    found.unreadable.push(folder);
    return [];
  }
}

function isFolder(root: string, path: string): boolean {
  try {
    return lstatSync(fsPath(root, path)).isDirectory();
  } catch (error) {
    if (isAbsence(error) || errno(error) === 'EACCES') return false;
    throw error;
  }
}
