/**
 * A disk that forgets what was not flushed: what a folder may look like after a power cut (the ALICE method: Pillai and
 * others, "All file systems are not created equal", OSDI 2014).
 *
 * Calling order: `new RecordedDisk(root)` before the run, `apply` for each recorded operation up to the cut,
 * `afterPowerCut` for one of the states that may be found, `writeTo` to build it.
 *
 * What it promises, and nothing more:
 * - fsync of a file makes its content and mode durable, not its name; fsync of a folder makes its entries durable, not
 *   the content of what they name.
 * - Data that is not flushed may be whole, absent, cut anywhere, or of the right length with some or all sectors zero.
 * - What changes while a flush is under way is not flushed by it.
 * - Changes of entries that are not flushed may each be there or not, in any combination, even a later one without an
 *   earlier one. A rename inside one folder is one change; across folders the old name may stay, but never go alone.
 *
 * Links between changes of one name hold: of two that both stay, the later one wins.
 */
import type { Entry, File, Folder, LinkNode } from './folder-copy.js';
import type { Operation } from './recording.js';
import type { Random } from './random.js';

/** Of the recorded programs; a mode they asked for comes out without these bits. */
const UMASK = 0o022;

type DataChange =
  | { readonly at: number | 'end'; readonly bytes: Buffer }
  | { readonly size: number }
  | { readonly mode: number };

interface Change {
  readonly entries: readonly (readonly [name: string, node: Node | null])[];
  /** The other half of a rename across folders: when this one is on disk, so is that one. */
  readonly needs: Change | undefined;
  forced: boolean;
}

/** Flushes of one node that are under way. */
class Flushes {
  #marks: number[] = [];

  begin(pending: number): void {
    this.#marks.push(pending);
  }

  /** How many of the changes, the oldest first, the one that ends has made durable: of several under way the one that began first. */
  end(pending: number): number {
    const done = this.#marks.shift() ?? pending;
    this.#marks = this.#marks.map((mark) => Math.max(0, mark - done));
    return done;
  }
}

class FileNode {
  readonly kind = 'file';
  content: Buffer;
  mode: number;
  readonly pending: DataChange[] = [];
  readonly flushes = new Flushes();
  /** Its flush was left out of the recording: cuts look harder at it. */
  suspect = false;

  constructor(content: Buffer, mode: number) {
    this.content = content;
    this.mode = mode;
  }

  sync(): void {
    [this.content, this.mode] = replayed(this, this.pending.splice(0, this.flushes.end(this.pending.length)));
  }
}

class FolderNode {
  readonly kind = 'folder';
  readonly live = new Map<string, Node>();
  readonly durable = new Map<string, Node>();
  readonly pending: Change[] = [];
  readonly flushes = new Flushes();
  readonly mode: number;

  constructor(mode: number) {
    this.mode = mode;
  }

  change(entries: Change['entries'], needs?: Change): Change {
    const change = { entries, needs, forced: false };
    set(this.live, entries);
    this.pending.push(change);
    return change;
  }

  sync(): void {
    for (const change of this.pending.splice(0, this.flushes.end(this.pending.length))) {
      set(this.durable, change.entries);
      change.forced = true;
      if (change.needs !== undefined) change.needs.forced = true;
    }
  }
}

type Node = FileNode | FolderNode | LinkNode;

/** How a power cut treats what was not flushed; 'mixed' draws anew for each change. */
export type Weather = 'all-lost' | 'names-only' | 'data-only' | 'nearly-all-kept' | 'mixed';
const WEATHER: readonly Weather[] = [
  'all-lost',
  'names-only',
  'data-only',
  'nearly-all-kept',
  'mixed',
  'mixed',
];

export function drawWeather(random: Random): Weather {
  return WEATHER[random.below(WEATHER.length)] ?? 'mixed';
}

export class RecordedDisk {
  readonly #root: string;
  readonly #top: FolderNode;

  /** Reads the folder as it is: all of it counts as flushed. `root` is absolute, bytes as latin1 text. */
  constructor(root: string, base: Folder) {
    this.#root = root;
    this.#top = nodeOf(base, new Map()) as FolderNode;
  }

