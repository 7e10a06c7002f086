/**
 * What a tree of the repository (HEAD's, a checkpoint's) holds at a path, read from its tree objects: exact for any bytes
 * in a name, at the cost of the folders above the paths asked for.
 */
import { parseTree } from '../git/objects-format.js';
import { decodePath } from '../git/path.js';
import type { Storage } from '../git/storage.js';

export interface TreeLeaf {
  /** Git's mode; '160000' for a path that is, or lies in, a submodule. */
  readonly mode: string;
  readonly oid: string;
}

export class TreeView {
  readonly #storage: Storage;
  readonly #root: string | null;
  readonly #folders = new Map<string, ReadonlyMap<string, TreeLeaf>>();

  private constructor(storage: Storage, root: string | null) {
    this.#storage = storage;
    this.#root = root;
  }

  /** `HEAD^{tree}`, `<checkpoint>:worktree`, …; what does not exist (an unborn branch) is as an empty tree. */
  static async open(storage: Storage, name: string): Promise<TreeView> {
    const answer = await storage.git.run(['rev-parse', '--verify', '--quiet', name]);
    return new TreeView(storage, answer.code === 0 ? answer.stdout.toString('utf8').trim() : null);
  }

  async leaf(path: string): Promise<TreeLeaf | null> {
    let found: TreeLeaf | null = this.#root === null ? null : { mode: '040000', oid: this.#root };
    for (const name of path.split('/')) {
      if (found === null || found.mode === '160000') return found;
      if (found.mode !== '040000') return null;
      found = (await this.#folder(found.oid)).get(name) ?? null;
    }
    return found?.mode === '040000' ? null : found;
  }

  async #folder(oid: string): Promise<ReadonlyMap<string, TreeLeaf>> {
    const known = this.#folders.get(oid);
    if (known !== undefined) return known;
    const body = (await this.#storage.objects.read(oid))?.body ?? Buffer.alloc(0);
    const leaves = new Map<string, TreeLeaf>();
    for (const { mode, name, oid: leaf } of parseTree(body, this.#storage.layout.objectFormat))
      leaves.set(typeof name === 'string' ? name : decodePath(name), { mode, oid: leaf });
    this.#folders.set(oid, leaves);
    return leaves;
  }
}
