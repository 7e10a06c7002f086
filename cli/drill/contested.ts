/**
 * The judge of the conflict that is open at the kill: it is there with both sides, whatever process asks, and its path is as
 * somebody else left it. Believes the record and the disk, not the product.
 */
import type { Answers } from './answers.js';
import type { Complaints, Facts } from './judge.js';
import { CONTESTED } from './scratch.js';

export function conflictIntact({ acts }: Pick<Facts, 'acts'>, answers: Answers): Complaints {
  const met = acts.find((act) => act.kind === 'conflict');
  const { open } = answers.conflicts.document;
  const complaints: string[] = [];
  if (answers.conflicts.code !== 0) complaints.push(`conflicts ended with ${String(answers.conflicts.code)}`);
  const least = met?.reached.has('after') === true ? 1 : 0;
  const most = met === undefined ? 0 : 1;
  if (open.length < least || open.length > most)
    complaints.push(
      `${String(open.length)} conflicts are open, and not ${least === most ? String(most) : '0 or 1'}`,
    );
  if (answers.status.document.conflicts !== open.length) complaints.push('status counts other conflicts');
  for (const { id, path } of open) {
    if (path !== CONTESTED.path) complaints.push(`a conflict at '${path}' is open`);
    const known = met?.facts.conflict;
    if (known !== undefined && id !== known) complaints.push(`conflict ${id} is open, not ${known}`);
  }
  return [...complaints, ...answers.compared.flatMap(({ document }) => wrongSides(document))];
}

function wrongSides(sides: Answers['compared'][number]['document']): string[] {
  const right = {
    base: CONTESTED.base,
    theirs: CONTESTED.theirs,
    mine: CONTESTED.mine,
    now: CONTESTED.theirs,
  };
  return (['base', 'theirs', 'mine', 'now'] as const)
    .filter((side) => sides[side].text !== right[side])
    .map((side) => `of the conflict '${side}' is ${JSON.stringify(sides[side].text)}`);
}
