/**
 * The staging directory of one epoch: the only way by which our work-tree writes land (PROTOCOL.md 15; invariant 3, a stale
 * holder cannot write once recovery has read the tree).
 *
 * Calling order: the holder's acquisition makes `<git dir>/durable/stage/<epoch>/` once · `write` or `link` makes a temp
 * in it and flushes it · `publish(temp, path)` makes missing folders, checks the epoch, links the old file into the
 * stage, renames the temp onto the target, and flushes the folder · the caller compares the old file that was kept with what it
 * expected, and `discard`s it. A deletion is `remove(path)`: the target is renamed into the stage.
 *
 * Guarantee: a taker swaps the lease and then renames every older stage away (`revokeOlder`), so that a writer which
 * passed its check and was paused finds its rename failing with 'stage-revoked'. Nothing is created in the stage
 * between check and rename but the link of the old file, which fails the same way. Where the target is on another
 * file system the write goes by a ticket instead (writing.ts).
 * Crash points: a temp, or a kept old file, stays in the stage; a revoked stage is kept as `revoked-<epoch>-…` until a
 * later holder lets go in good order, so recovery can still look at what was replaced last.
 * Caveats: the check of a parent folder and the rename are two steps (place.ts). By ticket the old file is copied, not
 * linked: an edit in place between the copy and the rename is lost with it.
 */
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DurableError, hasCode } from '../errors.js';
import { type DiskPath, type FileBits, type RenameOutcome, namesIn } from '../git/disk.js';
import { displayPath } from '../git/path.js';
import type { Storage } from '../git/storage.js';
import { freshId } from '../host.js';
import { statOf } from '../git/tree-path.js';
import { placeIn, type Place } from './place.js';
import { tokenOid, type LeaseToken } from './record.js';
import { hideTicket, showTicket } from './writing.js';

/** Runs after the epoch was checked and just before the rename: a precondition that throws stops the write. */
export type Precondition = () => void | Promise<void>;

export interface Published {
  /** Path of the file that was at the target before, kept in the stage for comparison; null when there was none. */
  readonly kept: string | null;
}

export class Stage {
  readonly dir: string;
  readonly #storage: Storage;
  readonly #token: LeaseToken;
  #count = 0;

  /** The stage of a lease that is held; made by `makeStage` at its acquisition. */
  constructor(storage: Storage, token: LeaseToken) {
    this.#storage = storage;
    this.#token = token;
    this.dir = stageDir(storage, token.epoch);
  }

