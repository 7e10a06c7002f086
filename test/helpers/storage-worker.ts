/**
 * A process of its own that does what it is told with one storage: a line of JSON in, a line of JSON out.
 * Faults are planned by DURABLE_FAULTS; `identity` in its first argument plays another machine.
 */
import { createInterface } from 'node:readline';
import { isDurableError } from '../../lib/errors.js';
import { processFaultActions } from '../../lib/git/fault-actions.js';
import { plannedFaults } from '../../lib/git/fault.js';
import { commitBody } from '../../lib/git/objects-format.js';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { readTicket } from '../../lib/git/tickets.js';
import { systemHost, type Host, type HostIdentity } from '../../lib/host.js';
import type { WorkerCommand } from './worker.js';

const [dir = '', identity = '{}'] = process.argv.slice(2);
const faults = plannedFaults(process.env['DURABLE_FAULTS'], processFaultActions(process.pid));
const host: Host = { ...systemHost(faults), identity: JSON.parse(identity) as Partial<HostIdentity> };
const storage = await openStorage(dir, host);

say({ ready: process.pid });
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line) as WorkerCommand;
  try {
    say(await obey(storage, command));
  } catch (error) {
    if (!isDurableError(error)) throw error;
    say({ code: error.code, fields: error.fields });
  }
}
await storage.close();

async function obey(at: Storage, command: WorkerCommand): Promise<unknown> {
  switch (command.do) {
    case 'update':
      return at.refs.update(command.change, command.budgetMs);
    case 'append':
      return { acknowledged: await append(at, command.ref, command.count, command.name) };
    case 'take':
      return { taken: at.locks.take(command.lock) };
    case 'release':
      return { released: at.locks.release(command.lock) };
    case 'heal':
      return at.locks.heal(command.lock);
    case 'heal and take':
      while (at.locks.heal(command.lock).state === 'held' && ownedByTheDead(at, command.lock));
      return { taken: at.locks.take(command.lock) };
    case 'read':
      return { found: (await at.objects.read(command.oid))?.body.toString('utf8') ?? null };
    case 'write':
      return { oid: await at.objects.write('blob', Buffer.from(command.text)) };
  }
}

/** True while another healer is about to remove the lock. */
function ownedByTheDead(at: Storage, lock: string): boolean {
  const owner = readTicket(lock);
  return owner !== null && owner !== 'foreign' && at.identity.judge(owner).verdict === 'dead';
}

/** Commits on top of whatever the ref is at, each tried until its swap succeeds; their ids, as acknowledged. */
async function append(at: Storage, ref: string, count: number, name: string): Promise<string[]> {
  const tree = await at.objects.write('tree', new Uint8Array());
  const acknowledged: string[] = [];
  while (acknowledged.length < count) {
    const from = at.refs.read(ref);
    const message = `${name} ${String(acknowledged.length)} ${String(Math.random())}`;
    const parents = from === null ? [] : [from];
    const to = await at.objects.write('commit', commitBody({ tree, parents, message, at: host.now() }));
    const outcome = await at.refs.update({ move: { ref, from, to } }, 60_000);
    if (outcome.moved) acknowledged.push(to);
    else at.objects.drop(to);
  }
  return acknowledged;
}

function say(answer: unknown): void {
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
