/**
 * The only writer of the file system in lib.
 *
 * Every change is synchronous, so that "in this order" is the order of the lines; each hits a fault point before and
 * after it. What may be flushed in any order is flushed at the same time (`createAll`, `syncAll`), which costs the disk little
 * more than one of them; a caller that awaits it has its order. A file is never changed in place: it is created whole under a temporary name (`create`), flushed, and
 * renamed or linked to the name that others read. `syncDir` makes the name itself durable: fsync(2) of a file says
 * nothing of its directory entry. With `sync: false` (durable.fsync=false) no fsync is done and power loss is not covered.
 *
 * Errors: 'out-of-space', 'permission-denied', 'io-failed'; what a caller must tell apart is a return value.
 */
import {
  accessSync,
  closeSync,
  existsSync,
  constants,
  fchmodSync,
  fstatSync,
  fsync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import { DurableError } from '../errors.js';
import type { Faults, Operation, Site } from './fault.js';

export type DiskPath = string | Buffer;

/**
 * Permission bits of a new file or folder: a number is cut by the umask, `exact` is not; `plus` is added to what the
 * umask left of `masked` (core.sharedRepository).
 */
export type FileBits =
  number | { readonly exact: number } | { readonly masked: number; readonly plus: number };

/** 'done', or what stood in the way; anything else is thrown. */
export type RenameOutcome = 'done' | 'missing' | 'cross-device' | 'is-directory';

/** What is to be flushed, and why. */
export interface Flush {
  readonly site: Site;
  readonly path: DiskPath;
}

const flushed = promisify(fsync);

export class Disk {
  readonly #faults: Faults;
  readonly #sync: boolean;

  constructor(faults: Faults, sync: boolean) {
    this.#faults = faults;
    this.#sync = sync;
  }

  /**
   * Creates a new file (never over an existing one), writes all of it and flushes its data. A mode as a number goes
   * through the process's umask, as for any new file; `{ exact }` is set as it is (the bits of a file that is replaced).
   */
  create(site: Site, path: DiskPath, bytes: Uint8Array, mode: FileBits = 0o600): void {
    this.createPassing(site, path, bytes, mode);
    this.syncFile(site, path);
  }

  /**
   * The same without the flush, for what serves living processes only: after a power cut there are none. (The
   * power-loss suite fails for a flush that nothing misses.)
   */
  createPassing(site: Site, path: DiskPath, bytes: Uint8Array, mode: FileBits = 0o600): void {
    closeSync(this.#created(site, path, bytes, mode));
  }

  /** As `create` for several files, their data flushed at the same time. When it throws some of them may be there. */
  async createAll(
    site: Site,
    files: readonly { readonly path: DiskPath; readonly bytes: Uint8Array }[],
    mode: FileBits = 0o600,
  ): Promise<void> {
    const opened: { path: DiskPath; fd: number }[] = [];
    try {
      for (const { path, bytes } of files) opened.push({ path, fd: this.#created(site, path, bytes, mode) });
      if (!this.#sync) return;
      await allOf(
        opened.map(({ path, fd }) =>
          this.#flushSoon(
            { site, path },
            () => fd,
            () => undefined,
          ),
        ),
      );
    } finally {
      for (const { fd } of opened) closeSync(fd);
    }
  }

  /** Writes behind what is in a file, of another program's, for living processes; makes it where it is not there. */
  appendPassing(site: Site, path: DiskPath, bytes: Uint8Array): void {
    this.#act(site, 'write', path, () => {
      const fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND, 0o600);
      try {
        writeAll(fd, bytes);
      } finally {
        closeSync(fd);
      }
    });
  }

  /** Creates a symbolic link; never follows or replaces one. */
  createLink(site: Site, path: DiskPath, target: DiskPath): void {
    this.#act(site, 'write', path, () => {
      symlinkSync(target, path);
    });
  }

  syncFile(site: Site, path: DiskPath): void {
    this.#flush(site, path, constants.O_RDONLY);
  }

  /** Makes the entries of a directory durable. */
  syncDir(site: Site, path: DiskPath): void {
    this.#flush(site, path, constants.O_RDONLY | constants.O_DIRECTORY);
  }

  /** Makes the entries of several directories durable, at the same time. */
  async syncDirs(folders: readonly Flush[]): Promise<void> {
    if (!this.#sync) return;
    const open = (path: DiskPath) => (): number => openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
    await allOf(folders.map((flush) => this.#flushSoon(flush, open(flush.path), closeSync)));
  }

  rename(site: Site, from: DiskPath, to: DiskPath): RenameOutcome {
    return this.#act(site, 'rename', to, () => {
      try {
        renameSync(from, to);
        return 'done';
      } catch (error) {
        const code = errno(error);
        if (code === 'ENOENT' || code === 'ENOTDIR') return 'missing';
        if (code === 'EXDEV') return 'cross-device';
        if (code === 'EISDIR' || code === 'ENOTEMPTY' || code === 'EEXIST') return 'is-directory';
        throw error;
      }
    });
  }

  /** Hard link. 'exists' when the name is taken: this is our exclusive create with complete content. */
  link(site: Site, existing: DiskPath, path: DiskPath): 'done' | 'exists' | 'missing' {
    return this.#act(site, 'link', path, () => {
      try {
        linkSync(existing, path);
        return 'done';
      } catch (error) {
        if (errno(error) === 'EEXIST') return 'exists';
        if (errno(error) === 'ENOENT') return 'missing';
        throw error;
      }
    });
  }

  /** Sets a file's time of last change, in seconds since 1970: how git's index says from when on it may be out of date. */
  setModified(site: Site, path: DiskPath, seconds: number): void {
    this.#act(site, 'write', path, () => {
      utimesSync(path, seconds, seconds);
    });
  }

  /** True when this call removed it. */
  unlink(site: Site, path: DiskPath): boolean {
    return this.#act(site, 'unlink', path, () => {
      try {
        unlinkSync(path);
        return true;
      } catch (error) {
        if (errno(error) === 'ENOENT' || errno(error) === 'ENOTDIR') return false;
        throw error;
      }
    });
  }

  /** Makes a directory and its missing parents, each new entry durable before the next. */
  makeDir(site: Site, path: DiskPath, mode: FileBits = 0o700): void {
    this.#makeDirs(path, site, mode, (parent) => {
      this.syncDir(site, parent);
    });
  }

  /** The same without the flushes, for a folder that serves living processes only (see `createPassing`). */
  makePassingDir(site: Site, path: DiskPath, mode: FileBits = 0o700): void {
    this.#makeDirs(path, site, mode, () => undefined);
  }

  /** Removes an empty directory; false when it is not empty or not there. */
  removeDir(site: Site, path: DiskPath): boolean {
    return this.#act(site, 'rmdir', path, () => {
      try {
        rmdirSync(path);
        return true;
      } catch (error) {
        if (['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(errno(error))) return false;
        throw error;
      }
    });
  }

  #makeDirs(path: DiskPath, site: Site, mode: FileBits, made: (parent: DiskPath) => void): void {
    const first = this.#makeOne(path, site, mode);
    if (first === 'there') return;
    if (first !== 'made') {
      this.#makeDirs(folderOf(path), site, mode, made);
      // Once: there are folders that are there and in which none can be made, and it is said like this (/proc).
      const second = this.#makeOne(path, site, mode);
      if (second === 'there') return;
      if (second !== 'made') throw second;
    }
    made(folderOf(path));
  }

  /** The error where there is no folder for it. */
  #makeOne(path: DiskPath, site: Site, mode: FileBits): 'made' | 'there' | Error {
    try {
      this.#act(site, 'mkdir', path, () => {
        mkdirSync(path, { mode: firstBits(mode, 0o700) });
        if (typeof mode !== 'number') settleFolder(path, mode);
      });
      return 'made';
    } catch (error) {
      const code = errno(causeOf(error));
      if (code === 'EEXIST') return 'there';
      if (code === 'ENOENT' && error instanceof Error) return error;
      throw error;
    }
  }

  #flush(site: Site, path: DiskPath, flags: number): void {
    if (!this.#sync) return;
    this.#act(site, 'fsync', path, () => {
      const fd = openSync(path, flags);
      try {
        fsyncSync(fd);
      } finally {
        closeSync(fd);
      }
    });
  }

  async #flushSoon({ site, path }: Flush, open: () => number, close: (fd: number) => void): Promise<void> {
    try {
      this.#faults.hit(`${site}:fsync:before`);
      const fd = open();
      try {
        await flushed(fd);
      } finally {
        close(fd);
      }
      this.#faults.hit(`${site}:fsync:after`);
    } catch (error) {
      throw diskError(error, path);
    }
  }

  /** The new file's descriptor. */
  #created(site: Site, path: DiskPath, bytes: Uint8Array, mode: FileBits): number {
    return this.#act(site, 'write', path, () => {
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;
      const fd = openSync(path, flags, firstBits(mode, 0o600));
      try {
        writeAll(fd, bytes);
        settleBits(fd, mode);
      } catch (error) {
        closeSync(fd);
        unlinkSync(path);
        throw error;
      }
      return fd;
    });
  }

  #act<T>(site: Site, operation: Operation, path: DiskPath, act: () => T): T {
    try {
      this.#faults.hit(`${site}:${operation}:before`);
      const result = act();
      this.#faults.hit(`${site}:${operation}:after`);
      return result;
    } catch (error) {
      throw diskError(error, path);
    }
  }
}

