/**
 * A comparison of trees that git cannot make since one of them is lost or torn: said as our own error, which names the object and
 * what it is needed for. Git's own words name a command that nobody typed.
 */
import { DurableError, hasCode } from '../errors.js';
import { parseTree } from '../git/objects-format.js';
import type { Storage } from '../git/storage.js';

export interface Root {
  readonly tree: string;
  /** What it is the tree of, for the sentence. */
  readonly of: string;
}

/**
 * What `compare` gives. Where git fails, every tree below the roots is read, which puts back what the journal has, and it is tried
 * once more. Errors: 'object-missing', 'object-damaged', else those of `compare`.
 */
export async function comparing<T>(
  storage: Storage,
  roots: readonly Root[],
  compare: () => Promise<T>,
): Promise<T> {
  try {
    return await compare();
  } catch (error) {
    if (!hasCode(error, 'git-failed')) throw error;
    for (const root of roots) await demandTrees(storage, root);
    return compare();
  }
}

async function demandTrees(storage: Storage, { tree, of }: Root): Promise<void> {
  // A set gives what is added to it while it is gone through.
  const trees = new Set([tree]);
  for (const oid of trees) {
    const object = await storage.objects.read(oid);
    if (object === undefined) throw new DurableError('object-missing', { oid, needed: of });
    if (object.type !== 'tree')
      throw new DurableError('object-damaged', { oid, detail: `a ${object.type} and not a tree` });
    for (const entry of parseTree(object.body, storage.layout.objectFormat))
      if (entry.mode === '040000') trees.add(entry.oid);
  }
}
