/** A path of the work tree as it is now: its bytes (for a link: its target) and git's mode. */
import { lstatSync, readFileSync, readlinkSync } from 'node:fs';
import { DurableError } from '../errors.js';
import type { FileMode } from '../event.js';
import { diskError, errno } from '../git/disk.js';
import { fsPath } from '../git/path.js';
import type { Storage } from '../git/storage.js';

export interface Content {
  readonly bytes: Buffer;
  readonly mode: FileMode;
}

/** Null where nothing is. Throws 'path-refused' for what git has no mode for: a directory, a socket, a device. */
export function bytesOf(storage: Storage, path: string): Content | null {
  const place = fsPath(storage.layout.workTree, path);
  try {
    const stat = lstatSync(place);
    if (stat.isSymbolicLink()) return { bytes: readlinkSync(place, 'buffer'), mode: '120000' };
    if (!stat.isFile())
      throw new DurableError('path-refused', {
        path,
        why: stat.isDirectory() ? 'it is a folder' : 'it is not a regular file',
      });
    return { bytes: readFileSync(place), mode: (stat.mode & 0o100) === 0 ? '100644' : '100755' };
  } catch (error) {
    if (errno(error) === 'ENOENT' || errno(error) === 'ENOTDIR') return null;
    throw diskError(error, place);
  }
}
