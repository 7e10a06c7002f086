/** A turn with its keeper, which sees its death: killed anywhere, it is known, and nothing of the turn is left running. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { healFences } from '../../lib/fence/heal.js';
import { installHooks } from '../../lib/fence/hooks.js';
import { openRepository } from '../../lib/repository.js';
import { afterwards } from './aftermath.js';
import { Judge } from './ledger-judge.js';
import { processesNaming, until } from './processes.js';
import type { After, Run, Scenario } from './scenarios.js';

export const turn: Scenario = {
  prepare: async ({ dir, host }) => {
    const { storage } = await openRepository(dir, host);
    await installHooks(storage, null);
    await storage.close();
  },

  only: /^(?:keeper|maintenance|fence)\./,

  run: async ({ dir, host, say }: Run) => {
    const repository = await openRepository(dir, host);
    say('begin turn');
    const held = await repository.startTurn({ objective: 'kept', task: 'kept', key: 'turn' });
    say('ack started');
    await held.transaction([{ kind: 'write', path: 'a', bytes: Buffer.from('a\n') }]);
    await held.finish({ outcome: 'completed', summary: 'done' });
    say('ack finished');
    await repository.close();
    say('end turn');
  },

  examine: async ({ dir, env, host, said }: After) => {
    const judge = new Judge(dir, env);
    await until('no keeper of this folder runs', () => keepersOf(dir).length === 0);
    const findings = judge.fsck().map((line) => `fsck: ${line}`);
    const repository = await openRepository(dir, host);
    const { interrupted } = await repository.recoveryReport();
    const isFinished = judge.ledger('kept').events.some(({ type }) => type === 'turn.finished');
    if (said.includes('ack finished') && !isFinished) findings.push('the end of the turn is lost');
    if (said.includes('ack started') && !isFinished && interrupted.length !== 1)
      findings.push('the interrupted turn is not known');
    for (const { detectedBy } of interrupted)
      if (said.includes('ack started') && detectedBy !== 'keeper')
        findings.push(`the death was found by ${detectedBy}, not by the keeper`);
    if (interrupted.length > 0) await repository.recover({ action: 'keep' });
    findings.push(...(await afterwards(repository, judge)));
    healFences(repository.storage);
    for (const left of [
      'index.lock',
      'index~pid.lock',
      'gc.pid',
      'durable/fence',
      'hooks/reference-transaction',
    ])
      if (existsSync(join(dir, '.git', left))) findings.push(`${left} is left behind`);
    await repository.close();
    return findings;
  },
};

const keepersOf = (dir: string): string[] =>
  processesNaming(dir).filter((line) => line.includes('keeper-entry'));
