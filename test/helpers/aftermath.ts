/** What every judgement ends with: ledgers whole by git and SHA-256, and the next turn runs without any help. */
import type { Repository } from '../../lib/repository.js';
import type { Judge } from './ledger-judge.js';
import { readTree, treeDigest, type Tree } from './tree-state.js';

/** The work tree must be exactly one of the states. */
export function settled(dir: string, states: readonly Tree[], when: string): string[] {
  const now = readTree(dir);
  if (states.some((state) => treeDigest(state) === treeDigest(now))) return [];
  return [
    `${when} the work tree is ${JSON.stringify([...now].map(([path, leaf]) => [path, leaf.content.slice(0, 40)]))}`,
  ];
}

export async function afterwards(repository: Repository, judge: Judge): Promise<string[]> {
  const findings: string[] = [];
  const turn = await repository.startTurn({ objective: 'go on', task: 'next', keeper: false });
  await turn.transaction([{ kind: 'write', path: 'next', bytes: Buffer.from('next\n') }]);
  await turn.finish({ outcome: 'completed', summary: 'went on' });
  for (const task of judge.tasks()) {
    const { events, faults } = judge.ledger(task);
    findings.push(...faults);
    const keys = events.flatMap(({ type, key, fields }) =>
      key === null ? [] : [JSON.stringify([type, fields['turn'], key])],
    );
    if (new Set(keys).size !== keys.length) findings.push(`an event of ${task} is there twice`);
    const { ok, findings: named } = await repository.verify(task);
    if (!ok) findings.push(`verify ${task}: ${JSON.stringify(named)}`);
  }
  findings.push(...judge.fsck().map((line) => `fsck at the end: ${line}`));
  return findings;
}
