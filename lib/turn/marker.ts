/**
 * The secret in the environment of a turn's processes (`DURABLE_MARKER`): `<workspace>-<random>`.
 *
 * The lease holds its hash while the turn does. That it names the workspace tells a process of a turn that is over from
 * a person's: the repository knows every workspace that ever had a turn, by its lease, and no longer knows the secret.
 */
import type { Storage } from '../git/storage.js';
import { LEASE_PREFIX, leaseOf } from '../lease/record.js';

export function freshMarker(storage: Storage, workspace: string): string {
  return `${workspace}-${Buffer.from(storage.host.random(24)).toString('base64url')}`;
}

/** True when it is the marker of a turn, under way or over, of any work tree of this repository. */
export function isOwnMarker(storage: Storage, marker: string): boolean {
  const lease = leaseOf(marker.slice(0, Math.max(0, marker.indexOf('-'))));
  return storage.refs.names(LEASE_PREFIX).includes(`${LEASE_PREFIX}${lease}`);
}
