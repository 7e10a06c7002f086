/**
 * Files and folders of one name: which of a set of moves cannot land because of the other kind.
 *
 * A file may take a folder's place only when the same moves empty the folder, and a folder a file's only when they
 * remove the file.
 */
import { readdirSync } from 'node:fs';
import type { Image } from '../event.js';
import { decodePath, fsPath } from '../git/path.js';
import { foldersAbove, statIn } from '../git/tree-path.js';

/** Why no file can be at `path` once each of `after` is as it says; null when one can. */
export function tangleAt(workTree: string, path: string, after: ReadonlyMap<string, Image>): string | null {
  for (const folder of foldersAbove(path)) {
    const image = after.get(folder);
    const stat = statIn(workTree, folder);
    const isFile = stat !== null && !stat.isDirectory();
    const kind = stat?.isSymbolicLink() === true ? 'a symbolic link' : 'a file';
    if (image === undefined ? isFile : image !== null) return `'${folder}' is ${kind}`;
  }
  if (statIn(workTree, path)?.isDirectory() !== true) return null;
  for (const inside of filesBelow(workTree, path)) if (after.get(inside) !== null) return 'a folder is there';
  return null;
}

function* filesBelow(workTree: string, folder: string): Generator<string> {
  for (const entry of readdirSync(fsPath(workTree, folder), { withFileTypes: true, encoding: 'buffer' })) {
    const path = `${folder}/${decodePath(entry.name)}`;
    if (entry.isDirectory()) yield* filesBelow(workTree, path);
    else yield path;
  }
}
