/** A linked work tree for a session of its own: beside this one, on a branch of its own from HEAD. */
import { mkdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { freshId } from '../../lib/host.js';
import { openStorage } from '../../lib/git/storage.js';
import type { VerbContext } from '../verb.js';

/** The same folder in the new work tree. Errors: 'git-failed' (no commit yet), those of opening. */
export async function linkedFolder(context: VerbContext): Promise<string> {
  const storage = await openStorage(context.dir, context.host);
  try {
    const { workTree } = storage.layout;
    const name = `turn-${freshId(context.host, 6)}`;
    const path = `${workTree}-${name}`;
    await storage.git.output(['worktree', 'add', '-q', '-b', name, path]);
    context.output.note(
      `work tree '${path}', branch ${name}; when it is merged: git worktree remove '${path}'`,
    );
    const folder = join(path, relative(workTree, context.dir));
    mkdirSync(folder, { recursive: true });
    return folder;
  } finally {
    await storage.close();
  }
}
