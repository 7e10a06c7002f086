/**
 * Revisions: what is at a path now, as an image that a later write can be made conditional on.
 *
 * An image is the blob id of the raw bytes (no filter, no end-of-line conversion) and git's mode; of a symbolic link, of
 * its target. Nothing is written here: `revisionOf` only computes the id.
 */
import { createHash } from 'node:crypto';
import { closeSync, lstatSync, openSync, readFileSync, readlinkSync, readSync, type Stats } from 'node:fs';
import { DurableError } from '../errors.js';
import type { FileMode, Image } from '../event.js';
import { diskError, isAbsence, type DiskPath } from '../git/disk.js';
import type { ObjectFormat } from '../git/objects-format.js';
import { fsPath } from '../git/path.js';
import type { Storage } from '../git/storage.js';
import { linkAbove, refuseDetour } from '../git/tree-path.js';
import type { Found } from './verdict.js';

/** What a write expects to replace: the image it was derived from, null for "no file there". */
export type Revision = Image;

export interface Sight {
  readonly found: Found;
  /** Content of a file, target of a link; null for anything else, and for a file of more than 2 GiB. */
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
  const permissions = stat.mode & 0o777;
  if (stat.size > LARGEST_READ) {
    const oid = hashInPieces(storage.layout.objectFormat, place, { size: stat.size, piece: PIECE });
    return { ...NOTHING, found: { oid, mode: fileMode(permissions) }, permissions };
  }
  const bytes = readFileSync(place);
  return { ...NOTHING, found: image(storage, bytes, fileMode(permissions)), bytes, permissions };
}

/** What node reads of a file at once. */
const LARGEST_READ = 2 ** 31 - 1;
const PIECE = 1024 * 1024;

/** The blob id of a file of `size` bytes, with no more than `piece` of them in memory; of one that is cut meanwhile, no content's. */
export function hashInPieces(
  format: ObjectFormat,
  place: DiskPath,
  { size, piece }: { readonly size: number; readonly piece: number },
): string {
  const hash = createHash(format).update(`blob ${String(size)}\0`);
  const buffer = Buffer.alloc(piece);
  const file = openSync(place, 'r');
  try {
    for (let left = size; left > 0;) {
      const read = readSync(file, buffer, 0, Math.min(piece, left), null);
      if (read === 0) break;
      hash.update(buffer.subarray(0, read));
      left -= read;
    }
  } finally {
    closeSync(file);
  }
  return hash.digest('hex');
}

function image(storage: Storage, bytes: Buffer, mode: FileMode): Image {
  return { oid: storage.objects.hash('blob', bytes), mode };
}
