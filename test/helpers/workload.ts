/**
 * The programs that get killed and whose disk loses its power: `node workload.js <scenario> <stage> <dir>`.
 *
 * Stage `prepare` makes what was there before; `run` is what is killed or recorded, and obeys `DURABLE_FAULTS`; `list` is
 * the same, and names each fault point it hit on standard error, with `begin <scenario>` in between; `part` is a piece that a run starts as a process of its
 * own. The run says on standard output, one write a line: `begin <scenario>` · `ack <what> …` the moment a promise was
 * made · `end <scenario>`. Judges hold the disk to the acknowledgements (`examine`); nothing else is agreed between them.
 */
import { spawnSync } from 'node:child_process';
import { writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { processFaultActions } from '../../lib/git/fault-actions.js';
import { plannedFaults } from '../../lib/git/fault.js';
import { systemHost } from '../../lib/host.js';
import { SCENARIOS, type Run } from './scenarios.js';

const [name = '', stage = '', dir = ''] = process.argv.slice(2);
const scenario = SCENARIOS[name];
if (scenario === undefined) throw new Error(`no scenario ${name}`);

const planned = systemHost(plannedFaults(process.env['DURABLE_FAULTS'], processFaultActions(process.pid)));
const spoken: Omit<Run, 'host'> = {
  dir,
  say: (line) => {
    writeSync(1, `${line}\n`);
  },
  part: (faults) => {
    const env = { ...process.env, DURABLE_FAULTS: faults === '' ? 'trace' : `trace,${faults}` };
    spawnSync(process.execPath, [fileURLToPath(import.meta.url), name, 'part', dir], {
      env,
      stdio: 'ignore',
    });
  },
};

switch (stage) {
  case 'prepare':
    await scenario.prepare({ dir, host: systemHost() });
    break;
  case 'part':
    await scenario.part?.({ dir, host: planned });
    break;
  case 'list': {
    const hits: string[] = [];
    const say = (line: string): void => {
      spoken.say(line);
      if (line.startsWith('begin ')) hits.push(line);
    };
    const host = systemHost({ hit: (point) => hits.push(`point ${point}`) });
    await scenario.run({ ...spoken, say, host });
    for (const hit of hits) process.stderr.write(`${hit}\n`);
    break;
  }
  case 'run':
    await scenario.run({ ...spoken, host: planned });
    break;
  default:
    throw new Error(`no stage ${stage}`);
}
