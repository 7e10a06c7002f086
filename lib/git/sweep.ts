/**
 * What dead processes of ours left in the git dir, removed in one go: tickets with their temporary files, and claims
 * about locks that are gone. Dead locks themselves are healed by whoever meets them (claims.ts). Nothing here is
 * needed for anything to work; it keeps the folder small and `uninstall` clean. It may run at any time, beside anything.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { errno } from './disk.js';
import type { Layout } from './layout.js';
import type { Storage } from './storage.js';

/** How many owners and claims went. */
export function sweepLitter(storage: Storage): { readonly tickets: number; readonly claims: number } {
  return { tickets: storage.tickets.sweep(), claims: storage.locks.sweep(lockPaths(storage.layout)) };
}

/** Every place where a lock of ours can be: the refs, and the index of each work tree. */
export function lockPaths({ commonDir }: Layout): string[] {
  const gitDirs = [
    commonDir,
    ...entries(join(commonDir, 'worktrees')).map((name) => join(commonDir, 'worktrees', name)),
  ];
  const refs = readdirSync(join(commonDir, 'refs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.lock'))
    .map((name) => join(commonDir, 'refs', name));
  return [...refs, ...gitDirs.map((gitDir) => join(gitDir, 'index.lock')).filter((path) => existsSync(path))];
}

function entries(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch (error) {
    if (errno(error) === 'ENOENT') return [];
    throw error;
  }
}
