/**
 * What dead processes of ours left in the git dir, removed in one go: tickets with their temporary files, and claims
 * about locks that are gone. Dead locks themselves are healed by whoever meets them (claims.ts). Nothing here is
 * needed for anything to work; it keeps the folder small and `uninstall` clean. It may run at any time, beside anything.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { errno } from './disk.js';
import type { Layout } from './layout.js';
import type { Storage } from './storage.js';

/** How many owners and claims went. */
export function sweepLitter(storage: Storage): { readonly tickets: number; readonly claims: number } {
  return { tickets: storage.tickets.sweep(), claims: storage.locks.sweep(lockPaths(storage.layout)) };
}

/** Every place where a lock of ours can be: our refs, and the index of each work tree. */
export function lockPaths({ commonDir }: Layout): string[] {
  const linked = filesBelow(join(commonDir, 'worktrees'), false).map((name) => join('worktrees', name));
  const refs = ['refs/durable', 'refs/notes'].flatMap((folder) =>
    filesBelow(join(commonDir, folder), true).map((name) => join(folder, name)),
  );
  return [
    ...refs.filter((name) => name.endsWith('.lock')),
    ...['', ...linked].map((dir) => join(dir, 'index.lock')),
  ].map((name) => join(commonDir, name));
}

function filesBelow(dir: string, recursive: boolean): string[] {
  try {
    return readdirSync(dir, { recursive, encoding: 'utf8' });
  } catch (error) {
    if (errno(error) === 'ENOENT') return [];
    throw error;
  }
}
