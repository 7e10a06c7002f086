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
import { readTicket, type Ticket } from './tickets.js';

/** How many owners and claims went. */
export function sweepLitter(storage: Storage): { readonly tickets: number; readonly claims: number } {
  return { tickets: storage.tickets.sweep(), claims: storage.locks.sweep(lockPaths(storage.layout)) };
}

/** Done under the claim, just before a dead owner's lock goes: what its orphans could still publish is taken away. */
export type BeforeUnlock = (path: string, dead: Ticket) => void;

/**
 * Removes every lock of ours whose owner is proven dead, by the claim chain, and the new value that a dead owner left beside
 * its ref; returns their paths. A git dir that cannot be written, or is full, keeps them: reading goes on.
 */
export function healDeadLocks(storage: Storage, before: BeforeUnlock = () => undefined): string[] {
  const { layout, locks, disk } = storage;
  try {
    const paths = lockPaths(layout);
    const removed = paths.filter((path) => {
      const healing = locks.heal(path, (dead) => {
        disk.unlink('claim.unlock', path.replace(/lock$/, `${dead.id}.lock`));
        before(path, dead);
      });
      return healing.state === 'removed';
    });
    for (const path of paths) if (isAbandoned(storage, path)) disk.unlink('claim.unlock', path);
    return removed;
  } catch (error) {
    if (hasCode(error, 'permission-denied') || hasCode(error, 'out-of-space')) return [];
    throw error;
  }
}

const VALUE = /\.([a-z2-7]{26})\.lock$/;

/**
 * Whether a file is a ref's new value (`<ref>.<ticket>.lock`) that nobody will rename any more. Its lock may have gone before it
 * (a power cut that kept one name and not the other, a lock removed by hand), so it is judged by its own name: the ticket
 * says who. No ticket, and no lock of that ticket on the ref: its owner is over, since a live one holds the lock for as long
 * as the value is there, and never uses an id again whose ticket is gone.
 */
function isAbandoned({ layout, identity }: Storage, path: string): boolean {
  const id = VALUE.exec(path)?.[1];
  if (id === undefined) return false;
  const ticket = readTicket(join(layout.shared, 'tickets', id));
  if (ticket === 'foreign') return false;
  if (ticket !== null) return identity.judge(ticket).verdict === 'dead';
  const lock = readTicket(path.replace(VALUE, '.lock'));
  return lock === null || lock === 'foreign' || lock.id !== id;
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
