/**
 * Moving paths of the work tree from one image to another, and back when it cannot be finished.
 *
 * Calling order: `stage` writes every new file into the epoch's staging directory (out of space is met here, with no
 * byte of the tree changed) · `run` lands them one by one, removals first · on failure `undo` · `clean` at the end. It
 * records nothing: lib/files/transaction.ts does, around it, and another process can finish or undo from its manifest.
 *
 * Guarantees: each path holds its old or its new image at every moment, never a mixture; a path that does not hold its
 * old image just before its rename is not touched ('conflict'). The old file is kept beside by hard link: an edit in place
 * that came after the check is found by comparing it ('conflict' too), and `undo` puts that very file back, so it needs no
 * space and keeps owner, times and a late edit. Permission bits survive a rewrite; owner, ACLs, extended attributes and
 * hard links to other names do not.
 * Crash points: before and after each rename; what lies in the stage is litter.
 */
import { DurableError, hasCode } from '../errors.js';
import type { FileMode, Image } from '../event.js';
import { encodePath, fsPath } from '../git/path.js';
import type { FileBits } from '../git/disk.js';
import type { Storage } from '../git/storage.js';
import type { Stage } from '../lease/staging.js';
import type { Move } from './manifest.js';
import { foldersAbove, refuseDetour, statIn } from '../git/tree-path.js';
import { below } from '../git/walk.js';
import { look, lookAt } from './revision.js';
import { matches, type Found } from './verdict.js';

export interface ApplyContext {
  readonly storage: Storage;
  readonly stage: Stage;
  /** Bytes of an image that is to be put somewhere; throws 'object-missing'. */
  readonly bytesOf: (oid: string) => Promise<Uint8Array>;
}

/** A path that held something else than it should have. */
export interface Clash {
  readonly move: Move;
  readonly found: Found;
  /** What was found: its bytes are worth keeping. */
  readonly bytes: Uint8Array | null;
  /** Bytes of images that the caller had in hand, by blob id. */
  readonly blobs?: ReadonlyMap<string, Uint8Array>;
  /** Whether it came after the check, in place, and was already replaced. */
  readonly late: boolean;
}

const clashes = new WeakMap<object, Clash>();

/** The clash behind a 'conflict' thrown here. */
export function clashOf(error: unknown): Clash | undefined {
  return typeof error === 'object' && error !== null ? clashes.get(error) : undefined;
}

export function conflict(clash: Clash): DurableError<'conflict'> {
  const { path, from } = clash.move;
  const now = typeof clash.found === 'string' ? clash.found : (clash.found?.oid ?? null);
  const error = new DurableError('conflict', { path, expected: from?.oid ?? null, now, conflict: null });
  clashes.set(error, clash);
  return error;
}

/** Removals first, deepest first, so that a folder may take a file's place or the other way round; then by path. */
export function inOrder<M extends Move>(moves: readonly M[]): M[] {
  const removals = moves.filter(({ to }) => to === null).sort((a, b) => compare(b.path, a.path));
  const writes = moves.filter(({ to }) => to !== null).sort((a, b) => compare(a.path, b.path));
  return [...removals, ...writes];
}

interface Landing {
  readonly move: Move;
  readonly permissions: number | null;
  temp: string | null;
  /** Where the old file lies now. */
  kept: string | null;
  state: 'waiting' | 'begun' | 'landed';
}

export class Application {
  readonly #context: ApplyContext;
  readonly #landings: Landing[];
  readonly #made: string[] = [];

