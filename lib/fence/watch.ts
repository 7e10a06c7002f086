/**
 * The keeper's part of the fence, at each of its looks: an `index.lock` that somebody removed is taken again (PROTOCOL.md 29),
 * a hook that somebody wiped is put back, hooks follow a `core.hooksPath` that is changed, and all of it is told.
 *
 * The end of the turn may come meanwhile, from another process: it lets go of the lease before it takes the fence down, so
 * whoever put something back looks at the lease afterwards, and takes it down again when the turn is over.
 */
import type { Storage } from '../git/storage.js';
import { isToken, readLease, type LeaseRecord, type LeaseToken } from '../lease/record.js';
import { restoreHooks } from './hooks.js';
import { lowerFence, takeAgain } from './index-lock.js';

/** One sentence for each thing that was put back. */
export async function watchFence(
  storage: Storage,
  record: LeaseRecord,
  token: LeaseToken,
): Promise<string[]> {
  const { turn, task, holder, objective } = record;
  if (record.kind !== 'turn' || turn === null) return [];
  const done: string[] = [];
  if (takeAgain(storage, { turn, task, agent: holder.agent, objective, holder }))
    done.push('index.lock of the turn was removed by somebody, and taken again');
  done.push(...(await restoreHooks(storage)));
  if (done.length === 0) return [];
  const now = await readLease(storage, token.lease);
  if (now !== null && isToken(now.record, token)) return done;
  lowerFence(storage, turn);
  return [];
}
