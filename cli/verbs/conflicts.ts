/** `conflicts`: external changes that met a write, oldest first; with an id, the three-way comparison. Reads only. */
import type { Comparison, ListedConflict, Side } from '../../lib/decisions/conflict.js';
import { displayPath } from '../../lib/git/path.js';
import type { Repository } from '../../lib/repository.js';
import { EXIT } from '../exit.js';
import { noteDamage, withRepository } from '../open.js';
import type { Cell, Output } from '../output.js';
import type { VerbContext } from '../verb.js';

export async function run(context: VerbContext): Promise<number> {
  const id = context.arguments.text('id');
  return withRepository(context, async (repository) => {
    await noteDamage(context, repository.storage);
    return id === null ? list(context, repository) : compare(context, repository, id);
  });
}

async function list({ output }: VerbContext, repository: Repository): Promise<number> {
  const all = await repository.conflicts();
  const open = all.filter(({ isOpen }) => isOpen);
  const resolved = all.filter(({ isOpen }) => !isOpen);
  output.result({ open: open.map(documentOf), resolved: resolved.map(documentOf) }, () => {
    output.table([...open, ...resolved.slice(-MOST_ROWS)].map(rowOf));
    const hidden = resolved.length - MOST_ROWS;
    if (hidden > 0) output.line(`${String(hidden)} earlier ones are not shown: git durable conflicts --json`);
    const [first] = open;
    output.line(
      first === undefined ? 'no conflict is open' : `next: git durable conflicts ${first.conflict.id}`,
    );
  });
  return EXIT.done;
}

/** Of what was settled; what is open must not be lost among it. */
const MOST_ROWS = 20;

/** The field names are a contract. */
function documentOf({ task, conflict, isOpen }: ListedConflict) {
  const { turn, path, why, at } = conflict.detected.event;
  const answer = conflict.resolved?.event;
  return {
    id: conflict.id,
    task,
    turn,
    path,
    why,
    detectedAt: at,
    state: isOpen ? 'open' : conflict.state,
    by: answer?.by ?? null,
    resolvedAt: answer?.at ?? null,
  };
}

const rowOf = (listed: ListedConflict): (Cell | string)[] => [
  listed.conflict.id,
  listed.isOpen ? { text: 'open', style: 'yellow' } : { text: listed.conflict.state, style: 'dim' },
  displayPath(listed.conflict.detected.event.path),
  listed.conflict.detected.event.why,
];

async function compare({ output }: VerbContext, repository: Repository, id: string): Promise<number> {
  const compared = await repository.compareConflict(id);
  const { base, theirs, mine, now, diff } = compared;
  output.result({ ...documentOf(compared), base, theirs, mine, now, diff }, () => {
    tell(output, compared);
  });
  return EXIT.done;
}

function tell(output: Output, compared: Comparison): void {
  const { conflict, base, theirs, mine, now, diff } = compared;
  output.table([
    ['conflict', conflict.id],
    ['path', displayPath(conflict.detected.event.path)],
    ['base', described(base), 'what the agent had read'],
    ['theirs', described(theirs), 'what was found instead'],
    ['mine', described(mine), 'what was to come'],
    ['now', described(now), 'what is there'],
  ]);
  for (const [side, text] of [
    ['theirs', diff.theirs],
    ['mine', diff.mine],
  ] as const) {
    output.line();
    output.line(output.paint('bold', `--- base\n+++ ${side}`));
    output.raw(text ?? '(no text to compare)\n');
  }
  if (!compared.isOpen) return;
  output.line();
  output.table([
    ['next:', `git durable resolve ${conflict.id} --use-latest`, 'what is there now stays'],
    ['', `git durable resolve ${conflict.id} --keep-mine`, 'what was to come is put there'],
  ]);
}

const KINDS: Readonly<Record<string, string>> = {
  directory: 'a folder',
  special: 'no regular file',
  unknown: 'not known',
  elsewhere: 'of another work tree',
};

function described({ image }: Side): string {
  if (image === null) return 'no file';
  return typeof image === 'string' ? (KINDS[image] ?? image) : `${image.mode} ${image.oid.slice(0, 12)}`;
}
