/** Paths on which the work tree differs from a checkpoint, for a call that nobody saw end. */
import { look } from '../files/revision.js';
import { matches } from '../files/verdict.js';
import { splitPaths } from '../git/path.js';
import type { Storage } from '../git/storage.js';
import { imageOf } from './touched.js';

export async function differingPaths(storage: Storage, checkpoint: string): Promise<string[]> {
  const held = new Map(
    splitPaths(
      await storage.git.output(['ls-tree', '-r', '-z', '--full-tree', `${checkpoint}:worktree`]),
    ).map((line) => {
      const [mode, , oid] = line.slice(0, line.indexOf('\t')).split(' ');
      return [line.slice(line.indexOf('\t') + 1), imageOf(mode, oid)] as const;
    }),
  );
  const names = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'];
  const listed = splitPaths(await storage.git.output(names)).filter((path) => !path.endsWith('/'));
  const differing: string[] = [];
  for (const path of new Set([...held.keys(), ...listed])) {
    const { found } = look(storage, path);
    if (found === 'directory') continue;
    if (!matches(found, held.get(path) ?? null)) differing.push(path);
  }
  return differing.sort();
}
