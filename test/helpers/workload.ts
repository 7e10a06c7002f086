/**
 * The programs that get killed and whose disk loses its power: `node workload.js <scenario> <stage> <dir>`.
 *
 * Stage `prepare` makes what was there before; `run` is what is killed or recorded, and obeys `DURABLE_FAULTS`; `list` is
 * the same, and names each fault point it hit on standard error. The run says on standard output, one write a line:
 * `begin <scenario>` · `ack <what> …` the moment a promise was made · `end <scenario>`. Judges hold the disk to the
 * acknowledgements (`examine`); nothing else is agreed between them.
 */
import { writeSync } from 'node:fs';
import { processFaultActions } from '../../lib/git/fault-actions.js';
import { plannedFaults } from '../../lib/git/fault.js';
import { systemHost } from '../../lib/host.js';
import { SCENARIOS } from './scenarios.js';

const [name = '', stage = '', dir = ''] = process.argv.slice(2);
const scenario = SCENARIOS[name];
if (scenario === undefined) throw new Error(`no scenario ${name}`);

const say = (line: string): void => {
  writeSync(1, `${line}\n`);
};

if (stage === 'prepare') await scenario.prepare({ dir, host: systemHost(), say });
else if (stage === 'list') {
  const hits: string[] = [];
  await scenario.run({ dir, host: systemHost({ hit: (point) => hits.push(point) }), say });
  for (const point of hits) process.stderr.write(`point ${point}\n`);
} else {
  const faults = plannedFaults(process.env['DURABLE_FAULTS'], processFaultActions(process.pid));
  await scenario.run({ dir, host: systemHost(faults), say });
}
