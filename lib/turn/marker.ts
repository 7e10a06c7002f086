/**
 * The secret in the environment of a turn's processes (`DURABLE_MARKER`): `<workspace>-<random>`.
 *
 * The lease holds its hash while the turn does. That it names the workspace tells a process of a turn that is over from
 * a person's: the repository knows every workspace that ever had a turn, by its lease, and no longer knows the secret.
 */
import type { Storage } from '../git/storage.js';

export function freshMarker(storage: Storage, workspace: string): string {
  return `${workspace}-${Buffer.from(storage.host.random(24)).toString('base64url')}`;
}
