/** A turn with transactions: each changes six paths at once, and the turn is finished; interrupted, it is repaired. */
import { openRepository } from '../../lib/repository.js';
import { afterwards, settled } from './aftermath.js';
import { Judge } from './ledger-judge.js';
import type { After, Run, Scenario } from './scenarios.js';
import { outOfPlace, placeTree, readTree, stepFrom, treeAt } from './tree-state.js';

export const transaction: Scenario = {
  prepare: ({ dir }) => {
    placeTree(dir, treeAt(0));
    return Promise.resolve();
  },

  run: async ({ dir, host, say }: Run) => {
    const repository = await openRepository(dir, host);
    say('begin transaction');
    const turn = await repository.startTurn({
      objective: 'move on',
      key: 'turn',
      task: 'moved',
      keeper: false,
    });
    say('ack started');
    for (const state of [0, 1]) {
      await turn.transaction(stepFrom(state));
      say(`ack tree ${String(state + 1)}`);
    }
    await turn.finish({ outcome: 'completed', summary: 'moved on' });
    say('ack finished');
    await repository.close();
    say('end transaction');
  },

  examine: async ({ dir, env, host, said }: After) => {
    const judge = new Judge(dir, env);
    const findings = judge.fsck().map((line) => `fsck: ${line}`);
    const reached = said.filter((line) => line.startsWith('ack tree')).length;
    const near = [treeAt(reached), treeAt(Math.min(reached + 1, 2))];
    findings.push(
      ...outOfPlace(readTree(dir), near).map(
        (path) => `${path} is neither before nor after step ${String(reached)}`,
      ),
    );
    const repository = await openRepository(dir, host);
    const { interrupted } = await repository.recoveryReport();
    if (said.includes('ack started') && !said.includes('ack finished') && interrupted.length === 0) {
      const events = judge.ledger('moved').events;
      if (!events.some(({ type }) => type === 'turn.finished'))
        findings.push('the interrupted turn is not known');
    }
    if (said.includes('ack finished') && interrupted.length > 0)
      findings.push('the finished turn is not finished');
    const aim = said.length % 2 === 0 ? 'roll-back' : 'roll-forward';
    if (interrupted.length > 0) {
      await repository.recover({ action: aim });
      findings.push(...settled(dir, aim === 'roll-back' ? [treeAt(0)] : near, `after ${aim}`));
    } else findings.push(...settled(dir, [...near, treeAt(0)], 'with nothing interrupted'));
    findings.push(...(await afterwards(repository, judge)));
    await repository.close();
    return findings;
  },
};
