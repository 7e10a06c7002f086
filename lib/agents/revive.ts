/**
 * The keeper of an agent's turn, started anew where it was killed: without one nobody renews the lease, nobody sees the agent die, and each
 * step is taken by its hook's own process. Called by that process, at a step inside the turn.
 *
 * Two hooks at once may start two: each renews, and both end with the turn.
 */
import type { Storage } from '../git/storage.js';
import { startKeeperProcess } from '../lease/keeper-start.js';
import { isRunning } from '../lease/processes.js';
import { leaseOf, readLease, tokenOf } from '../lease/record.js';
import { workspaceId } from '../lease/workspace.js';
import { placeIn, type AgentProcess } from './own-turn.js';

/** A keeper says who it is at its first look, within half a second of its start. Milliseconds. */
const FIRST_LOOK_MS = 5000;

/** Nothing for an agent that is part of another's turn. Errors: 'io-failed', the disk's. */
export async function reviveKeeper(storage: Storage, by: AgentProcess, session: string): Promise<void> {
  const workspace = workspaceId(storage, { create: false });
  const record = workspace === null ? undefined : (await readLease(storage, leaseOf(workspace)))?.record;
  if (record?.state !== 'held' || (await placeIn(storage, record, { by, session })) !== 'own') return;
  const { keeper, acquiredAt } = record;
  const isFresh = storage.host.now().getTime() - Date.parse(acquiredAt) < FIRST_LOOK_MS;
  if (keeper === null ? isFresh : isRunning(keeper)) return;
  await startKeeperProcess(storage, tokenOf(record), { agent: by.process, endsIdle: true });
}