/** Fulfilled when all are; throws the first error of the list, when none is under way any more. */
async function allOf(begun: readonly Promise<void>[]): Promise<void> {
  for (const ended of await Promise.allSettled(begun)) if (ended.status === 'rejected') throw ended.reason;
}

function folderOf(path: DiskPath): DiskPath {
  return typeof path === 'string' ? dirname(path) : path.subarray(0, Math.max(1, path.lastIndexOf(47)));
}

/** The errno code of a system error, '' for anything else. */
export function errno(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** True when a look at a path says that nothing can be there: also below a file, beyond a circle of links, or too long. */
export function isAbsence(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'].includes(errno(error));
}

function causeOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? error.cause : error;
}

/** A system error as one of ours, the cause kept. */
export function diskError(error: unknown, path: DiskPath): unknown {
  const code = errno(error);
  const name = path.toString();
  if (code === 'ENOSPC' || code === 'EDQUOT') return new DurableError('out-of-space', { path: name }, error);
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
    const folder = code === 'EACCES' ? closedFolder(error, name) : null;
    const fields = { path: name, readOnly: code === 'EROFS', ...(folder === null ? {} : { folder }) };
    return new DurableError('permission-denied', fields, error);
  }
  if (/^E[A-Z0-9]+$/.test(code)) return new DurableError('io-failed', { path: name, errno: code }, error);
  return error;
}

