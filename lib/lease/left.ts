/**
 * What the turns of a work tree left running, as far as the lease record has to remember it for the next holder.
 *
 * A ledger says what a turn left when it ended (`survivors`), but the next turn may be of another task, and only the lease
 * record knows the hash of a turn's marker. So each acquisition carries both on: the turn of the holding that it replaces, and
 * those that this one had carried. A turn's start reconciles them and drops what is gone (lib/orphans/reconcile.ts).
 *
 * Bounds: the newest `RECENT` turns, whose markers may still be found on a container; of older ones those of which a process
 * was alive at the last start; `MOST` in all, and `PROCESSES` of each.
 */
import { hasCode } from '../errors.js';
import type { HolderRecord, ProcessRecord } from '../event.js';
import type { Storage } from '../git/storage.js';
import type { TurnState } from '../ledger/state.js';
import { turnState } from './open-turn.js';
import type { LeaseRecord, LeftTurn } from './record.js';

const RECENT = 32;
const MOST = 64;
const PROCESSES = 100;

/** For the record that replaces this one: its own turn, then those that it had carried, newest first. */
export async function leftTurns(storage: Storage, record: LeaseRecord): Promise<LeftTurn[]> {
  const own = await leftOf(storage, record);
  const all = own === null ? record.left : [own, ...record.left];
  return all.filter(({ processes }, at) => at < RECENT || processes.length > 0).slice(0, MOST);
}

/** The turn of this holding; null where it was no turn, or never had a ledger to be found in. */
async function leftOf(storage: Storage, record: LeaseRecord): Promise<LeftTurn | null> {
  const { kind, task, turn, markerHash, holder } = record;
  if (kind !== 'turn' || task === null || turn === null) return null;
  const state = await readableTurn(storage, task);
  if (state === null) return null;
  return {
    task,
    turn,
    markerHash,
    host: holder.host,
    boot: holder.boot,
    pidNamespace: holder.pidNamespace,
    processes: state.id === turn ? recordedSurvivors(state).slice(0, PROCESSES) : [],
    isReconciled: false,
  };
}

/** A ledger of a newer version is for a newer program: it must not keep a reading verb from the rest. */
async function readableTurn(storage: Storage, task: string): Promise<TurnState | null> {
  try {
    return await turnState(storage, task);
  } catch (error) {
    if (hasCode(error, 'version-unsupported')) return null;
    throw error;
  }
}

/** What the turn's events name that may have outlived it: after its end those found then, before it all that it started. */
export function recordedSurvivors(turn: TurnState): ProcessRecord[] {
  if (turn.finished !== null) return turn.finished.event.survivors;
  const all = [
    ...turn.processes.map(({ process }) => process),
    ...turn.invocations.flatMap(({ process }) => (process === null ? [] : [process])),
    ...(turn.interrupted?.event.survivors ?? []),
  ];
  return [...new Map(all.map((one) => [processKey(one), one])).values()];
}

/** A process of one boot: a pid comes back, a pid with its start time does not. */
export const processKey = ({ pid, start }: { readonly pid: number; readonly start: string }): string =>
  `${String(pid)} ${start}`;

/** Whether pids of this holding mean anything here. */
export function isOfHere(
  storage: Storage,
  { host, boot, pidNamespace }: Pick<HolderRecord, 'host' | 'boot' | 'pidNamespace'>,
): boolean {
  const here = storage.identity.here();
  return host === here.hostId && boot === here.bootId && pidNamespace === here.pidNamespace;
}
