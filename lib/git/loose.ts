/**
 * Loose objects that are really on disk, and the journal that outlives a prune (DESIGN.md, invariants 1 and 5).
 *
 * `publish` order: temporary files in `tickets/`, flushed · renamed to `journal/<oid>` and linked at `objects/xx/…` · the folders of both
 * flushed. Each flush is of all objects at the same time. So a name never has less than its bytes, and nothing is published whose names could be lost. Git skips an object that exists, be it torn or not flushed; this never does: whatever is at
 * the final name and is not our own flushed file is replaced by it. Two writers of one object replace each other's
 * equal bytes.
 *
 * The temporary file is not beside the object, where `git prune --expire=now` takes it away while it is in use.
 *
 * Crash points: before the journal's rename nothing exists but a temporary file that goes with its dead ticket; after
 * it the object can be read (a reader that misses it restores it). A prune or repack may remove `objects/xx/…` at any
 * moment; the journal keeps the bytes until `dropJournal`, which is only for what a pack of ours has, or for litter.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DurableError, hasCode } from '../errors.js';
import { errno, type Disk } from './disk.js';
import type { Layout } from './layout.js';
import { decodeLoose, type GitObject } from './objects-format.js';
import type { Tickets } from './tickets.js';
import type { Site } from './fault.js';

export interface EncodedObject {
  readonly oid: string;
  /** The loose file's bytes. */
  readonly bytes: Uint8Array;
}

export class LooseObjects {
  readonly #layout: Layout;
  readonly #disk: Disk;
  readonly #tickets: Tickets;
  #journalFlushed = false;

  constructor(parts: { layout: Layout; disk: Disk; tickets: Tickets }) {
    this.#layout = parts.layout;
    this.#disk = parts.disk;
    this.#tickets = parts.tickets;
  }

