/** `diff A [B]`: what differs between two checkpoints, or between one and the work tree. Writes nothing. */
import type { Difference } from '../../lib/files/diff.js';
import { displayPath } from '../../lib/git/path.js';
import { EXIT } from '../exit.js';
import { noteNotCompared } from '../left-alone.js';
import { noteDamage, withRepository } from '../open.js';
import type { Style } from '../output.js';
import type { VerbContext } from '../verb.js';

const STYLES: Readonly<Record<Difference['status'], Style>> = {
  added: 'green',
  deleted: 'red',
  modified: 'yellow',
  retyped: 'yellow',
};

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  const from = context.arguments.required('a');
  const to = context.arguments.text('b') ?? undefined;
  return withRepository(context, async (repository) => {
    await noteDamage(context, repository.storage, { states: false });
    const compared = await output.progress('comparing', () => repository.compare(from, to));
    const { differences: found, leftOut } = compared;
    const document = found.map(({ path, status, before, after }) => {
      return { path, status, before: idOf(before), after: idOf(after) };
    });
    output.result(document, () => {
      output.table(
        found.map((one) => [
          { text: one.status, style: STYLES[one.status] },
          displayPath(one.path),
          modeChange(one),
        ]),
      );
      if (found.length === 0)
        output.line(leftOut.length === 0 ? 'no difference' : 'no difference in what was compared');
    });
    noteNotCompared(output, leftOut);
    return EXIT.done;
  });
}

/** An object id; null where no file is; 'unknown' where a side has left the path out. */
function idOf(image: Difference['before']): string | null {
  return image === null || image === 'unknown' ? image : image.oid;
}

function modeChange({ before, after }: Difference): string {
  if (before === null || after === null || before === 'unknown' || after === 'unknown') return '';
  return before.mode === after.mode ? '' : `${before.mode} to ${after.mode}`;
}
