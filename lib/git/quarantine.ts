/**
 * A quarantine: an object directory of one checkpoint, which nobody else reads until all of it is there.
 *
 * Calling order: `Quarantine.open` · git writes into it · `packObjects` or `packReached` makes one pack of all that is
 * not reachable yet, wherever those objects lie now · `publish` moves that pack into the object
 * store as git-receive-pack does (.keep, .pack, .idx) · the caller moves a ref · `seal` (keep.ts) · `discard`.
 *
 * Why a pack of its own, also for objects that the store has already: those may be unreachable there, and a `git repack -ad`
 * or `git prune` that listed the refs before ours moved drops them afterwards (DESIGN.md, invariant 5). A pack with
 * `.keep` is left alone by both.
 *
 * `<git dir>/durable/quarantine/<id>/` holds `owner` (a link of this process's ticket), `objects/`, and scratch files. States:
 * folder empty (its maker died, or is between two steps) · owner alive (never touched by others) · owner dead (`sweep`
 * removes it, the owner's name last). Nothing in it is flushed but the pack, before it moves: it is worth nothing after a
 * power cut. Git's own temporary files (tmp_obj, tmp_pack) are made in here and go with it.
 */
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshId } from '../host.js';
import { Disk, diskError, errno } from './disk.js';
import type { Site } from './fault.js';
import { keepText, sealKeep } from './keep.js';
import { encodeLoose, hashObject, type ObjectType } from './objects-format.js';
import type { Storage } from './storage.js';
import { readTicket } from './tickets.js';

export class Quarantine {
  readonly dir: string;
  readonly objects: string;
  /** Seconds since 1970 by the file system's own clock, when this quarantine was made. */
  readonly bornAt: bigint;
  /** Not flushed: for what only this process reads. */
  readonly scratch: Disk;
  readonly #storage: Storage;
  #made = 0;

  private constructor(storage: Storage, dir: string, scratch: Disk) {
    this.#storage = storage;
    this.dir = dir;
    this.objects = join(dir, 'objects');
    this.scratch = scratch;
    this.bornAt = lstatSync(dir, { bigint: true }).mtimeNs;
  }

  /** Errors: 'out-of-space', 'permission-denied', 'io-failed'. */
  static open(storage: Storage): Quarantine {
    const scratch = new Disk(storage.host.faults, false);
    for (;;) {
      const dir = join(rootOf(storage), freshId(storage.host));
      scratch.makeDir('quarantine.make', dir);
      // 'missing': a sweeper took the folder for one of a process that died just here.
      if (scratch.link('quarantine.make', storage.tickets.path, join(dir, 'owner')) === 'missing') continue;
      const quarantine = new Quarantine(storage, dir, scratch);
      scratch.makeDir('quarantine.make', join(quarantine.objects, 'pack'));
      return quarantine;
    }
  }

