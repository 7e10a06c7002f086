/**
 * The programs that get killed and whose disk loses its power: `node workload.js <scenario> <prepare|run> <dir>`.
 *
 * `prepare` makes what was there before; `run` is what is recorded. It says on standard output, one write a line:
 * `begin <scenario>` · `ack <what> …` the moment a promise was made · `end <scenario>`. Judges hold the disk to the
 * acknowledgements (after-crash.ts); nothing else is agreed between them. `DURABLE_FAULTS` is obeyed in `run` only.
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
else {
  const faults = plannedFaults(process.env['DURABLE_FAULTS'], processFaultActions(process.pid));
  await scenario.run({
    dir,
    host: systemHost(faults),
    say: (line) => {
      say(line);
    },
  });
}
