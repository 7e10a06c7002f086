/** Differences of two trees, path by path, from `git diff-tree -r -z --raw`. */
import type { FileMode, Image } from '../event.js';
import { DurableError } from '../errors.js';
import { splitPaths } from './path.js';

export interface TreeChange {
  readonly path: string;
  /** null: not in the first tree. */
  readonly before: Image;
  /** null: not in the second. */
  readonly after: Image;
}

/** `:<mode> <mode> <oid> <oid> <status>\0<path>\0…`; paths that are no files in either tree are left out. */
export function parseChanges(output: Buffer): TreeChange[] {
  const fields = splitPaths(output);
  const changes: TreeChange[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [from = '', to = '', before = '', after = ''] = (fields[at] ?? '').slice(1).split(' ');
    const change = { path: fields[at + 1] ?? '', before: image(from, before), after: image(to, after) };
    if (change.before !== null || change.after !== null) changes.push(change);
  }
  return changes;
}

function image(mode: string, oid: string): Image {
  if (mode === '000000' || mode === '160000') return null;
  if (isFileMode(mode)) return { mode, oid };
  throw new DurableError('object-damaged', { oid, detail: `a tree entry of mode ${mode}` });
}

function isFileMode(mode: string): mode is FileMode {
  return mode === '100644' || mode === '100755' || mode === '120000';
}
