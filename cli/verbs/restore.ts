/**
 * `restore CHECKPOINT [PATH…]`: the work tree, or some paths, as they were. Itself a recorded event, undone by restoring the
 * checkpoint it prints. When there is nothing to do it says so and writes nothing.
 */
import type { Restored } from '../../lib/files/restore.js';
import { displayPath } from '../../lib/git/path.js';
import { EXIT } from '../exit.js';
import { withRepository } from '../open.js';
import type { Output } from '../output.js';
import { treePaths } from '../paths.js';
import type { VerbContext } from '../verb.js';

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  const checkpoint = context.arguments.required('checkpoint');
  const dryRun = context.arguments.flag('dry-run');
  return withRepository(context, async (repository) => {
    const { workTree } = repository.storage.layout;
    const paths = treePaths(workTree, context.dir, context.arguments.words('path'));
    const isWhole = paths.length === 0 || paths.includes('');
    const done = await output.progress('restoring', () =>
      repository.restore({ checkpoint, dryRun, ...(isWhole ? {} : { paths }) }),
    );
    const { restored, removed } = done;
    const skipped = done.skipped.map(({ path, why }) => ({ path, why }));
    output.result({ restored, removed, skipped, checkpoint: done.checkpoint }, () => {
      describe(output, done, dryRun);
    });
    return EXIT.done;
  });
}

function describe(
  output: Output,
  { restored, removed, skipped, checkpoint }: Restored,
  dryRun: boolean,
): void {
  const would = dryRun ? 'would be ' : '';
  output.table([
    ...restored.map((path) => [`${would}restored`, displayPath(path)]),
    ...removed.map((path) => [`${would}removed`, displayPath(path)]),
    ...skipped.map(({ path, why }) => [`left alone (${why})`, displayPath(path)]),
  ]);
  if (checkpoint !== null) output.line(`undo: git durable restore ${checkpoint}`);
  if (restored.length + removed.length > 0) return;
  if (skipped.length === 0) output.line('nothing to do: these paths are as the checkpoint has them');
  else output.line('nothing was changed: what differs was left alone');
}
