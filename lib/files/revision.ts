/**
 * Revisions: what is at a path now, as an image that a later write can be made conditional on.
 *
 * An image is the blob id of the raw bytes (no filter, no end-of-line conversion) and git's mode; of a symbolic link, of
 * its target. Nothing is written here: `revisionOf` only computes the id.
 */
import { lstatSync, readFileSync, readlinkSync, type Stats } from 'node:fs';
import { DurableError } from '../errors.js';
import type { FileMode, Image } from '../event.js';
import { diskError, isAbsence, type DiskPath } from '../git/disk.js';
import { fsPath } from '../git/path.js';
import type { Storage } from '../git/storage.js';
import { linkAbove, refuseDetour } from '../git/tree-path.js';
import type { Found } from './verdict.js';

/** What a write expects to replace: the image it was derived from, null for "no file there". */
export type Revision = Image;

export interface Sight {
  readonly found: Found;
  /** Content of a file, target of a link; null for anything else. */
  readonly bytes: Buffer | null;
  /** Permission bits of a regular file (0 to 0o777). */
  readonly permissions: number | null;
  /** The folder above it that is a link: the path is not in the work tree, whatever lies where the link leads. */
  readonly beyond: string | null;
}

/** Looks at a path of the work tree once; nothing is found beyond a link. Throws 'permission-denied', 'io-failed'. */
export function look(storage: Storage, path: string): Sight {
  const beyond = linkAbove(storage.layout.workTree, path);
  if (beyond !== null) return { ...NOTHING, beyond };
  return lookAt(storage, fsPath(storage.layout.workTree, path));
}

/** The same for any place, such as an old file set aside. */
export function lookAt(storage: Storage, place: DiskPath): Sight {
  try {
    return sight(storage, place, lstatSync(place));
  } catch (error) {
    if (isAbsence(error)) return NOTHING;
    throw diskError(error, place);
  }
}

/** The image at a path. Throws 'path-refused' for a folder, a socket or a device, and beyond a link; 'path-outside'. */
export function revisionOf(storage: Storage, path: string): Image {
  refuseDetour(storage.layout, path);
  return fileOnly(path, look(storage, path).found);
}

/** The image of a file, a link or nothing. Throws 'path-refused' for anything else. */
export function fileOnly(path: string, found: Found): Image {
  if (found === 'directory') throw new DurableError('path-refused', { path, why: 'it is a folder' });
  if (found === 'special') throw new DurableError('path-refused', { path, why: 'it is not a regular file' });
  return found;
}

/** git's mode for a file's permission bits: the owner's execute bit is the one that counts. */
export function fileMode(permissions: number): FileMode {
  return (permissions & 0o100) === 0 ? '100644' : '100755';
}

const NOTHING: Sight = { found: null, bytes: null, permissions: null, beyond: null };

function sight(storage: Storage, place: DiskPath, stat: Stats): Sight {
  if (stat.isDirectory()) return { ...NOTHING, found: 'directory' };
  if (stat.isSymbolicLink()) {
    const target = readlinkSync(place, 'buffer');
    return { ...NOTHING, found: image(storage, target, '120000'), bytes: target };
  }
  if (!stat.isFile()) return { ...NOTHING, found: 'special' };
  const bytes = readFileSync(place);
  const permissions = stat.mode & 0o777;
  return { ...NOTHING, found: image(storage, bytes, fileMode(permissions)), bytes, permissions };
}

function image(storage: Storage, bytes: Buffer, mode: FileMode): Image {
  return { oid: storage.objects.hash('blob', bytes), mode };
}
