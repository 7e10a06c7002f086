/** Which process keeps the lease of a place, asked of the lease itself, and the end of a turn that it cannot see to. */
import { openStorage } from '../../lib/git/storage.js';
import { leaseOf, readLease } from '../../lib/lease/record.js';
import { workspaceId } from '../../lib/lease/workspace.js';
import { systemHost } from '../../lib/host.js';
import { stateOf, until } from './processes.js';
import type { Running } from './program.js';
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

/** SIGKILL to the keeper, then to the turn's holder and `pids`: nobody is left to tidy up. All but `pids` are gone on return. */
export async function killTurn(place: Scratch, running: Running, ...pids: readonly number[]): Promise<void> {
  await killKeeper(place);
  for (const pid of [running.pid, ...pids]) process.kill(pid, 'SIGKILL');
  await running.ended;
}

export async function killKeeper(place: Scratch): Promise<void> {
  const keeper = await keeperOf(place);
  process.kill(keeper, 'SIGKILL');
  await until('the keeper gone', () => ['', 'Z'].includes(stateOf(keeper)));
}
