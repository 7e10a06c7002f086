/** What every test of the lease needs: a repository opened in the test's own process, perhaps as another host. */
import type { ExecutionContext } from 'ava';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { systemHost, type Host } from '../../lib/host.js';
import type { Challenge } from '../../lib/lease/challenge.js';
import type { LeaseRequest } from '../../lib/lease/take.js';
import type { Scratch } from './scratch.js';

export const TURN: LeaseRequest = {
  kind: 'turn',
  task: null,
  turn: null,
  turnKey: null,
  objective: 'test the lease',
  agent: 'tester',
};

export const OPERATION: LeaseRequest = { ...TURN, kind: 'operation' };

export async function openAs(
  t: Pick<ExecutionContext, 'teardown'>,
  place: Scratch,
  changes: Partial<Host> & { readonly dir?: string } = {},
): Promise<Storage> {
  const { dir, ...host } = changes;
  const storage = await openStorage(dir ?? place.dir, { ...systemHost(), env: place.env, ...host });
  t.teardown(() => storage.close());
  return storage;
}

/** A challenger's clocks that pass at once: each pause is counted, none is slept. */
export function quickChallenge(): Challenge & { readonly waitedMs: () => number } {
  let now = 0;
  return {
    monotonicMs: () => now,
    uptimeMs: () => now,
    pause: (ms) => {
      now += ms;
      return Promise.resolve();
    },
    waitedMs: () => now,
  };
}
