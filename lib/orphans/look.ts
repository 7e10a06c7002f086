/**
 * One look at what runs on this machine, for all turns that are asked about: the processes, their markers, the containers, and
 * what must never be taken for an orphan because a live holder of this repository runs in it, started it, or is it.
 */
import type { ProcessRecord } from '../event.js';
import type { Storage } from '../git/storage.js';
import { isOfHere } from '../lease/left.js';
import { judgeHolding } from '../lease/life.js';
import {
  addAncestors,
  addDescendants,
  processTable,
  readMarkers,
  type Markers,
  type ProcessEntry,
} from '../lease/processes.js';
import { LEASE_PREFIX, seenLease, type LeaseRecord } from '../lease/record.js';
import { NO_CONTAINERS, runningContainers, type Containers } from './containers.js';

export interface Look {
  readonly table: readonly ProcessEntry[];
  readonly markers: Markers;
  readonly containers: Containers;
  /** Every lease of this repository as it is now. */
  readonly leases: readonly LeaseRecord[];
  /** Holders that are not proven dead, what they run in, and all that they started. */
  readonly spared: ReadonlySet<number>;
  /** Markers of those holders. */
  readonly liveMarkers: ReadonlySet<string>;
  /** Filled by searches: who holds a turn of another repository that was begun inside an orphan, by pid. Left alone. */
  readonly foreign: Map<number, ProcessRecord>;
}

export async function lookAround(storage: Storage, options: { readonly containers: boolean }): Promise<Look> {
  const leases: LeaseRecord[] = [];
  for (const ref of storage.refs.names(LEASE_PREFIX)) {
    const current = await seenLease(storage, ref.slice(LEASE_PREFIX.length));
    if (current !== null) leases.push(current.record);
  }
  const containers = options.containers ? await runningContainers(storage.host) : NO_CONTAINERS;
  const table = processTable();
  const markers = readMarkers();
  const live = leases.filter((record) => isLive(storage, record));
  const liveMarkers = new Set(live.flatMap(({ markerHash }) => (markerHash === null ? [] : [markerHash])));
  const here = live.filter((record) => isOfHere(storage, record.holder));
  const spared = sparedBy(here, table, (pid) => liveMarkers.has(markers(pid) ?? ''));
  return { table, markers, containers, leases, spared, liveMarkers, foreign: new Map() };
}

/** Its turn, or operation, may be under way. */
export function isLive(storage: Storage, record: LeaseRecord): boolean {
  return record.state === 'held' && judgeHolding(storage, record).verdict !== 'dead';
}

function sparedBy(
  live: readonly LeaseRecord[],
  table: readonly ProcessEntry[],
  isMarked: (pid: number) => boolean,
): Set<number> {
  if (live.length === 0) return new Set();
  const byPid = new Map(table.map((entry) => [entry.pid, entry]));
  const spared = new Set(live.map(({ holder }) => holder.pid));
  for (const { pid } of table) if (isMarked(pid)) spared.add(pid);
  addDescendants(spared, table);
  for (const { holder, keeper } of live) {
    addAncestors(spared, holder.pid, byPid);
    if (keeper !== null && byPid.get(keeper.pid)?.start === keeper.start) spared.add(keeper.pid);
  }
  return spared;
}
