/**
 * Whether a holding is over, which for an operation may be later than the death of its holder.
 *
 * A turn's holder that dies leaves interrupted work, and whoever recovers it ends what it left. An operation is one command of a
 * person's (`op -- rebase`): it is under way as long as anything of it runs, so that nothing starts under it. Its holder is git's own
 * process, its keeper the program that waits for that; all that git starts carries the operation's marker.
 *
 * Caveat: what clears its environment is not found; what git leaves in the background (a file system monitor) counts until it
 * ends, where the keeper was killed before it could let go.
 */
import type { ProcessRecord } from '../event.js';
import type { Judgement } from '../git/identity.js';
import type { Storage } from '../git/storage.js';
import { isOfHere } from './left.js';
import { commandOf, findProcesses, isRunning } from './processes.js';
import type { LeaseRecord } from './record.js';

/** As `Identity.judge` of the holder; 'alive' too while another process of an operation runs, which `why` names. */
export function judgeHolding(storage: Storage, record: LeaseRecord): Judgement {
  const judged = storage.identity.judge(record.holder);
  if (judged.verdict !== 'dead') return judged;
  const [one] = operationProcesses(storage, record);
  if (one === undefined) return judged;
  return { verdict: 'alive', why: `process ${String(one.pid)} (${one.command}) of it is running` };
}

/** What of an operation runs on this machine, the program that waits for it among it; nothing for a turn. */
function operationProcesses(storage: Storage, record: LeaseRecord): ProcessRecord[] {
  const { kind, keeper, holder } = record;
  if (kind !== 'operation' || !isOfHere(storage, holder)) return [];
  if (keeper !== null && isRunning(keeper)) return [{ ...keeper, command: commandOf(keeper.pid) }];
  return markedProcesses(storage, record);
}

/** The git of an operation that nobody waits for any more, and all that it started: whoever began it was killed. */
export function abandonedOperation(storage: Storage, record: LeaseRecord): ProcessRecord[] {
  const { state, kind, keeper, holder } = record;
  if (state !== 'held' || kind !== 'operation' || keeper === null || !isOfHere(storage, holder)) return [];
  return isRunning(keeper) ? [] : markedProcesses(storage, record);
}

/** An operation without a marker (a restore) starts nothing that outlives it. */
function markedProcesses(storage: Storage, { holder, markerHash }: LeaseRecord): ProcessRecord[] {
  if (markerHash === null) return [];
  return findProcesses({ markerHash, recorded: [holder], holders: [holder], caller: storage.host.pid });
}