  apply(operation: Operation): void {
    switch (operation.kind) {
      case 'create': {
        const { folder, name } = this.#parent(operation.path);
        const found = folder.live.get(name);
        if (found === undefined)
          folder.change([[name, new FileNode(Buffer.alloc(0), operation.mode & 0o777 & ~UMASK)]]);
        else if (operation.truncate) this.#file(operation.path).pending.push({ size: 0 });
        return;
      }
      case 'write':
        this.#file(operation.path).pending.push({ at: operation.at, bytes: operation.bytes });
        return;
      case 'truncate':
        this.#file(operation.path).pending.push({ size: operation.size });
        return;
      case 'chmod': {
        const node = this.#node(operation.path);
        if (node.kind === 'file') node.pending.push({ mode: operation.mode & 0o777 });
        return;
      }
      case 'mkdir':
        this.#change(operation.path, new FolderNode(operation.mode & 0o777 & ~UMASK));
        return;
      case 'symlink':
        this.#change(operation.path, { kind: 'symlink', target: operation.target });
        return;
      case 'link':
        this.#change(operation.to, this.#node(operation.from));
        return;
      case 'unlink':
      case 'rmdir':
        this.#node(operation.path);
        this.#change(operation.path, null);
        return;
      case 'rename':
        this.#rename(operation.from, operation.to);
        return;
      case 'flushing': {
        const node = this.#node(operation.path);
        if (node.kind !== 'symlink') node.flushes.begin(node.pending.length);
        return;
      }
      case 'sync': {
        const node = this.#node(operation.path);
        if (node.kind !== 'symlink') node.sync();
        return;
      }
      case 'said':
      case 'point':
    }
  }

  /** A flush that is left out: what it would have kept stays in danger. */
  forget(path: string): void {
    const node = this.#node(path);
    if (node.kind !== 'symlink') node.flushes.end(node.pending.length);
    if (node.kind === 'file') node.suspect = true;
  }

  /** One state that may be found after the power is back. */
  afterPowerCut(weather: Weather, random: Random): Folder {
    return cutFolder(this.#top, new PowerCut(weather, random));
  }

  /** What the programs saw: everything kept. */
  live(): Folder {
    return liveFolder(this.#top, new Map());
  }

  #rename(from: string, to: string): void {
    const source = this.#parent(from);
    const target = this.#parent(to);
    const node = this.#node(from);
    // rename(2) does nothing when both names are the same file.
    if (target.folder.live.get(target.name) === node) return;
    if (source.folder === target.folder) {
      source.folder.change([
        [target.name, node],
        [source.name, null],
      ]);
      return;
    }
    const arrival = target.folder.change([[target.name, node]]);
    source.folder.change([[source.name, null]], arrival);
  }

  #change(path: string, node: Node | null): void {
    const { folder, name } = this.#parent(path);
    folder.change([[name, node]]);
  }

  #parent(path: string): { folder: FolderNode; name: string } {
    const slash = path.lastIndexOf('/');
    const folder = this.#node(path.slice(0, slash));
    if (folder.kind !== 'folder') throw new Error(`the recording has no folder above ${path}`);
    return { folder, name: path.slice(slash + 1) };
  }

  #file(path: string): FileNode {
    const node = this.#node(path);
    if (node.kind !== 'file') throw new Error(`the recording has a ${node.kind} at ${path}`);
    return node;
  }

  #node(path: string): Node {
    let node: Node = this.#top;
    for (const name of path.slice(this.#root.length).split('/')) {
      if (name === '') continue;
      const next: Node | undefined = node.kind === 'folder' ? node.live.get(name) : undefined;
      if (next === undefined) throw new Error(`the recording knows nothing at ${path}`);
      node = next;
    }
    return node;
  }
}

class PowerCut {
  readonly weather: Weather;
  readonly random: Random;
  /** One file may be reached by several names: it is cut once. */
  readonly done = new Map<FileNode, File>();
  /** One half of a rename is drawn before the other asks for it. */
  readonly drawn = new Map<Change, boolean>();

  constructor(weather: Weather, random: Random) {
    this.weather = weather;
    this.random = random;
  }

  keepsEntry(change: Change): boolean {
    const known = this.drawn.get(change);
    if (known !== undefined) return known;
    const kept =
      change.forced ||
      (this.#keeps({ 'all-lost': 0, 'names-only': 1, 'data-only': 0, 'nearly-all-kept': 0.9, mixed: 0.5 }) &&
        (change.needs === undefined || this.keepsEntry(change.needs)));
    this.drawn.set(change, kept);
    return kept;
  }

  file(node: FileNode): File {
    const done = this.done.get(node);
    if (done !== undefined) return done;
    const [content, mode] = this.#content(node);
    const file: File = { kind: 'file', content, mode };
    this.done.set(node, file);
    return file;
  }

