/**
 * The workspace id: which work tree this is, kept in that work tree's own git dir (`<git dir>/durable/workspace`).
 *
 * The id moves with the folder and survives a restart, but not a copy: a git dir with another inode, or with the same
 * one on another device in the same boot (a file system snapshot), was copied. Its lease then names a holder of the
 * place it was copied from, whose pid says nothing here, so the copy gets an id, and with it a lease, of its own. The copy's id is derived from
 * the old one and the place: every process computes the same, so reading needs no write and two first writers agree.
 * A copy whose original is gone may be the original, moved by copying: the file remembers what it was copied from, and turns
 * of that are named here as well (lib/recovery/interrupted.ts).
 *
 * Caveat: device numbers may change with a boot, so after one the inode alone decides; where two mounts of one folder
 * show different inodes (some shared folders of virtual machines), each side sees a workspace of its own.
 */
import { readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import * as v from 'valibot';
import { canonicalJson, digest } from '../canonical.js';
import { DurableError, isDurableError } from '../errors.js';
import { Disk, diskError, errno } from '../git/disk.js';
import type { Storage } from '../git/storage.js';
import { freshId } from '../host.js';

const WORKSPACE = v.strictObject({
  v: v.literal(1),
  id: v.pipe(v.string(), v.regex(/^[a-z2-7]{26}$/)),
  /** Decimal, since an inode may be larger than a double holds. */
  inode: v.string(),
  device: v.string(),
  boot: v.string(),
  /** The ids that this git dir had where it was copied from, the newest first. */
  copyOf: v.optional(v.array(v.string())),
});

type Workspace = v.InferOutput<typeof WORKSPACE>;
type Place = Pick<Workspace, 'inode' | 'device' | 'boot'>;

/**
 * This work tree's id; null when it has none and `create` is false. Reading never writes.
 * Errors: the disk's; 'usage' for a file that is none of ours.
 */
export function workspaceId(storage: Storage, options: { readonly create: boolean }): string | null {
  const file = join(storage.layout.local, 'workspace');
  const place = placeOf(storage);
  const found = readWorkspace(file);
  if (found === null) return options.create ? createWorkspace(storage, file, place) : null;
  const id = isSamePlace(found, place) ? found.id : copyId(found, place);
  if (options.create && (id !== found.id || found.boot !== place.boot || found.device !== place.device))
    replaceWorkspace(storage, file, { v: 1, id, ...place, ...origins(copiesOf(found, place)) });
  return id;
}

/**
 * The ids of the work trees of which this one is a copy, or, moved by copying, what it was; the newest first, empty for any
 * other one. Errors as `workspaceId`.
 */
export function copiedFrom(storage: Storage): readonly string[] {
  const found = readWorkspace(join(storage.layout.local, 'workspace'));
  return found === null ? [] : copiesOf(found, placeOf(storage));
}

/** The task that holds what happens outside turns in the work tree with this id. */
export const standingTaskId = (id: string): string => `standing-${id}`;

/** Whether the work tree in that folder is the one with this id still: then a copy of it is no more than that. */
export function standsAt(storage: Storage, workTree: string, id: string): boolean {
  const gitDir = gitDirIn(workTree);
  if (gitDir === null) return false;
  try {
    const found = readWorkspace(join(gitDir, 'durable', 'workspace'));
    return found?.id === id && isSamePlace(found, placeOf(storage, gitDir));
  } catch (error) {
    if (isDurableError(error)) return false;
    throw error;
  }
}

/** `.git` of a work tree: a folder, or a file that names one (a linked work tree, a submodule). */
function gitDirIn(workTree: string): string | null {
  const place = join(workTree, '.git');
  const stat = statSync(place, { throwIfNoEntry: false });
  if (stat?.isFile() !== true) return stat === undefined ? null : place;
  const [, named] = /^gitdir: ([^\n]+)/.exec(readFileSync(place, 'utf8')) ?? [];
  return named === undefined ? null : resolve(workTree, named);
}

function copiesOf(found: Workspace, place: Place): readonly string[] {
  const earlier = found.copyOf ?? [];
  return isSamePlace(found, place) ? earlier : [found.id, ...earlier].slice(0, MOST_ORIGINS);
}

const MOST_ORIGINS = 16;

const origins = (copyOf: readonly string[]): Pick<Workspace, 'copyOf'> =>
  copyOf.length === 0 ? {} : { copyOf: [...copyOf] };

function createWorkspace(storage: Storage, file: string, place: Place): string {
  const disk = diskOf(storage);
  disk.makeDir('workspace.place', storage.layout.local, storage.layout.bits.privateDir);
  const id = freshId(storage.host);
  const temp = writeTemp(storage, file, { v: 1, id, ...place });
  // Of two first writers one links; the other takes the id that stands.
  const outcome = disk.link('workspace.place', temp, file);
  disk.unlink('workspace.place', temp);
  if (outcome === 'done') {
    disk.syncDir('workspace.place', storage.layout.local);
    return id;
  }
  return workspaceId(storage, { create: true }) ?? id;
}

function replaceWorkspace(storage: Storage, file: string, workspace: Workspace): void {
  const temp = writeTemp(storage, file, workspace);
  diskOf(storage).rename('workspace.place', temp, file);
  diskOf(storage).syncDir('workspace.place', storage.layout.local);
}

function writeTemp(storage: Storage, file: string, workspace: Workspace): string {
  const temp = `${file}.${freshId(storage.host, 10)}`;
  diskOf(storage).create('workspace.write', temp, Buffer.from(`${canonicalJson(workspace)}\n`));
  return temp;
}

/** Flushed whatever durable.fsync says: written once, and an empty one after a power cut would hide the lease. */
const diskOf = (storage: Storage): Disk => new Disk(storage.host.faults, true);

function placeOf(storage: Storage, gitDir = storage.layout.gitDir): Place {
  const stat = statSync(gitDir, { bigint: true });
  return {
    inode: String(stat.ino),
    device: String(stat.dev),
    boot: storage.identity.here().bootId,
  };
}

function isSamePlace(found: Workspace, place: Place): boolean {
  return found.inode === place.inode && (found.boot !== place.boot || found.device === place.device);
}

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

function copyId(found: Workspace, place: Place): string {
  const hex = digest(canonicalJson({ copyOf: found.id, inode: place.inode, device: place.device }));
  let id = '';
  for (let at = 0; at < 52; at += 2) id += BASE32.charAt(Number.parseInt(hex.slice(at, at + 2), 16) & 31);
  return id;
}

function readWorkspace(file: string): Workspace | null {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (errno(error) === 'ENOENT') return null;
    throw diskError(error, file);
  }
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), WORKSPACE), text);
  if (parsed.success) return parsed.output;
  throw new DurableError('usage', {
    detail: `'${file}' is not a workspace file of ours; move it away and type the same again`,
  });
}
