/** Checkpoints by hand of a tree that a person changes in between; each must come back byte for byte. */
import { forgetSnapshots } from '../../lib/git/snapshot.js';
import { openRepository } from '../../lib/repository.js';
import { afterwards } from './aftermath.js';
import { asUser } from './as-user.js';
import { Judge } from './ledger-judge.js';
import type { After, Run, Scenario } from './scenarios.js';
import { placeTree, readTree, treeAt, treeDigest, type Leaf, type Tree } from './tree-state.js';

export const checkpoint: Scenario = {
  prepare: ({ dir }) => {
    placeTree(dir, manyAt(0));
    return Promise.resolve();
  },

  run: async ({ dir, host, say }: Run) => {
    const repository = await openRepository(dir, host);
    say('begin checkpoint');
    for (const state of [0, 1, 2]) {
      asUser(() => {
        placeTree(dir, manyAt(state));
      });
      // As where contents that the private index names were pruned.
      if (state === 2) forgetSnapshots(repository.storage);
      const { checkpoint: taken } = await repository.checkpoint({ message: `state ${String(state)}` });
      say(`ack checkpoint ${taken} ${treeDigest(manyAt(state))}`);
    }
    await repository.close();
    say('end checkpoint');
  },

  examine: async ({ dir, env, host, said }: After) => {
    const judge = new Judge(dir, env);
    const findings = judge.fsck().map((line) => `fsck: ${line}`);
    const acks = said.filter((line) => line.startsWith('ack checkpoint')).map((line) => line.split(' '));
    const repository = await openRepository(dir, host);
    const next = await repository.checkpoint({ message: 'next' });
    if (judge.checkpoint(next.checkpoint) !== treeDigest(readTree(dir)))
      findings.push('the next checkpoint is not what is on disk');
    const taken = judge
      .tasks()
      .flatMap((task) => judge.ledger(task).events.map(({ fields }) => fields['checkpoint']));
    for (const [, , id = '', digest = ''] of acks) {
      if (judge.checkpoint(id) !== digest) findings.push(`checkpoint ${id} is not whole`);
      if (!judge.isKept(id)) findings.push(`checkpoint ${id} is not reachable`);
      if (!taken.includes(id)) findings.push(`checkpoint ${id} is in no ledger`);
      await repository.restore({ checkpoint: id });
      if (treeDigest(readTree(dir)) !== digest) findings.push(`checkpoint ${id} did not come back`);
    }
    findings.push(...(await afterwards(repository, judge)));
    await repository.close();
    return findings;
  },
};

/** Enough files that an index of them is longer than a few sectors. */
function manyAt(state: number): Tree {
  const more = Array.from({ length: 40 }, (_, number): [string, Leaf] => [
    `many/file ${String(number)}`,
    { content: `file ${String(number)}\n`, mode: '100644' },
  ]);
  return new Map([...treeAt(state), ...more]);
}
