/**
 * A work tree on another file system than the git dir's staging, where each write has a ticket: a writer that is killed half
 * way, the recovery that ends its ticket, and a turn after it.
 */
import { mkdirSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { openRepository } from '../../lib/repository.js';
import { afterwards, settled } from './aftermath.js';
import { asideOf } from './fast-disk.js';
import { Judge } from './ledger-judge.js';
import type { After, Place, Run, Scenario } from './scenarios.js';
import { outOfPlace, placeTree, readTree, stepFrom, treeAt } from './tree-state.js';

const START = { objective: 'elsewhere', task: 'elsewhere', keeper: false } as const;

export const elsewhere: Scenario = {
  aside: asideOf,

  only: /^(?:writing|stage)\./,

  prepare: ({ dir }) => {
    const aside = asideOf(dir);
    mkdirSync(aside, { recursive: true });
    if (statSync(aside).dev === statSync(dir).dev)
      throw new Error(`${aside} is on the same file system as ${dir}: this needs two`);
    mkdirSync(join(dir, '.git/durable'), { recursive: true, mode: 0o700 });
    symlinkSync(aside, join(dir, '.git/durable/stage'));
    placeTree(dir, treeAt(0));
    return Promise.resolve();
  },

  // Killed by the run's plan before a temp becomes its target.
  part: async ({ dir, host }: Place) => {
    const repository = await openRepository(dir, host);
    const turn = await repository.startTurn(START);
    await turn.transaction(stepFrom(0));
  },

  run: async ({ dir, host, say, part }: Run) => {
    say('begin elsewhere');
    part('writing.publish:rename:before#2=kill');
    const repository = await openRepository(dir, host);
    await repository.recover({ action: 'roll-back' });
    say('ack tree 0');
    const turn = await repository.startTurn(START);
    await turn.transaction(stepFrom(0));
    say('ack tree 1');
    await turn.finish({ outcome: 'completed', summary: 'done' });
    await repository.close();
    say('end elsewhere');
  },

  examine: async ({ dir, env, host, said }: After) => {
    const judge = new Judge(dir, env);
    const findings = judge.fsck().map((line) => `fsck: ${line}`);
    const near = [treeAt(0), treeAt(1)];
    // A dead writer's temp stands beside its target until its ticket is broken.
    const placed = new Map([...readTree(dir)].filter(([path]) => !isTemp(path)));
    findings.push(...outOfPlace(placed, near).map((path) => `${path} is neither before nor after`));
    const repository = await openRepository(dir, host);
    const { interrupted } = await repository.recoveryReport();
    if (interrupted.length > 0) {
      await repository.recover({ action: 'roll-back' });
      findings.push(...settled(dir, [treeAt(0)], 'after roll-back'));
    } else findings.push(...settled(dir, said.includes('ack tree 1') ? [treeAt(1)] : near, 'at the end'));
    const litter = [...readTree(dir).keys()].filter(isTemp);
    findings.push(...litter.map((path) => `left behind: ${path}`));
    findings.push(...(await afterwards(repository, judge)));
    await repository.close();
    return findings;
  },
};

const isTemp = (path: string): boolean => path.includes('.git-durable-');
