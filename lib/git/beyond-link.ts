/** What lies beyond a symbolic link is not the work tree's. */
import { lstatSync } from 'node:fs';
import { errno, isAbsence } from './disk.js';
import { fsPath } from './path.js';

/** Says of a path whether a folder above it is a link: what lies there is not the work tree's. Each folder is asked once. */
export function linkFinder(workTree: string): (path: string) => boolean {
  const known = new Map<string, boolean>();
  const isLink = (folder: string): boolean => {
    const found = known.get(folder) ?? looksLikeLink(workTree, folder);
    known.set(folder, found);
    return found;
  };
  let last = '';
  let wasBeyond = false;
  return (path) => {
    // Lists are sorted: most paths lie beside the one before.
    const folder = path.slice(0, path.lastIndexOf('/') + 1);
    if (folder !== last) wasBeyond = isBeyond(folder);
    last = folder;
    return wasBeyond;
  };
  function isBeyond(path: string): boolean {
    for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1))
      if (isLink(path.slice(0, end))) return true;
    return false;
  }
}

function looksLikeLink(workTree: string, folder: string): boolean {
  try {
    return lstatSync(fsPath(workTree, folder)).isSymbolicLink();
  } catch (error) {
    if (isAbsence(error) || errno(error) === 'EACCES') return false;
    throw error;
  }
}
