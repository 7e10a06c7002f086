/**
 * Removing the fence of a dead turn, in every work tree: by the claim chain (PROTOCOL.md 26), its owner proven dead.
 *
 * Under the claim, before the lock goes: the dead epoch's stage is revoked, so that an orphaned git shim publishes nothing over
 * the index of the git that comes next (28), and what hooks read goes. A lock is judged by its own ticket's owner, never by the
 * lease's holder. It may run at any time, beside anything; a git dir that cannot be written keeps everything.
 */
import { basename, dirname, join } from 'node:path';
import type { Storage } from '../git/storage.js';
import { healDeadLocks } from '../git/sweep.js';
import type { Ticket } from '../git/tickets.js';
import { healMaintenance } from '../lease/maintenance.js';
import { revokeStage } from '../lease/staging.js';
import { disarmHooks } from './hooks.js';
import { endObserving } from './observer.js';
import { emptyOwnGit } from './own-git.js';
import { pidFile } from './place.js';
import { hideState, readState, stateFile } from './state.js';

/** Removes every lock of ours, index.lock, refs and `gc.pid`, whose owner is proven dead; returns their paths. */
export function healFences(storage: Storage): string[] {
  const locks = healDeadLocks(storage, (path, dead) => {
    if (basename(path) === 'index.lock') takeDown(inWorkTree(storage, dirname(path)), dead);
  });
  return [...locks, ...healMaintenance(storage)];
}

/** A turn that died before its state was shown had run nothing that could publish. */
function takeDown(storage: Storage, dead: Ticket): void {
  const state = readState(stateFile(storage.layout));
  if (state !== null && state.turn === dead.turn) {
    revokeStage(storage, state.epoch);
    hideState(storage, state.turn);
    emptyOwnGit(storage, state.turn);
    disarmHooks(storage);
    endObserving(storage);
  }
  storage.disk.unlink('fence.lower', pidFile(storage.layout.gitDir));
}

/** The same storage as another work tree of the repository sees it; its `workTree` is not used for this. */
function inWorkTree(storage: Storage, gitDir: string): Storage {
  return { ...storage, layout: { ...storage.layout, gitDir, local: join(gitDir, 'durable') } };
}
