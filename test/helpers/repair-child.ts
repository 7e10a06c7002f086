/**
 * A program that changes a turn's files, or repairs a turn, and gets killed at a fault point:
 * `node repair-child.js <stage> <dir> <file>`, obeying DURABLE_FAULTS; `POINTS=1` names each point hit on standard error.
 *
 * Stage `change` opens a turn in `dir` and runs the changes that `file` holds as JSON (bytes in base64), `sealed` does the
 * same once the git dir may not be written any more, `hold` opens a turn and waits for ever; `roll-back`, `roll-forward` and
 * `keep` repair. Says `begin` when the stage proper starts, `done` when it is over, `error` and what it was when it failed.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeSync } from 'node:fs';
import * as v from 'valibot';
import { isDurableError } from '../../lib/errors.js';
import { runTransaction, type Change } from '../../lib/files/transaction.js';
import { processFaultActions } from '../../lib/git/fault-actions.js';
import { plannedFaults, type Faults } from '../../lib/git/fault.js';
import { openStorage } from '../../lib/git/storage.js';
import { systemHost } from '../../lib/host.js';
import type { RepairAction } from '../../lib/recovery/document.js';
import { repair } from '../../lib/recovery/repair.js';
import { openTurn } from './turn-place.js';

const CHANGES = v.array(
  v.variant('kind', [
    v.object({ kind: v.literal('write'), path: v.string(), bytes: v.string() }),
    v.object({ kind: v.literal('delete'), path: v.string() }),
    v.object({ kind: v.literal('rename'), from: v.string(), to: v.string() }),
    v.object({ kind: v.literal('chmod'), path: v.string(), executable: v.boolean() }),
    v.object({ kind: v.literal('symlink'), path: v.string(), target: v.string() }),
  ]),
);

const [stage = '', dir = '', file = ''] = process.argv.slice(2);
const say = (line: string): void => {
  writeSync(1, `${line}\n`);
};

// Points count from `begin`: what opens the turn is not what is tested here.
let armed: Faults | null = null;
const faults: Faults = {
  hit: (point) => {
    if (armed !== null && process.env['POINTS'] === '1') writeSync(2, `point ${point}\n`);
    armed?.hit(point);
  },
};
const arm = (): void => {
  armed = plannedFaults(process.env['DURABLE_FAULTS'], processFaultActions(process.pid));
  say('begin');
};

const storage = await openStorage(dir, systemHost(faults));

async function change(): Promise<void> {
  const turn = await openTurn(storage);
  const changes = v
    .parse(CHANGES, JSON.parse(readFileSync(file, 'utf8')))
    .map((one): Change => (one.kind === 'write' ? { ...one, bytes: Buffer.from(one.bytes, 'base64') } : one));
  if (stage === 'sealed') execFileSync('chmod', ['-R', 'a-w', storage.layout.gitDir]);
  arm();
  await runTransaction(turn, changes);
  say('done');
}

async function hold(): Promise<void> {
  await openTurn(storage);
  say('begin');
  await new Promise((resolve) => {
    setInterval(resolve, 2 ** 30);
  });
}

async function mend(action: RepairAction): Promise<void> {
  arm();
  say(`done ${JSON.stringify(await repair(storage, { action }))}`);
}

try {
  if (stage === 'change' || stage === 'sealed') await change();
  else if (stage === 'hold') await hold();
  else if (stage === 'keep' || stage === 'roll-back' || stage === 'roll-forward') await mend(stage);
} catch (error) {
  if (!isDurableError(error)) throw error;
  const cause = isDurableError(error.cause) ? error.cause.code : null;
  say(`error ${JSON.stringify({ code: error.code, fields: error.fields, cause })}`);
  process.exitCode = 1;
}
if (stage !== 'sealed') await storage.close();
