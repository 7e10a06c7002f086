/**
 * Whether a process belongs to a turn that is under way in this repository.
 *
 * It does when its environment holds the marker of a held lease, or when the lease's holder or one of the processes that the turn
 * has recorded is among its ancestors (same pid and start time, same host and pid namespace). An agent that clears the
 * environment of a command it starts is still its ancestor.
 * Caveat: a process that clears its environment and leaves its ancestors by a double fork is not recognised.
 */
import { digest } from '../canonical.js';
import type { Storage } from '../git/storage.js';
import { entryOf, MARKER, type ProcessIdentity } from '../lease/processes.js';
import { LEASE_PREFIX, seenLease, type LeaseRecord } from '../lease/record.js';
import { Ledger } from '../ledger/ledger.js';

/** True when the caller belongs to any turn or operation of this repository, of whichever work tree. */
export async function insideTurn(storage: Storage): Promise<boolean> {
  for (const ref of storage.refs.names(LEASE_PREFIX)) {
    const record = (await seenLease(storage, ref.slice(LEASE_PREFIX.length)))?.record;
    if (record?.state === 'held' && (await belongsTo(storage, record))) return true;
  }
  return false;
}

/** True when the caller is a process of this lease's holder. */
export async function belongsTo(storage: Storage, record: LeaseRecord): Promise<boolean> {
  const marker = storage.host.env[MARKER];
  if (marker !== undefined && record.markerHash === digest(marker)) return true;
  const here = storage.identity.here();
  const { holder } = record;
  if (holder.host !== here.hostId || holder.boot !== here.bootId || holder.pidNamespace !== here.pidNamespace)
    return false;
  const of = [holder, ...(await recordedProcesses(storage, record))];
  return ancestors(storage.host.pid).some((one) => of.some((other) => isSame(one, other)));
}

async function recordedProcesses(storage: Storage, record: LeaseRecord): Promise<readonly ProcessIdentity[]> {
  if (record.task === null) return [];
  const { state } = await Ledger.open(storage, record.task).readable();
  return state.turn?.id === record.turn ? state.turn.processes.map((entry) => entry.process) : [];
}

/** The process itself, its parent, and so on. */
function ancestors(pid: number): ProcessIdentity[] {
  const found = new Map<number, ProcessIdentity>();
  for (let entry = entryOf(pid); entry !== null && !found.has(entry.pid); entry = entryOf(entry.parent))
    found.set(entry.pid, entry);
  return [...found.values()];
}

const isSame = (a: ProcessIdentity, b: ProcessIdentity): boolean => a.pid === b.pid && a.start === b.start;