  /** For a git that writes here and reads here and in the object store. */
  get env(): Record<string, string> {
    return {
      GIT_OBJECT_DIRECTORY: this.objects,
      GIT_ALTERNATE_OBJECT_DIRECTORIES: quoted(storeOf(this.#storage)),
    };
  }

  path(name: string): string {
    return join(this.dir, name);
  }

  /** Puts an object here, for git to read. `now`: the file system's clock in nanoseconds, from the file that was made. */
  store(type: ObjectType, body: Uint8Array): { readonly oid: string; readonly now: bigint } {
    return this.storeIn(this.objects, type, body);
  }

  /** The same in another object directory of ours, on the same file system. */
  storeIn(
    objects: string,
    type: ObjectType,
    body: Uint8Array,
  ): { readonly oid: string; readonly now: bigint } {
    const oid = hashObject(this.#storage.layout.objectFormat, type, body);
    const made = this.path(`made-${String((this.#made += 1))}`);
    this.scratch.create('quarantine.scratch', made, encodeLoose(type, body));
    const now = lstatSync(made, { bigint: true }).mtimeNs;
    const folder = join(objects, oid.slice(0, 2));
    this.scratch.makeDir('quarantine.scratch', folder);
    this.scratch.rename('quarantine.scratch', made, join(folder, oid.slice(2)));
    return { oid, now };
  }

  /** One pack of these objects, wherever they lie; its name, or null when there are none. */
  packObjects(oids: readonly string[], run: RunGit): Promise<string | null> {
    return this.#pack([], oids, run);
  }

  /** One pack of what `tree` reaches and `without` (a tree) does not; its name, or null when there is nothing. */
  packReached(tree: string, without: string | null, run: RunGit): Promise<string | null> {
    return this.#pack(['--revs'], without === null ? [tree] : [tree, `^${without}`], run);
  }

  /** Moves a pack made by `pack` into the object store; durable when it returns. Errors: the disk's. */
  publish(pack: string): void {
    const { disk } = this.#storage;
    const target = join(storeOf(this.#storage), 'pack');
    if (!existsSync(target)) disk.makeDir('snapshot.publish', target, 0o777);
    const keep = this.path('keep');
    // Not flushed: after a power cut nothing runs that it would have to stop.
    this.scratch.create('snapshot.publish', keep, keepText(this.#storage, false), 0o644);
    this.#land(keep, join(target, `${pack}.keep`));
    const extensions = ['pack', 'rev', 'idx'].filter((one) => existsSync(this.#file(pack, one)));
    for (const extension of extensions) disk.syncFile('snapshot.publish', this.#file(pack, extension));
    for (const extension of extensions)
      this.#land(this.#file(pack, extension), join(target, `${pack}.${extension}`));
    disk.syncDir('snapshot.publish', target);
  }

  /** Says that a ref reaches the pack now: from here on its `.keep` may go when no maintenance from before is left. */
  seal(pack: string): void {
    sealKeep(this.#storage, { pack, temp: this.path('seal'), scratch: this.scratch });
  }

  /** Removes the quarantine. */
  discard(): void {
    removeQuarantine(this.scratch, this.dir);
  }

  /** `run` starts git with the private git dir, so that no setting of the user's (a size limit of packs) acts. */
  async #pack(options: readonly string[], lines: readonly string[], run: RunGit): Promise<string | null> {
    // No deltas: their search takes minutes for a first checkpoint, and within one they save little.
    const args = [
      'pack-objects',
      '-q',
      ...options,
      '--non-empty',
      '--window=0',
      join(this.objects, 'pack', 'pack'),
    ];
    const input = Buffer.from(`${lines.join('\n')}\n`);
    const output = await run(args, { site: 'snapshot.pack', input });
    const name = output.toString('latin1').trim();
    return name === '' ? null : `pack-${name}`;
  }

  #file(pack: string, extension: string): string {
    return join(this.objects, 'pack', `${pack}.${extension}`);
  }

  #land(from: string, to: string): void {
    const { disk, host } = this.#storage;
    if (disk.rename('snapshot.publish', from, to) === 'done') return;
    // objects/ is a link to another file system: the same, with a copy beside the final name.
    const beside = `${to}.${freshId(host, 8)}.tmp`;
    disk.create('snapshot.publish', beside, readFileSync(from), 0o444);
    disk.rename('snapshot.publish', beside, to);
  }
}

export type RunGit = (
  args: readonly string[],
  options: { readonly site: Site; readonly input?: Uint8Array },
) => Promise<Buffer>;

/** Removes what dead processes left; never the quarantine of a live one. Returns how many went. */
export function sweepQuarantines(storage: Storage): number {
  const scratch = new Disk(storage.host.faults, false);
  const root = rootOf(storage);
  let swept = 0;
  for (const name of namesIn(root)) {
    const dir = join(root, name);
    if (!isAbandoned(storage, dir)) continue;
    removeQuarantine(scratch, dir);
    if (!existsSync(dir)) swept += 1;
  }
  return swept;
}

function isAbandoned(storage: Storage, dir: string): boolean {
  const owner = readTicket(join(dir, 'owner'));
  // Without an owner it is removed only if it is empty: its maker, when alive, makes another one.
  if (owner === null) return namesIn(dir).length === 0;
  return owner !== 'foreign' && storage.identity.judge(owner).verdict === 'dead';
}

/** The owner's name goes last, so that one that is half gone can still be judged. */
function removeQuarantine(disk: Disk, dir: string): void {
  empty(disk, Buffer.from(dir), 'owner');
  disk.unlink('quarantine.drop', join(dir, 'owner'));
  disk.removeDir('quarantine.drop', dir);
}

/** Removes a folder of scratch files and all below it. */
export function removeScratch(disk: Disk, dir: string): void {
  empty(disk, Buffer.from(dir));
  disk.removeDir('quarantine.drop', dir);
}

function empty(disk: Disk, dir: Buffer, except?: string): void {
  for (const entry of entriesOf(dir)) {
    if (entry.name.toString('latin1') === except) continue;
    const path = Buffer.concat([dir, Buffer.from('/'), entry.name]);
    if (!entry.isDirectory()) {
      disk.unlink('quarantine.drop', path);
      continue;
    }
    empty(disk, path);
    disk.removeDir('quarantine.drop', path);
  }
}

const rootOf = (storage: Storage): string => join(storage.layout.local, 'quarantine');
export const storeOf = (storage: Storage): string => join(storage.layout.commonDir, 'objects');

/** As git unquotes an entry of GIT_ALTERNATE_OBJECT_DIRECTORIES (a path may hold its separator). */
export function quoted(path: string): string {
  return `"${path.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')}"`;
}

function namesIn(dir: string): string[] {
  return entriesOf(Buffer.from(dir)).map(({ name }) => name.toString('utf8'));
}

/** As bytes: what a snapshot puts here may have any name. */
function entriesOf(dir: Buffer): { readonly name: Buffer; isDirectory(): boolean }[] {
  try {
    return readdirSync(dir, { withFileTypes: true, encoding: 'buffer' });
  } catch (error) {
    if (errno(error) === 'ENOENT') return [];
    throw diskError(error, dir);
  }
}