  #content(node: FileNode): [Buffer, number] {
    const none: [Buffer, number] = [node.content, node.mode];
    if (node.pending.length === 0) return none;
    // Whole but for one sector is the likeliest to be believed.
    if (node.suspect && this.weather !== 'all-lost' && this.random.chance(0.5))
      return [this.#withoutOneSector(node), node.mode];
    if (this.#keeps({ 'all-lost': 0, 'names-only': 0, 'data-only': 1, 'nearly-all-kept': 0.9, mixed: 0.3 }))
      return replayed(node, node.pending);
    if (this.weather === 'all-lost' || this.random.chance(0.4)) return none;
    if (this.random.chance(0.3)) return [zeroed(node, () => true), node.mode];
    if (this.random.chance(0.4)) return [zeroed(node, () => this.random.chance(0.4)), node.mode];
    const kept = this.random.below(node.pending.length);
    const torn = tear(node.pending[kept], this.random);
    return replayed(node, [...node.pending.slice(0, kept), ...torn]);
  }

  #withoutOneSector(node: FileNode): Buffer {
    const content = Buffer.from(replayed(node, node.pending)[0]);
    const at = SECTOR * this.random.below(Math.ceil(content.length / SECTOR));
    return content.fill(0, at, Math.min(at + SECTOR, content.length));
  }

  #keeps(chance: Record<Weather, number>): boolean {
    return this.random.chance(chance[this.weather]);
  }
}

function cutFolder(node: FolderNode, cut: PowerCut): Folder {
  const names = new Map(node.durable);
  for (const change of node.pending) if (cut.keepsEntry(change)) set(names, change.entries);
  const entries = new Map<string, Entry>();
  for (const [name, child] of names) {
    if (child.kind === 'folder') entries.set(name, cutFolder(child, cut));
    else entries.set(name, child.kind === 'file' ? cut.file(child) : child);
  }
  return { kind: 'folder', mode: node.mode, entries };
}

function liveFolder(node: FolderNode, seen: Map<FileNode, File>): Folder {
  const entries = new Map<string, Entry>();
  for (const [name, child] of node.live) {
    if (child.kind === 'folder') entries.set(name, liveFolder(child, seen));
    else if (child.kind === 'symlink') entries.set(name, child);
    else {
      const [content, mode] = replayed(child, child.pending);
      const file = seen.get(child) ?? { kind: 'file', content, mode };
      seen.set(child, file);
      entries.set(name, file);
    }
  }
  return { kind: 'folder', mode: node.mode, entries };
}

function set(names: Map<string, Node>, entries: Change['entries']): void {
  for (const [name, node] of entries) {
    if (node === null) names.delete(name);
    else names.set(name, node);
  }
}

function replayed(node: FileNode, changes: readonly DataChange[]): [Buffer, number] {
  let { content, mode } = node;
  for (const change of changes) {
    if ('mode' in change) mode = change.mode;
    else if ('size' in change) content = resized(content, change.size);
    else {
      const at = change.at === 'end' ? content.length : change.at;
      content = resized(content, Math.max(content.length, at + change.bytes.length));
      change.bytes.copy(content, at);
    }
  }
  return [content, mode];
}

function resized(content: Buffer, size: number): Buffer {
  const next = Buffer.alloc(size);
  content.copy(next, 0, 0, Math.min(size, content.length));
  return next;
}

function tear(change: DataChange | undefined, random: Random): DataChange[] {
  if (change === undefined || !('bytes' in change)) return [];
  return [{ at: change.at, bytes: change.bytes.subarray(0, random.below(change.bytes.length + 1)) }];
}

/** The length is on disk, the bytes of some sectors are not. */
function zeroed(node: FileNode, isLost: () => boolean): Buffer {
  const changes = node.pending.map((change) => {
    if (!('bytes' in change)) return change;
    const bytes = Buffer.from(change.bytes);
    for (let at = 0; at < bytes.length; at += SECTOR)
      if (isLost()) bytes.fill(0, at, Math.min(at + SECTOR, bytes.length));
    return { at: change.at, bytes };
  });
  return replayed(node, changes)[0];
}

const SECTOR = 512;

function nodeOf(entry: Entry, seen: Map<File, FileNode>): Node {
  if (entry.kind === 'symlink') return entry;
  if (entry.kind === 'file') {
    const node = seen.get(entry) ?? new FileNode(entry.content, entry.mode);
    seen.set(entry, node);
    return node;
  }
  const folder = new FolderNode(entry.mode);
  for (const [name, child] of entry.entries) {
    const node = nodeOf(child, seen);
    folder.live.set(name, node);
    folder.durable.set(name, node);
  }
  return folder;
}
