/**
 * Refs as files below a git dir: which names are names, and which files hold one. Reads only, and takes no lock; what a file says
 * is judged by lib/git/refs.ts.
 */
import { readdirSync, readFileSync, type Dirent } from 'node:fs';
import { join } from 'node:path';
import { errno } from './disk.js';

/** Git's own rules for a name (git-check-ref-format), for the names that we make: a wrong one is a bug of the caller. */
export function checkName(ref: string): void {
  const sound =
    ref.startsWith('refs/') &&
    !/[\u0000-\u0020\u007f~^:?*[\\]|\.\.|\/\/|@\{|\/\.|\/$|\.$|\.lock(?:\/|$)/u.test(ref);
  if (!sound) throw new RangeError(`not a name for a ref: ${ref}`);
}

/** Names that would be a folder above this one. */
export function parents(ref: string): string[] {
  const parts = ref.split('/');
  return parts.slice(2).map((_, index) => parts.slice(0, index + 2).join('/'));
}

/** The bytes of a ref's file; null where none is. Errors: the system's. */
export function readLoose(path: string): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EISDIR'].includes(errno(error))) return null;
    throw error;
  }
}

/**
 * Names of the refs that have a file of their own and begin with `prefix`, in no order; locks and values beside them are none. In the folder
 * `without` (`refs/durable`) is not looked.
 */
export function* looseNames(commonDir: string, prefix: string, without?: string): Iterable<string> {
  const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1);
  for (const entry of entriesOf(join(commonDir, folder))) {
    const name = `${folder}${entry.name}`;
    if (entry.isDirectory()) {
      const isBelow = `${name}/`.startsWith(prefix) || prefix.startsWith(`${name}/`);
      if (isBelow && name !== without) yield* looseNames(commonDir, `${name}/`, without);
    } else if (name.startsWith(prefix) && !name.endsWith('.lock') && !entry.name.startsWith('.')) yield name;
  }
}

/** What is in a folder; nothing where there is none. */
export function entriesOf(dir: string): Dirent[] {
  try {
    return readdirSync(dir, { withFileTypes: true });
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errno(error))) return [];
    throw error;
  }
}
