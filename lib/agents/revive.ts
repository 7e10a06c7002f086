/**
 * The keeper of an agent's turn, started anew where it was killed: without one nobody renews the lease, nobody sees the agent die, and each
 * step is taken by its hook's own process. Called by that process, at a step inside the turn.
 *
 * Two hooks at once may start two: each renews, and both end with the turn.
 */
import type { Storage } from '../git/storage.js';
import { ownTurn, type AgentProcess } from './own-turn.js';

/** A keeper says who it is at its first look, within half a second of its start. Milliseconds. */
const FIRST_LOOK_MS = 5000;

/** True when it was started. Nothing for an agent that is part of another's turn. Errors: 'io-failed', the disk's. */
export async function reviveKeeper(storage: Storage, by: AgentProcess, session: string): Promise<boolean> {
  const own = await ownTurn(storage, by, session);
  if (own === null || own.isJoined) return false;
  const { held } = own.context;
  const { keeper, acquiredAt } = held.record;
  if (keeper === null && storage.host.now().getTime() - Date.parse(acquiredAt) < FIRST_LOOK_MS) return false;
  if (keeper !== null && !isDead(storage, keeper)) return false;
  await held.startKeeper(by.process, { endsIdle: true });
  return true;
}

function isDead(
  { identity }: Storage,
  { pid, start }: { readonly pid: number; readonly start: string },
): boolean {
  const { hostId: host, bootId: boot, pidNamespace } = identity.here();
  return identity.judge({ host, boot, pidNamespace, pid, start }).verdict === 'dead';
}