  /**
   * A new flushed file in the stage; `mode` as Disk.create takes it (0o666 or 0o777 for a file as git makes it, `{ exact }`
   * for the bits of a file that is replaced).
   * Errors: 'stage-revoked', 'out-of-space', 'permission-denied', 'io-failed'.
   */
  write(bytes: Uint8Array, mode: FileBits): string {
    return this.#make((temp) => {
      this.#storage.disk.create('stage.temp', temp, bytes, mode);
    });
  }

  /** A new symbolic link in the stage. */
  link(target: DiskPath): string {
    return this.#make((temp) => {
      this.#storage.disk.createLink('stage.temp', temp, target);
    });
  }

  /**
   * Puts the temp at `path` (relative to the work tree), replacing a file or link that is there. Durable when it returns.
   * Errors: 'lease-lost', 'stage-revoked', 'path-outside', 'path-refused', what `precondition` throws, and the disk's.
   */
  async publish(temp: string, path: string, precondition?: Precondition): Promise<Published> {
    const place = this.#prepare(path);
    const act = (): Published => this.#replace(temp, place);
    return this.#guarded({ place, precondition, act, temp });
  }

  /** Takes the file or link at `path` away; `kept` is where it lies now (null: nothing was there). Errors as `publish`. */
  async remove(path: string, precondition?: Precondition): Promise<Published> {
    const place = placeIn(this.#storage.layout, path);
    const act = (): Published => this.#takeAway(place);
    return this.#guarded({ place, precondition, act, temp: null });
  }

  /** Removes a temp or a kept file that nobody needs any more. */
  discard(file: string | null): void {
    if (file !== null) this.#storage.disk.unlink('stage.drop', file);
  }

  #make(create: (temp: string) => void): string {
    const temp = this.#name();
    try {
      create(temp);
      return temp;
    } catch (error) {
      throw this.#isRevoked() ? this.#revoked(error) : error;
    }
  }

  #name(): string {
    this.#count += 1;
    const { host } = this.#storage;
    return join(this.dir, `${String(host.pid)}-${String(this.#count)}-${freshId(host, 8)}`);
  }

  #prepare(path: string): Place {
    const { layout, disk } = this.#storage;
    const place = placeIn(layout, path);
    for (const folder of place.missing) disk.makeDir('tree.folder', folder, 0o777);
    return place;
  }

  async #guarded(write: GuardedWrite): Promise<Published> {
    if (this.#isElsewhere(write.place)) return this.#ticketed(write);
    await tokenOid(this.#storage, this.#token);
    await write.precondition?.();
    try {
      return write.act();
    } catch (error) {
      if (hasCode(error, 'io-failed') && error.fields.errno === 'EXDEV') return this.#ticketed(write);
      throw error;
    }
  }

  #replace(temp: string, place: Place): Published {
    const { disk } = this.#storage;
    const kept = this.#keepOld(place);
    try {
      this.#demand(disk.rename('stage.publish', temp, place.file), place.path);
    } catch (error) {
      if (!this.#isRevoked()) this.discard(kept);
      throw error;
    }
    disk.syncDir('stage.publish', place.parent);
    return { kept };
  }

  #takeAway(place: Place): Published {
    const { disk } = this.#storage;
    if (statOf(place.file)?.isDirectory() === true) throw directoryRefused(place.path);
    const kept = this.#name();
    const outcome = disk.rename('stage.remove', place.file, kept);
    if (outcome === 'missing' && !this.#isRevoked()) return { kept: null };
    this.#demand(outcome, place.path);
    disk.syncDir('stage.remove', place.parent);
    return { kept };
  }

  /** Links the old file into the stage, so that an edit that came after the check is not lost with it. */
  #keepOld(place: Place): string | null {
    const stat = statOf(place.file);
    if (stat === null) return null;
    if (stat.isDirectory()) throw directoryRefused(place.path);
    const kept = this.#name();
    try {
      const outcome = this.#storage.disk.link('stage.keep', place.file, kept);
      if (outcome === 'done') return kept;
    } catch (error) {
      // A file system without hard links, or a file that the kernel forbids us to link (fs.protected_hardlinks):
      // the write itself is still right, only a late edit in place is not kept.
      if (
        hasCode(error, 'permission-denied') ||
        (hasCode(error, 'io-failed') && isLinkless(error.fields.errno))
      )
        return null;
      throw error;
    }
    if (this.#isRevoked()) throw this.#revoked();
    return null;
  }

  /** The write by ticket: shown, temp, check, rename, hidden, in that order. */
  async #ticketed(write: GuardedWrite): Promise<Published> {
    const { disk, host } = this.#storage;
    const beside = write.place.beside(`.git-durable-${freshId(host, 12)}`);
    const ticket = showTicket(this.#storage, this.#token.epoch, beside.text);
    try {
      if (write.temp !== null) this.#copyBeside(write.temp, beside.file);
      await tokenOid(this.#storage, this.#token);
      await write.precondition?.();
      return this.#landTicketed(write, beside.file);
    } finally {
      disk.unlink('writing.drop', beside.file);
      hideTicket(this.#storage, ticket);
    }
  }

  #landTicketed(write: GuardedWrite, beside: DiskPath): Published {
    const { disk } = this.#storage;
    const stat = statOf(write.place.file);
    if (stat?.isDirectory() === true) throw directoryRefused(write.place.path);
    if (write.temp === null && stat === null) return { kept: null };
    const kept = stat === null ? null : this.#copyOld(write.place.file, stat.isSymbolicLink());
    if (write.temp === null) disk.unlink('writing.publish', write.place.file);
    else this.#demand(disk.rename('writing.publish', beside, write.place.file), write.place.path);
    disk.syncDir('writing.publish', write.place.parent);
    this.discard(write.temp);
    return { kept };
  }

  #copyBeside(temp: string, beside: DiskPath): void {
    const { disk } = this.#storage;
    const stat = statOf(temp);
    if (stat === null) throw this.#revoked();
    if (stat.isSymbolicLink()) disk.createLink('writing.temp', beside, readlinkSync(temp, 'buffer'));
    else disk.create('writing.temp', beside, readFileSync(temp), { exact: stat.mode & 0o777 });
  }

  #copyOld(file: DiskPath, isLink: boolean): string {
    if (isLink) return this.link(readlinkSync(file, 'buffer'));
    return this.write(readFileSync(file), 0o600);
  }

  #isElsewhere(place: Place): boolean {
    const parent = statOf(place.parent);
    const stage = statOf(this.dir);
    return parent !== null && stage !== null && parent.dev !== stage.dev;
  }

  /** Tells a revoked stage by looking at the stage, not by the errno: a missing folder gives ENOENT too. */
  #isRevoked(): boolean {
    return !existsSync(this.dir);
  }

  #revoked(cause?: unknown): DurableError {
    return new DurableError('stage-revoked', { epoch: this.#token.epoch }, cause);
  }

  #demand(outcome: RenameOutcome, path: string): void {
    if (outcome === 'done') return;
    if (outcome === 'is-directory') throw directoryRefused(path);
    if (outcome === 'missing' && this.#isRevoked()) throw this.#revoked();
    throw new DurableError('io-failed', {
      path: displayPath(path),
      errno: outcome === 'missing' ? 'ENOENT' : 'EXDEV',
    });
  }
}

