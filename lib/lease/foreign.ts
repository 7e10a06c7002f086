/**
 * Turns of other repositories among the processes of one of ours: a program that our turn had started may have begun a turn
 * elsewhere, whose processes descend from ours and carry that turn's marker.
 *
 * A marker is `<workspace>-<random>`, and a repository knows every workspace of its own that ever had a turn, by its lease. So
 * a marker of any other workspace is another repository's. Whether that turn is under way only that repository could say: what
 * has its marker is left to it.
 */
import type { Storage } from '../git/storage.js';
import { LEASE_PREFIX, leaseOf } from './record.js';

/** True when it is the marker of a turn, under way or over, of any work tree of this repository. */
export function isOwnMarker(storage: Storage, marker: string): boolean {
  return storage.refs.names(LEASE_PREFIX).includes(`${LEASE_PREFIX}${leaseOf(workspaceOf(marker))}`);
}

/** Tells markers of turns that are not ours. `lease`: those of our other work trees are not that work tree's either. */
export function foreignMarkers(storage: Storage, lease?: string): (marker: string) => boolean {
  return (marker) => {
    if (!SHAPE.test(marker)) return false;
    return lease === undefined ? !isOwnMarker(storage, marker) : leaseOf(workspaceOf(marker)) !== lease;
  };
}

const SHAPE = /^[a-z2-7]{26}-[A-Za-z0-9_-]{32}$/;

const workspaceOf = (marker: string): string => marker.slice(0, Math.max(0, marker.indexOf('-')));
