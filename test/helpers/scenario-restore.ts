/** Three checkpoints restored one after the other, by hand; cut in between, it is rolled forward, and asked for again. */
import { openRepository, type Repository } from '../../lib/repository.js';
import { afterwards, settled } from './aftermath.js';
import { Judge } from './ledger-judge.js';
import type { After, Run, Scenario } from './scenarios.js';
import { outOfPlace, placeTree, readTree, treeAt } from './tree-state.js';

/** The states restored, after the one the tree is in at first. */
const ORDER = [3, 0, 2, 1] as const;

export const restore: Scenario = {
  prepare: async ({ dir, host }) => {
    const repository = await openRepository(dir, host);
    for (const state of [0, 1, 2, 3]) {
      placeTree(dir, treeAt(state));
      await repository.checkpoint({ message: `state ${String(state)}` });
    }
    await repository.close();
  },

  run: async ({ dir, host, say }: Run) => {
    const repository = await openRepository(dir, host);
    const taken = await checkpoints(repository);
    say('begin restore');
    for (const state of ORDER.slice(1)) {
      await repository.restore({ checkpoint: taken.get(`state ${String(state)}`) ?? '' });
      say(`ack tree ${String(state)}`);
    }
    await repository.close();
    say('end restore');
  },

  examine: async ({ dir, env, host, said }: After) => {
    const judge = new Judge(dir, env);
    const findings = judge.fsck().map((line) => `fsck: ${line}`);
    const done = said.filter((line) => line.startsWith('ack tree')).length;
    const at = ORDER[done] ?? 0;
    const next = ORDER[Math.min(done + 1, ORDER.length - 1)] ?? 0;
    findings.push(
      ...outOfPlace(readTree(dir), [treeAt(at), treeAt(next)]).map((path) => `${path} is of neither state`),
    );
    const repository = await openRepository(dir, host);
    const taken = await checkpoints(repository);
    // A restore that was cut short comes before any other work, and completing it is one command.
    if ((await repository.recoveryReport()).interrupted.length > 0) {
      await repository.recover({ action: 'roll-forward' });
      findings.push(...settled(dir, [treeAt(next)], `after rolling forward to ${String(next)}`));
    }
    for (const state of [next, at]) {
      await repository.restore({ checkpoint: taken.get(`state ${String(state)}`) ?? '' });
      findings.push(...settled(dir, [treeAt(state)], `after the restore of ${String(state)}`));
    }
    findings.push(...(await afterwards(repository, judge)));
    await repository.close();
    return findings;
  },
};

/** Checkpoint ids by their message. */
async function checkpoints(repository: Repository): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const task of repository.tasks())
    for await (const { event } of repository.events(task))
      if (event.type === 'checkpoint.taken') found.set(event.message, event.checkpoint);
  return found;
}
