/**
 * Waiting for a ledger to move: woken by the file system when the ref's folder changes, with a slow look besides for
 * file systems that tell nothing (network mounts). No busy polling; the wait ends at its deadline.
 */
import { watch, type FSWatcher } from 'node:fs';
import { dirname, join } from 'node:path';
import { errno } from '../git/disk.js';
import type { Storage } from '../git/storage.js';

const SLOW_LOOK_MS = 500;

export interface Until {
  /** The value that is waited to go; null: that there is a ref at all. */
  readonly oid: string | null;
  /** Monotonic. */
  readonly deadlineMs: number;
  readonly signal?: AbortSignal;
  /** How often it looks by itself. */
  readonly slowLookMs?: number;
}

/** Resolves true when `ref` is no longer at `oid`, false when `deadlineMs` has passed or `signal` fires. */
export async function refMoved(storage: Storage, ref: string, until: Until): Promise<boolean> {
  for (;;) {
    const look = armed(storage, ref);
    try {
      if (storage.refs.read(ref) !== until.oid) return true;
      const left = until.deadlineMs - storage.host.monotonicMs();
      if (left <= 0 || until.signal?.aborted === true) return false;
      await look.changed(Math.min(left, until.slowLookMs ?? SLOW_LOOK_MS), until.signal);
    } finally {
      look.close();
    }
  }
}

interface Look {
  readonly changed: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  readonly close: () => void;
}

/** The watch is set before the ref is read, or a move between the two would be slept through. */
function armed(storage: Storage, ref: string): Look {
  let wake: () => void = () => undefined;
  let early = false;
  const watcher = watchFolder(dirname(join(storage.layout.commonDir, ref)), () => {
    early = true;
    wake();
  });
  return {
    changed: (ms, signal) =>
      new Promise((resolve) => {
        const timer = setTimeout(done, ms);
        signal?.addEventListener('abort', done, { once: true });
        wake = done;
        if (early) done();
        function done(): void {
          clearTimeout(timer);
          signal?.removeEventListener('abort', done);
          resolve();
        }
      }),
    close: () => watcher?.close(),
  };
}

/** Of a folder that is not there (git removes empty ones when it packs refs) the nearest one above tells when it comes. */
function watchFolder(folder: string, changed: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, changed);
    watcher.on('error', changed);
    return watcher;
  } catch (error) {
    if (errno(error) === 'ENOENT' && dirname(folder) !== folder) return watchFolder(dirname(folder), changed);
    // No watches left, or a file system that has none: the slow look finds the change.
    return undefined;
  }
}
