/**
 * What a turn has read: the revision of each path as it was handed out, so that a later write of it through the turn is held
 * to it without the caller passing it on. A write through the turn moves the revision on to what was written, and a call that says
 * beforehand what it will write to what it said.
 *
 * In memory only: a turn run again reads again. Bytes are held up to a limit, the oldest go first; a conflict found without
 * them is compared by what the object store has.
 */
import type { Image } from '../event.js';
import { look } from '../files/revision.js';
import type { Change } from '../files/transaction.js';
import type { Storage } from '../git/storage.js';
import { filePath } from '../git/tree-path.js';

const MOST_BYTES = 32 * 1024 * 1024;

export class Reads {
  readonly #images = new Map<string, Image>();
  readonly #bytes = new Map<string, Uint8Array>();
  #held = 0;

  note(path: string, image: Image, bytes: Uint8Array | null): void {
    this.#images.set(path, image);
    if (image === null || bytes === null || this.#bytes.has(image.oid)) return;
    this.#bytes.set(image.oid, bytes);
    this.#held += bytes.length;
    for (const [oid, { length }] of this.#bytes) {
      if (this.#held <= MOST_BYTES) break;
      this.#bytes.delete(oid);
      this.#held -= length;
    }
  }

  /** Undefined when the turn has not read the path. */
  revision(path: string): Image | undefined {
    return this.#images.get(path);
  }

  readonly bytesOf = (oid: string): Uint8Array | undefined => this.#bytes.get(oid);

  /**
   * The turn has written these. What it wrote is what it knows of them, not what is found there afterwards: between the two a
   * person may have saved.
   */
  readonly wrote = (written: Iterable<readonly [path: string, image: Image]>): void => {
    for (const [path, image] of written) if (this.#images.has(path)) this.#images.set(path, image);
  };

  /** The turn has written these, and what it wrote nobody knows: what is there now is what it knows of those it had read. */
  wroteUnknown(storage: Storage, paths: Iterable<string>): void {
    for (const path of paths) {
      if (!this.#images.has(path)) continue;
      const { found } = look(storage, path);
      this.#images.set(path, typeof found === 'string' ? null : found);
    }
  }
}

/** What the turn has read of a path is the revision, where the first change of it gives none; later ones build on that one. */
export function withRevisions(changes: readonly Change[], reads: Reads): Change[] {
  const seen = new Set<string>();
  return changes.map((change) => {
    const path = filePath(change.kind === 'rename' ? change.from : change.path);
    const expected = change.expected ?? (seen.has(path) ? undefined : reads.revision(path));
    for (const one of change.kind === 'rename' ? [path, filePath(change.to)] : [path]) seen.add(one);
    return expected === undefined || change.expected !== undefined ? change : { ...change, expected };
  });
}
