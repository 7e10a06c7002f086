/** `checkpoint`: a byte-exact snapshot, in the turn this process belongs to or in the work tree's standing task. */
import { displayPath } from '../../lib/git/path.js';
import { EXIT } from '../exit.js';
import { withRepository } from '../open.js';
import { treePaths } from '../paths.js';
import type { VerbContext } from '../verb.js';
import { quantity } from '../../lib/quantity.js';

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  const message = context.arguments.text('message');
  return withRepository(context, async (repository) => {
    const { workTree } = repository.storage.layout;
    const paths = treePaths(workTree, context.dir, context.arguments.words('path'));
    const taken = await output.progress('taking a checkpoint', () =>
      repository.checkpoint({
        ...(message === null ? {} : { message }),
        ...(paths.length === 0 ? {} : { paths }),
      }),
    );
    const { checkpoint, tree, files, changed } = taken;
    const skipped = taken.skipped.map(({ path, why, digest }) => ({ path, why, digest }));
    output.result({ checkpoint, tree, files, changed, skipped }, () => {
      output.line(`checkpoint ${checkpoint}`);
      output.line(`${quantity(files, 'file')}, ${String(changed)} changed since the one before`);
      output.table(
        skipped.map(({ path, why }) => [{ text: 'left out', style: 'yellow' }, why, displayPath(path)]),
      );
      output.line(`next: git durable restore ${checkpoint}`);
    });
    return EXIT.done;
  });
}
