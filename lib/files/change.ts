/**
 * Changes as a caller asks for them, and what they come to: one before-image and one after-image for each path.
 *
 * The changes are taken in order, each on top of the ones before it (a write and then a chmod of the same path are one new
 * file). Everything that can be refused is refused here, before anything is recorded or changed: paths, preconditions,
 * a file and a folder of one name.
 */
import { DurableError } from '../errors.js';
import type { FileMode, Image } from '../event.js';
import { encodePath } from '../git/path.js';
import type { Storage } from '../git/storage.js';
import { conflict } from './apply.js';
import type { ManifestEntry, Move } from './manifest.js';
import { filePath, refuseDetour, statIn } from '../git/tree-path.js';
import { look, type Revision } from './revision.js';
import { tangleAt } from './tangle.js';
import { sameImage } from './verdict.js';

/**
 * One change. Paths are relative to the work tree, `/`-separated. `expected` is the revision the change was derived from
 * (null: no file): anything else there is a 'conflict', and nothing is changed.
 */
export type Change =
  | {
      readonly kind: 'write';
      readonly path: string;
      readonly bytes: Uint8Array;
      /** Default: as it is now, else 100644. */
      readonly mode?: '100644' | '100755';
      readonly expected?: Revision;
    }
  | { readonly kind: 'delete'; readonly path: string; readonly expected?: Revision }
  | {
      readonly kind: 'rename';
      readonly from: string;
      /** Nothing may be there. */
      readonly to: string;
      readonly expected?: Revision;
    }
  | {
      readonly kind: 'chmod';
      readonly path: string;
      readonly executable: boolean;
      readonly expected?: Revision;
    }
  | {
      readonly kind: 'symlink';
      readonly path: string;
      /** As it is to stand in the link; not followed, not checked. */
      readonly target: string;
      readonly expected?: Revision;
    };

export interface Plan {
  readonly entries: readonly PlannedEntry[];
  /** Bytes of every image named, by blob id. */
  readonly blobs: ReadonlyMap<string, Uint8Array>;
}

export interface PlannedEntry extends ManifestEntry {
  /** Permission bits of a file that was moved here; null: of the file it replaces. */
  readonly carried: number | null;
}

/** Throws 'conflict', 'path-outside', 'path-refused', 'permission-denied', 'io-failed'. */
export function planChanges(storage: Storage, changes: readonly Change[]): Plan {
  const planning = new Planning(storage);
  for (const change of changes) planning.add(change);
  return planning.plan();
}

interface Draft {
  readonly path: string;
  readonly before: Image;
  readonly permissions: number | null;
  after: Image;
  carried: number | null;
}

class Planning {
  readonly #storage: Storage;
  readonly #drafts = new Map<string, Draft>();
  readonly #blobs = new Map<string, Uint8Array>();

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  add(change: Change): void {
    if (change.kind === 'rename') this.#rename(change);
    else this.#change(change, this.#expecting(change.path, change.expected, this.#intended(change)));
  }

  plan(): Plan {
    const drafts = [...this.#drafts.values()].filter(({ before, after }) => !sameImage(before, after));
    const changed = new Map(drafts.map(({ path, after }) => [path, after]));
    for (const { path, after } of drafts) {
      const why = after === null ? null : tangleAt(this.#storage.layout.workTree, path, changed);
      if (why !== null) throw new DurableError('path-refused', { path, why });
    }
    return { entries: drafts, blobs: this.#blobs };
  }

  #change(change: Exclude<Change, { kind: 'rename' }>, draft: Draft): void {
    const { after, path } = draft;
    if (change.kind === 'write') {
      const mode = change.mode ?? (after === null || after.mode === '120000' ? '100644' : after.mode);
      draft.after = this.#image(change.bytes, mode);
    } else if (change.kind === 'symlink') {
      draft.after = this.#image(encodePath(change.target), '120000');
    } else if (after === null) {
      throw new DurableError('path-refused', { path, why: `there is no file to ${change.kind}` });
    } else if (change.kind === 'delete') {
      draft.after = null;
    } else if (after.mode === '120000') {
      throw new DurableError('path-refused', { path, why: 'a symbolic link has no execute bit' });
    } else {
      draft.after = { oid: after.oid, mode: change.executable ? '100755' : '100644' };
    }
  }

  #rename(change: Extract<Change, { kind: 'rename' }>): void {
    const from = this.#expecting(change.from, change.expected, null);
    const { path, after } = from;
    if (after === null) throw new DurableError('path-refused', { path, why: 'there is no file to rename' });
    from.after = null;
    const to = this.#isOtherCase(path, filePath(change.to))
      ? this.#absent(filePath(change.to))
      : this.#expecting(change.to, null, after);
    to.after = after;
    to.carried = from.carried ?? from.permissions;
    from.carried = null;
  }

  #expecting(asked: string, expected: Revision | undefined, intended: Image): Draft {
    const draft = this.#draft({ path: filePath(asked), from: expected ?? null, to: intended });
    if (expected === undefined || sameImage(draft.after, expected)) return draft;
    const { path, after } = draft;
    const bytes = after === null ? null : (this.#blobs.get(after.oid) ?? null);
    const found = sameImage(after, draft.before) ? look(this.#storage, path).found : after;
    const move = { path, from: expected, to: intended };
    throw conflict({ move, found, bytes, blobs: this.#blobs, late: false });
  }

  /** What a change would put there, for the record of a conflict. */
  #intended(change: Exclude<Change, { kind: 'rename' }>): Image {
    if (change.kind === 'delete') return null;
    if (change.kind === 'symlink') return this.#image(encodePath(change.target), '120000');
    const read = change.expected ?? null;
    if (change.kind === 'write') return this.#image(change.bytes, change.mode ?? read?.mode ?? '100644');
    return read === null ? null : { oid: read.oid, mode: change.executable ? '100755' : '100644' };
  }

  /** `move`: what is asked for, for the record of what is in its way: a pipe, a socket or a device is never written through. */
  #draft(move: Move): Draft {
    const { path } = move;
    const known = this.#drafts.get(path);
    if (known !== undefined) return known;
    refuseDetour(this.#storage.layout, path);
    const { found, bytes, permissions } = look(this.#storage, path);
    if (found === 'special') throw conflict({ move, found, bytes, blobs: this.#blobs, late: false });
    const before = found === 'directory' ? null : found;
    if (before !== null && bytes !== null) this.#blobs.set(before.oid, bytes);
    return this.#added({ path, before, permissions, after: before, carried: null });
  }

  #absent(path: string): Draft {
    return this.#added({ path, before: null, permissions: null, after: null, carried: null });
  }

  #added(draft: Draft): Draft {
    this.#drafts.set(draft.path, draft);
    return draft;
  }

  #image(bytes: Uint8Array, mode: FileMode): Image {
    const oid = this.#storage.objects.hash('blob', bytes);
    this.#blobs.set(oid, bytes);
    return { oid, mode };
  }

  /** On a file system that folds case, the new spelling of a name finds the old file. */
  #isOtherCase(from: string, to: string): boolean {
    if (from === to || from.toLowerCase() !== to.toLowerCase()) return false;
    const { workTree } = this.#storage.layout;
    const [a, b] = [statIn(workTree, from), statIn(workTree, to)];
    return a !== null && b !== null && a.ino === b.ino && a.dev === b.dev;
  }
}
