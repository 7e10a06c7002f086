/**
 * What dead processes of ours left in the git dir, removed in one go: tickets with their temporary files, and claims
 * about locks that are gone; and the locks themselves, which whoever meets one heals as well (claims.ts). Nothing here is
 * needed for anything to work; it keeps the folder small and `uninstall` clean. It may run at any time, beside anything.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { hasCode } from '../errors.js';
import { errno } from './disk.js';
import type { Layout } from './layout.js';
import type { Storage } from './storage.js';

/** How many owners and claims went. */
export function sweepLitter(storage: Storage): { readonly tickets: number; readonly claims: number } {
  return { tickets: storage.tickets.sweep(), claims: storage.locks.sweep(lockPaths(storage.layout)) };
}

/**
 * Removes every lock of ours whose owner is proven dead, by the claim chain, and the new value that a dead owner left beside
 * its ref; returns their paths. A git dir that cannot be written, or is full, keeps them: reading goes on.
 */
export function healDeadLocks({ layout, locks, disk }: Storage): string[] {
  try {
    return lockPaths(layout).filter((path) => {
      const healing = locks.heal(path, (dead) => {
        disk.unlink('claim.unlock', path.replace(/lock$/, `${dead.id}.lock`));
      });
      return healing.state === 'removed';
    });
  } catch (error) {
    if (hasCode(error, 'permission-denied') || hasCode(error, 'out-of-space')) return [];
    throw error;
  }
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
