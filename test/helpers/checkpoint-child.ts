/** Takes one checkpoint of the work tree named by the first argument, and prints it as JSON: for another user, or to be killed. */
import { takeCheckpoint } from '../../lib/files/checkpoint.js';
import { processFaultActions } from '../../lib/git/fault-actions.js';
import { plannedFaults } from '../../lib/git/fault.js';
import { openStorage } from '../../lib/git/storage.js';
import { systemHost } from '../../lib/host.js';
import { openTask } from '../../lib/ledger/ledger.js';

const faults = plannedFaults(process.env['DURABLE_FAULTS'], processFaultActions(process.pid));
const storage = await openStorage(process.argv[2] ?? '.', systemHost(faults));
const by = { agent: 'child', workspace: null };
const ledger = await openTask(storage, { objective: 'a checkpoint', ...by });
const { checkpoint, tree, skipped } = await takeCheckpoint(storage, ledger, {
  message: 'a child',
  reason: 'manual',
  by,
});
await storage.close();
process.stdout.write(`${JSON.stringify({ checkpoint, tree, skipped })}\n`);