  constructor(context: ApplyContext, moves: readonly Move[]) {
    this.#context = context;
    this.#landings = inOrder(moves).map((move) => {
      const { permissions } = look(context.storage, move.path);
      return { move, permissions, temp: null, kept: null, state: 'waiting' };
    });
  }

  /** In the order in which they are applied. */
  get paths(): string[] {
    return this.#landings.map(({ move }) => move.path);
  }

  /** The path at which `run` is or was: for the message of a failure. */
  get at(): string {
    const landing = this.#landings.findLast(({ state }) => state !== 'waiting') ?? this.#landings[0];
    return landing?.move.path ?? '';
  }

  /** Throws 'conflict' when a path does not hold its old image, 'path-refused' when it is reached through a link. */
  check(): void {
    // Beyond a link that `run` removes first there is nothing yet that could be looked at; `run` checks it again.
    const removed = new Set(
      this.#landings.filter(({ move }) => move.to === null).map(({ move }) => move.path),
    );
    for (const { move } of this.#landings)
      if (!foldersAbove(move.path).some((folder) => removed.has(folder))) this.#demand(move);
  }

  async stage(): Promise<void> {
    for (const landing of this.#landings) {
      const { to } = landing.move;
      if (to !== null) landing.temp = await this.#temp(to, landing.move.permissions ?? landing.permissions);
    }
  }

  /** Throws 'conflict', 'permission-denied', 'out-of-space', 'path-refused', 'stage-revoked', 'lease-lost', 'io-failed'. */
  async run(): Promise<void> {
    for (const landing of this.#landings) await this.#land(landing);
  }

  /** Puts back what `run` has changed, newest first. Returns the paths where that could not be done. */
  async undo(): Promise<string[]> {
    const stuck: string[] = [];
    for (const landing of this.#landings.toReversed()) {
      if (landing.state !== 'waiting' && !(await this.#putBack(landing))) stuck.push(landing.move.path);
    }
    for (const folder of this.#made.toReversed()) removeFolder(this.#context.storage, folder);
    return stuck;
  }

  /** Removes what lies in the stage. */
  clean(): void {
    for (const { temp, kept } of this.#landings) {
      this.#context.stage.discard(temp);
      this.#context.stage.discard(kept);
    }
  }

  async #land(landing: Landing): Promise<void> {
    const { storage, stage } = this.#context;
    const { move, temp } = landing;
    const check = (): void => {
      this.#demand(move);
      // From here on the rename may have happened, whatever is thrown.
      landing.state = 'begun';
    };
    if (move.to === null || temp === null) {
      landing.kept = (await stage.remove(move.path, check)).kept;
    } else {
      refuseDetour(storage.layout, move.path);
      this.#clearFolder(move.path);
      this.#made.push(...missingFolders(storage, [move.path]));
      landing.kept = (await stage.publish(temp, move.path, check)).kept;
      landing.temp = null;
    }
    landing.state = 'landed';
    this.#compareKept(landing);
  }

  /** Where a file is to be: removes a folder in which there are folders alone, as deep as they go; what holds anything stays. */
  #clearFolder(path: string): void {
    const { storage } = this.#context;
    const { workTree } = storage.layout;
    if (statIn(workTree, path)?.isDirectory() !== true) return;
    const { files, folders, nested, unreadable } = below(workTree, path);
    if (files.length + nested.length + unreadable.length === 0) pruneFolders(storage, folders);
  }

  #demand(move: Move): void {
    const { storage } = this.#context;
    refuseDetour(storage.layout, move.path);
    const { found, bytes } = look(storage, move.path);
    if (!matches(found, move.from)) throw conflict({ move, found, bytes, late: false });
  }

  #compareKept({ move, kept }: Landing): void {
    if (kept === null) return;
    const { found, bytes } = lookAt(this.#context.storage, kept);
    const same = found !== null && typeof found === 'object' && found.oid === move.from?.oid;
    if (!same) throw conflict({ move, found, bytes, late: true });
  }

  async #putBack(landing: Landing): Promise<boolean> {
    const { storage, stage } = this.#context;
    const { move } = landing;
    const now = look(storage, move.path);
    if (landing.state === 'begun' && matches(now.found, move.from)) return true;
    if (!matches(now.found, move.to)) return false;
    if (now.found === 'directory' && move.from !== null)
      pruneFolders(
        storage,
        this.#made.filter((folder) => `${folder}/`.startsWith(`${move.path}/`)),
      );
    const check = (): void => {
      const { found, bytes } = look(storage, move.path);
      if (!matches(found, move.to))
        throw conflict({ move: { ...move, from: move.to, to: move.from }, found, bytes, late: false });
    };
    try {
      const temp = await this.#old(landing);
      const { kept } =
        temp === null ? await stage.remove(move.path, check) : await stage.publish(temp, move.path, check);
      stage.discard(kept);
      landing.kept = null;
      landing.state = 'waiting';
      return true;
    } catch (error) {
      if (hasCode(error, 'conflict')) return false;
      throw error;
    }
  }

  /** The very file that was replaced, or a new one like it; null where there was none. */
  async #old({ move, kept, permissions }: Landing): Promise<string | null> {
    if (kept !== null) {
      const sight = lookAt(this.#context.storage, kept);
      if (sight.found !== null && sight.permissions === permissions) return kept;
    }
    return move.from === null ? null : this.#temp(move.from, permissions);
  }

  async #temp(image: NonNullable<Image>, permissions: number | null): Promise<string> {
    const bytes = await this.#context.bytesOf(image.oid);
    if (image.mode === '120000') return this.#context.stage.link(Buffer.from(bytes));
    return this.#context.stage.write(bytes, bitsFor(image.mode, permissions));
  }
}

/** Permission bits for a file of git's mode that replaces one with these bits (null: none, git's own default and the umask). */
export function bitsFor(mode: FileMode, permissions: number | null): FileBits {
  const executable = mode === '100755';
  if (permissions === null) return executable ? 0o777 : 0o666;
  if (executable === ((permissions & 0o100) !== 0)) return { exact: permissions };
  return { exact: executable ? permissions | 0o100 | ((permissions & 0o44) >> 2) : permissions & ~0o111 };
}

/** Folders above these paths that are not there, each once, parents first. */
export function missingFolders(storage: Storage, paths: readonly string[]): string[] {
  const missing = new Set<string>();
  for (const folder of new Set(paths.flatMap(foldersAbove))) {
    if (statIn(storage.layout.workTree, folder)?.isDirectory() !== true) missing.add(folder);
  }
  return [...missing].sort(compare);
}

/** Removes those of the folders that are empty, deepest first; what holds anything stays. */
export function pruneFolders(storage: Storage, folders: Iterable<string>): void {
  for (const folder of [...new Set(folders)].sort(compare).toReversed()) removeFolder(storage, folder);
}

function removeFolder(storage: Storage, folder: string): void {
  const { workTree } = storage.layout;
  if (statIn(workTree, folder)?.isDirectory() !== true) return;
  // Not flushed: an empty folder that a power cut brings back holds nothing that anybody was promised to be gone.
  storage.disk.removeDir('tree.prune', fsPath(workTree, folder));
}

/** By bytes, as git sorts: a folder comes before what is in it. */
function compare(a: string, b: string): number {
  return Buffer.compare(encodePath(a), encodePath(b));
}