interface GuardedWrite {
  readonly place: Place;
  readonly precondition: Precondition | undefined;
  readonly act: () => Published;
  /** The staged temp; null for a deletion. */
  readonly temp: string | null;
}

const stageRoot = (storage: Storage): string => join(storage.layout.local, 'stage');

export const stageDir = (storage: Storage, epoch: number): string => join(stageRoot(storage), String(epoch));

/** Made once, by the acquisition, after its swap; never again by a writer (that reopened the window). */
export function makeStage(storage: Storage, epoch: number): string {
  const dir = stageDir(storage, epoch);
  storage.disk.makePassingDir('stage.make', dir);
  return dir;
}

/** Renames the stage of every epoch below `epoch` away; idempotent. Returns the epochs that were revoked. */
export function revokeOlder(storage: Storage, epoch: number): number[] {
  const root = stageRoot(storage);
  const older = namesIn(root)
    .filter((name) => /^\d+$/.test(name) && Number(name) < epoch)
    .map(Number);
  for (const one of older) revokeStage(storage, one);
  return older;
}

/** Renames one epoch's stage away: a taker's step, and a healer's before it removes a dead owner's lock. */
export function revokeStage(storage: Storage, epoch: number): void {
  const root = stageRoot(storage);
  const away = join(root, `revoked-${String(epoch)}-${freshId(storage.host, 8)}`);
  // Not flushed: it stops living writers, and a power cut stops them all.
  storage.disk.rename('stage.revoke', stageDir(storage, epoch), away);
}

/** Revoked stages of epochs up to `epoch`, absolute paths, oldest first: what was replaced last before a death lies in them. */
export function revokedStages(storage: Storage, epoch: number): string[] {
  const root = stageRoot(storage);
  return namesIn(root)
    .map((name) => ({ name, match: /^revoked-(\d+)-/.exec(name) }))
    .filter(({ match }) => match !== null && Number(match[1]) <= epoch)
    .sort((a, b) => Number(a.match?.[1]) - Number(b.match?.[1]))
    .map(({ name }) => join(root, name));
}

/** Removes revoked stages of epochs up to `epoch`, when their holder lets go in good order. */
export function sweepRevoked(storage: Storage, epoch: number): void {
  for (const dir of revokedStages(storage, epoch)) {
    for (const name of namesIn(dir)) storage.disk.unlink('stage.sweep', join(dir, name));
    storage.disk.removeDir('stage.sweep', dir);
  }
}

const LINKLESS = new Set(['ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);
const isLinkless = (code: string): boolean => LINKLESS.has(code);

const directoryRefused = (path: string): DurableError =>
  new DurableError('path-refused', { path: displayPath(path), why: 'a folder is there' });
