/** Two turns that died in their second transaction, in between renames: one rolled back, one rolled forward. */
import { openRepository } from '../../lib/repository.js';
import { afterwards, settled } from './aftermath.js';
import { Judge } from './ledger-judge.js';
import type { After, Run, Scenario } from './scenarios.js';
import { outOfPlace, placeTree, readTree, stepFrom, treeAt } from './tree-state.js';

/** In the midst of the second transaction: the first one publishes five files. */
const DEATH = 'stage.publish:rename:before#8=kill';

export const recovery: Scenario = {
  prepare: ({ dir }) => {
    placeTree(dir, treeAt(0));
    return Promise.resolve();
  },

  // Killed by the run's plan in its second transaction.
  part: async ({ dir, host }) => {
    const repository = await openRepository(dir, host);
    const turn = await repository.startTurn({ objective: 'to be killed', task: 'killed', keeper: false });
    for (const state of [0, 1]) await turn.transaction(stepFrom(state));
  },

  run: async ({ dir, host, say, part }: Run) => {
    const repository = await openRepository(dir, host);
    part(DEATH);
    say('begin recovery');
    await repository.recover({ action: 'roll-back' });
    say('ack recovered 0');
    part(DEATH);
    say('ack died');
    await repository.recover({ action: 'roll-forward' });
    say('ack recovered 2');
    await repository.close();
    say('end recovery');
  },

  examine: async ({ dir, env, host, said }: After) => {
    const judge = new Judge(dir, env);
    const findings = judge.fsck().map((line) => `fsck: ${line}`);
    findings.push(
      ...outOfPlace(readTree(dir), [treeAt(0), treeAt(1), treeAt(2)]).map((path) => `${path} is of no state`),
    );
    const back = !said.includes('ack recovered 0');
    const ended = said.includes('ack recovered 2');
    const repository = await openRepository(dir, host);
    const { interrupted } = await repository.recoveryReport();
    if (ended && interrupted.length > 0) findings.push('the recovered turn is interrupted again');
    if (interrupted.length > 0) {
      const repaired = await repository.recover({ action: back ? 'roll-back' : 'roll-forward' });
      findings.push(
        ...settled(dir, back ? [treeAt(0)] : [treeAt(0), treeAt(1), treeAt(2)], 'after the repair'),
      );
      if (repaired.checkpoint !== null && judge.checkpoint(repaired.checkpoint) === undefined)
        findings.push('the checkpoint before the repair is not whole');
    } else {
      const recovered = judge.ledger('killed').events.filter(({ type }) => type === 'turn.recovered').length;
      if (recovered < 2 && ended) findings.push('the second recovery is lost');
      findings.push(...settled(dir, [treeAt(recovered === 2 ? 2 : 0)], 'with nothing interrupted'));
    }
    findings.push(...(await afterwards(repository, judge)));
    await repository.close();
    return findings;
  },
};
