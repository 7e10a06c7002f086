/**
 * The keeper's program: `node keeper-entry.js <parameters as JSON>`, started by keeper-start.ts.
 *
 * An entry point like the command line's, so this file alone in lib/lease reads the environment and arguments of its
 * process. It prints nothing (nobody reads it) and ends by itself: 0 when there was nothing left to keep, 1 when the
 * repository could not be opened. SIGTERM ends it after the step it is in, so that it leaves no lock behind. All modules are loaded before its
 * first look: the package may be replaced while a turn lasts.
 */
import * as v from 'valibot';
import { serve } from '../agents/serve.js';
import { processFaultActions } from '../git/fault-actions.js';
import { plannedFaults } from '../git/fault.js';
import { openStorage } from '../git/storage.js';
import { systemHost } from '../host.js';
import { keep } from './keeper.js';

const PARAMETERS = v.strictObject({
  dir: v.string(),
  token: v.strictObject({
    lease: v.string(),
    ref: v.string(),
    runtime: v.string(),
    epoch: v.number(),
    acquisition: v.string(),
  }),
  agent: v.strictObject({ pid: v.number(), start: v.string() }),
  endsIdle: v.boolean(),
});

async function main(parameters: string): Promise<void> {
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      stop.abort();
    });
  }
  // The terminal that closes under an agent is no reason to stop: its death has to be recorded.
  process.on('SIGHUP', () => undefined);
  const { dir, token, agent, endsIdle } = v.parse(v.pipe(v.string(), v.parseJson(), PARAMETERS), parameters);
  const host = systemHost(plannedFaults(process.env['DURABLE_FAULTS'], processFaultActions(process.pid)));
  const storage = await openStorage(dir, host);
  const service = endsIdle ? serve(storage, token) : null;
  await keep(storage, { dir, token, agent, endsIdle }, stop.signal);
  await service?.close();
  await storage.close();
}

await main(process.argv[2] ?? '');
// A step that was not done in time goes on in its hook.
process.exit(0);
