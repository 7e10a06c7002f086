/**
 * A tree with a few of its files changed, made from the trees on the way to them and not from an index.
 *
 * `git write-tree` and the `git diff-tree` after it read a whole index of 50,000 paths each, to say of ten paths what was
 * known before. Here only the folders above those are read and written (gitformat-pack and git-mktree(1): a tree is
 * its entries in byte order, a folder's name as if it ended in a slash).
 */
import type { FileMode, Image } from '../event.js';
import { treeBody, parseTree, type TreeEntry } from './objects-format.js';
import { encodePath } from './path.js';
import type { Storage } from './storage.js';
import type { Comparison, TreeChange } from './tree-changes.js';

export interface TreeEdit {
  readonly path: string;
  /** null: it goes, if it is there. */
  readonly image: Image;
}

export interface EditedTree {
  readonly tree: string;
  /** Bodies of the trees that were made, by id. */
  readonly made: ReadonlyMap<string, Buffer>;
  /** As `git diff-tree -r -t` would tell it. */
  readonly comparison: Comparison;
}

/**
 * `from` with these paths as they are now, one edit a path. Null where a file is to take a folder's place or a folder a
 * file's, and where a tree on the way cannot be had: then an index has to say. Errors: 'object-damaged'.
 */
export async function editTree(
  storage: Storage,
  from: string,
  edits: readonly TreeEdit[],
): Promise<EditedTree | null> {
  const root: Folder = { files: new Map(), folders: new Map() };
  for (const edit of edits) place(root, edit);
  const editor = new Editor(storage);
  const tree = await editor.edit(from, root, '');
  if (tree === 'tangled') return null;
  const changes = editor.changes.sort((a, b) => Buffer.compare(encodePath(a.path), encodePath(b.path)));
  const blobs = changes.flatMap(({ after }) => (after === null ? [] : [after.oid]));
  const trees = [...editor.made.keys()].filter((oid) => oid !== tree.oid);
  const comparison = { changes, objects: [...new Set([...blobs, ...trees])] };
  return { tree: tree.oid, made: editor.made, comparison };
}

/** Edits below one folder; names as latin1, which is one string for each row of bytes. */
interface Folder {
  readonly files: Map<string, TreeEdit>;
  readonly folders: Map<string, Folder>;
}

function place(root: Folder, edit: TreeEdit): void {
  const names = encodePath(edit.path).toString('latin1').split('/');
  const name = names.pop() ?? '';
  let folder = root;
  for (const above of names) {
    const next = folder.folders.get(above) ?? { files: new Map(), folders: new Map() };
    folder.folders.set(above, next);
    folder = next;
  }
  folder.files.set(name, edit);
}

interface Made {
  readonly oid: string;
  readonly isEmpty: boolean;
}

class Editor {
  readonly made = new Map<string, Buffer>();
  readonly changes: TreeChange[] = [];
  readonly #storage: Storage;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /** `oid`: the folder's tree, null when there is none yet. */
  async edit(oid: string | null, folder: Folder, where: string): Promise<Made | 'tangled'> {
    const entries = await this.#entries(oid);
    if (entries === null) return 'tangled';
    for (const [name, edit] of folder.files) {
      const before = entries.get(name);
      if (before !== undefined && !isFile(before)) return 'tangled';
      // A file and a folder of one name, among the edits themselves.
      if (folder.folders.has(name) && edit.image !== null) return 'tangled';
      this.#set(entries, name, edit);
    }
    for (const [name, below] of folder.folders) {
      const before = entries.get(name);
      if (before !== undefined && before.mode !== FOLDER) return 'tangled';
      const made = await this.edit(before?.oid ?? null, below, `${where}${name}/`);
      if (made === 'tangled') return 'tangled';
      if (made.isEmpty) entries.delete(name);
      else entries.set(name, { mode: FOLDER, name: bytesOf(name), oid: made.oid });
    }
    const body = treeBody([...entries.values()]);
    const tree = this.#storage.objects.hash('tree', body);
    if (tree !== oid && entries.size > 0) this.made.set(tree, body);
    return { oid: tree, isEmpty: entries.size === 0 };
  }

  #set(entries: Map<string, TreeEntry>, name: string, { path, image }: TreeEdit): void {
    const old = entries.get(name);
    const before = old === undefined ? null : { mode: old.mode as FileMode, oid: old.oid };
    if (image === null) entries.delete(name);
    else entries.set(name, { mode: image.mode, name: bytesOf(name), oid: image.oid });
    if (before?.oid === image?.oid && before?.mode === image?.mode) return;
    this.changes.push({ path, before, after: image });
  }

  async #entries(oid: string | null): Promise<Map<string, TreeEntry> | null> {
    if (oid === null) return new Map();
    const format = this.#storage.layout.objectFormat;
    // git knows the empty tree without having it.
    if (oid === this.#storage.objects.hash('tree', Buffer.alloc(0))) return new Map();
    const object = await this.#storage.objects.read(oid);
    if (object?.type !== 'tree') return null;
    return new Map(parseTree(object.body, format).map((entry) => [latin1(entry.name), entry]));
  }
}

const FOLDER = '040000';
const FILES: readonly string[] = ['100644', '100755', '120000'];

const isFile = ({ mode }: TreeEntry): boolean => FILES.includes(mode);
const bytesOf = (name: string): Buffer => Buffer.from(name, 'latin1');
const latin1 = (name: Buffer | string): string =>
  (typeof name === 'string' ? Buffer.from(name) : name).toString('latin1');
