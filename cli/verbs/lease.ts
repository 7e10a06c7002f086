/**
 * `lease`: who holds the work tree. `lease release`: give it up.
 *
 * Only what a dead process left is given up, and only when no turn of it is open: that is for `recover`. A live holder's lease
 * is nobody else's to give up (4), not even a script's of its own turn: the agent goes on writing in a tree that the next
 * one may take. The holder itself lets go by ending.
 */
import { acquire } from '../../lib/lease/acquire.js';
import type { Repository } from '../../lib/repository.js';
import { readLeaseStatus, type LeaseStatus } from '../../lib/status.js';
import { EXIT } from '../exit.js';
import { noteDamage, withRepository } from '../open.js';
import type { Output } from '../output.js';
import type { VerbContext } from '../verb.js';

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  return withRepository(context, async (repository) => {
    await noteDamage(context, repository.storage, { states: false });
    const release = context.arguments.text('action') === 'release';
    const before = await readLeaseStatus(repository.storage);
    if (release && before !== null) await giveUp(repository);
    const lease = release ? await readLeaseStatus(repository.storage) : before;
    output.result(lease === null ? null : documentOf(lease), () => {
      describe(output, lease);
    });
    return EXIT.done;
  });
}

async function giveUp(repository: Repository): Promise<void> {
  const { storage } = repository;
  const operation = { kind: 'operation', task: null, turn: null, turnKey: null } as const;
  const held = await acquire(storage, { ...operation, objective: 'lease release', agent: 'person' });
  await held.release();
}

/** The field names are a contract. */
function documentOf(lease: LeaseStatus): unknown {
  const { holder, task, turn, epoch, acquiredAt, alive, ttlMs, renewedAt, host, bootId } = lease;
  return { holder, task, turn, epoch, acquiredAt, alive, ttlMs, renewedAt, host, bootId };
}

function describe(output: Output, lease: LeaseStatus | null): void {
  if (lease === null) {
    output.line('nobody holds this work tree');
    return;
  }
  const { holder, alive } = lease;
  output.table([
    ['holder', `${holder.agent} (pid ${String(holder.pid)} on ${holder.host})`],
    ['alive', alive ? { text: 'yes', style: 'green' } : { text: 'no', style: 'red' }],
    ['turn', lease.turn ?? 'none, one operation'],
    ['epoch', String(lease.epoch)],
    ['since', lease.acquiredAt],
    ['renewed', lease.renewedAt],
  ]);
  if (!alive) output.line('next: git durable recover');
}
