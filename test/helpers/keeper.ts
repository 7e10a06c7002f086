/** Which process keeps the lease of a place, asked of the lease itself. */
import { openStorage } from '../../lib/git/storage.js';
import { leaseOf, readLease } from '../../lib/lease/record.js';
import { workspaceId } from '../../lib/lease/workspace.js';
import { systemHost } from '../../lib/host.js';
import type { Scratch } from './scratch.js';

/** Waits until there is one. */
export async function keeperOf(place: Scratch): Promise<number> {
  const storage = await openStorage(place.dir, { ...systemHost(), env: place.env });
  const lease = leaseOf(workspaceId(storage, { create: false }) ?? '');
  for (;;) {
    const pid = (await readLease(storage, lease))?.record.keeper?.pid;
    if (pid !== undefined) {
      await storage.close();
      return pid;
    }
    await new Promise(setImmediate);
  }
}