  /**
   * Puts deflated objects on disk: durable, journalled, and loose even when a pack has them. Of several, the journal's
   * folder and each fan-out folder are flushed once.
   */
  async publish(objects: readonly EncodedObject[]): Promise<void> {
    await this.#enterJournal(objects);
    const folders = new Set<string>();
    for (const { oid } of objects) {
      const path = this.#path(oid);
      this.#link('object.publish', this.#journal(oid), path);
      folders.add(dirname(path));
    }
    const journal = join(this.#layout.shared, 'journal');
    await this.#disk.syncDirs([
      { site: 'object.journal', path: journal },
      ...[...folders].map((path) => ({ site: 'object.publish', path }) as const),
    ]);
  }

  /** True when the object's loose file and journal entry are one file: written by `publish`, by whomever. */
  isPublished(oid: string): boolean {
    const loose = statSync(this.#path(oid), { bigint: true, throwIfNoEntry: false });
    const journal = statSync(this.#journal(oid), { bigint: true, throwIfNoEntry: false });
    return loose !== undefined && journal !== undefined && loose.ino === journal.ino;
  }

  /** The loose object; 'missing', or 'damaged' when its file is torn or holds something else. */
  read(oid: string): GitObject | 'missing' | 'damaged' {
    return this.#decode(oid, this.#path(oid));
  }

  /** Puts a lost or torn object back from the journal, if the journal's bytes are really that object. */
  restore(oid: string): GitObject | null {
    const journal = this.#journal(oid);
    const object = this.#decode(oid, journal);
    if (object === 'missing' || object === 'damaged') return null;
    try {
      this.#link('object.restore', journal, this.#path(oid));
    } catch (error) {
      // A read-only git dir and a full disk can be read all the same.
      if (!hasCode(error, 'permission-denied') && !hasCode(error, 'out-of-space')) throw error;
    }
    return object;
  }

  /** Removes an object of ours that nothing names any more: its loose file and its journal entry. */
  drop(oid: string): void {
    this.#disk.unlink('object.drop', this.#path(oid));
    this.dropJournal(oid);
  }

  /** Ends the protection of an object that a pack of ours has. */
  dropJournal(oid: string): void {
    this.#disk.unlink('object.drop', this.#journal(oid));
  }

  /** Object ids in the journal, in no order. */
  journalled(): string[] {
    try {
      return readdirSync(join(this.#layout.shared, 'journal'));
    } catch (error) {
      if (errno(error) === 'ENOENT') return [];
      throw error;
    }
  }

  /** Makes `path` a link of the journal's file, over whatever else is there; the folder is still to be flushed. */
  #link(site: Site, journal: string, path: string): void {
    // What a reader puts back is promised by nobody: the journal has it, and the next reader does the same.
    const isPromised = site !== 'object.restore';
    for (let tries = 0; ; tries += 1) {
      const outcome = this.#linkOrCopy(site, journal, path);
      if (outcome === 'done') break;
      if (outcome === 'exists') {
        if (sameFile(journal, path)) break;
        this.#replace(site, journal, path);
        break;
      }
      // A fan-out folder that git removed, empty, between two tries; or the journal's entry was dropped.
      if (tries === 8) throw new DurableError('io-failed', { path, errno: 'ENOENT' });
      const { dir } = this.#layout.bits;
      if (isPromised) this.#disk.makeDir(site, dirname(path), dir);
      else this.#disk.makePassingDir(site, dirname(path), dir);
    }
  }

  /** `objects` may lie on another disk, behind a symbolic link: there the object is a file of its own. */
  #linkOrCopy(site: Site, journal: string, path: string): 'done' | 'exists' | 'missing' {
    try {
      return this.#disk.link(site, journal, path);
    } catch (error) {
      if (!hasCode(error, 'io-failed') || error.fields.errno !== 'EXDEV') throw error;
    }
    this.#disk.makeDir(site, dirname(path), this.#layout.bits.dir);
    // A name that git knows and removes, should this process die here.
    const temp = join(dirname(path), `tmp_obj_${basename(this.#tickets.temp())}`);
    this.#disk.create(site, temp, readFileSync(journal), this.#layout.bits.object);
    return this.#disk.rename(site, temp, path) === 'done' ? 'done' : 'missing';
  }

  #replace(site: Site, journal: string, path: string): void {
    const temp = this.#tickets.temp();
    this.#disk.link(site, journal, temp);
    this.#disk.rename(site, temp, path);
  }

  async #enterJournal(objects: readonly EncodedObject[]): Promise<void> {
    const temps = objects.map(({ oid, bytes }) => ({ oid, bytes, path: this.#tickets.temp() }));
    try {
      await this.#disk.createAll('object.temp', temps, this.#layout.bits.object);
      for (const { oid, path } of temps) this.#rename(path, this.#journal(oid));
    } catch (error) {
      for (const { path } of temps) this.#disk.unlink('object.temp', path);
      throw error;
    }
  }

  #rename(temp: string, journal: string): void {
    this.#makeJournal();
    if (this.#disk.rename('object.journal', temp, journal) === 'done') return;
    // The folder went since this process made it (an uninstall).
    this.#journalFlushed = false;
    this.#makeJournal();
    if (this.#disk.rename('object.journal', temp, journal) === 'done') return;
    throw new DurableError('io-failed', { path: journal, errno: 'ENOENT' });
  }

  /** The journal's own entries, once a process: whoever made the folder may have been killed before it flushed. */
  #makeJournal(): void {
    if (this.#journalFlushed) return;
    const { shared, commonDir } = this.#layout;
    this.#disk.makeDir('object.journal', join(shared, 'journal'), this.#layout.bits.privateDir);
    this.#disk.syncDir('object.journal', shared);
    this.#disk.syncDir('object.journal', commonDir);
    this.#journalFlushed = true;
  }

  #decode(oid: string, path: string): GitObject | 'missing' | 'damaged' {
    try {
      return decodeLoose(this.#layout.objectFormat, oid, readFileSync(path)) ?? 'damaged';
    } catch (error) {
      if (['ENOENT', 'ENOTDIR'].includes(errno(error))) return 'missing';
      throw error;
    }
  }

  #path(oid: string): string {
    return join(this.#layout.commonDir, 'objects', oid.slice(0, 2), oid.slice(2));
  }

  #journal(oid: string): string {
    return join(this.#layout.shared, 'journal', oid);
  }
}

function sameFile(a: string, b: string): boolean {
  const [first, second] = [a, b].map((path) => statSync(path, { bigint: true, throwIfNoEntry: false }));
  return first !== undefined && second !== undefined && first.ino === second.ino && first.dev === second.dev;
}