/** The outermost folder above the path that may not be entered, else its own where no name in that may be made or taken; null: neither. */
function closedFolder(error: unknown, path: string): string | null {
  const own = dirname(resolve(path));
  const above = [own];
  for (let at = own; dirname(at) !== at; at = dirname(at)) above.unshift(dirname(at));
  const shut = above.find((folder) => isRefused(folder, constants.X_OK));
  if (shut !== undefined) return shut;
  return changesNames(error, path) && isRefused(own, constants.W_OK) ? own : null;
}

const NAME_CALLS = ['rename', 'link', 'symlink', 'unlink', 'mkdir', 'rmdir'];

function changesNames(error: unknown, path: string): boolean {
  const call = error instanceof Error && 'syscall' in error ? String(error.syscall) : '';
  return NAME_CALLS.includes(call) || (call === 'open' && !existsSync(path));
}

function isRefused(path: string, wanted: number): boolean {
  try {
    accessSync(path, wanted);
    return false;
  } catch (error) {
    return errno(error) === 'EACCES';
  }
}

/** Names in a folder; none where there is no such folder. Errors: 'permission-denied', 'io-failed'. */
export function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch (error) {
    if (isAbsence(error)) return [];
    throw diskError(error, dir);
  }
}

/** What a name is made with, before its bits are settled: never more than it will have. */
function firstBits(mode: FileBits, otherwise: number): number {
  if (typeof mode === 'number') return mode;
  return 'masked' in mode ? mode.masked : otherwise;
}

function settleBits(fd: number, mode: FileBits): void {
  if (typeof mode === 'number') return;
  fchmodSync(fd, 'exact' in mode ? mode.exact : (fstatSync(fd).mode & 0o7777) | mode.plus);
}

function settleFolder(path: DiskPath, mode: FileBits): void {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    settleBits(fd, mode);
  } finally {
    closeSync(fd);
  }
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at, bytes.length - at);
}
