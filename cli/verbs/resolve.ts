/** `resolve`: one of the answers to a conflict, by a person; of two answers one wins and the other is told who did. */
import { displayPath } from '../../lib/git/path.js';
import type { ResolvedConflict } from '../../lib/turn/resolve.js';
import { usage } from '../arguments.js';
import { EXIT } from '../exit.js';
import { withRepository } from '../open.js';
import type { Output } from '../output.js';
import { refuseInside, userName } from '../person.js';
import type { VerbContext } from '../verb.js';

export async function run(context: VerbContext): Promise<number> {
  const id = context.arguments.required('id');
  const given = (['use-latest', 'keep-mine'] as const).filter((choice) => context.arguments.flag(choice));
  const [choice] = given;
  if (choice === undefined || given.length > 1)
    throw usage(`choose one: git durable resolve ${id} --use-latest, or --keep-mine`);
  return withRepository(context, async (repository) => {
    await refuseInside(repository, 'resolve');
    const done = await repository.resolveConflict(id, { choice, by: userName(context) });
    const { task, conflict, path, restored, removed, checkpoint } = done;
    context.output.result({ id: conflict, task, path, choice, restored, removed, checkpoint }, () => {
      describe(context.output, done);
    });
    return EXIT.done;
  });
}

function describe(
  output: Output,
  { conflict, path, choice, restored, removed, checkpoint }: ResolvedConflict,
): void {
  output.table([
    ...restored.map((one) => ['restored', displayPath(one)]),
    ...removed.map((one) => ['removed', displayPath(one)]),
  ]);
  output.line(`conflict ${conflict} at '${displayPath(path)}' is settled (${choice})`);
  if (checkpoint !== null) output.line(`undo: git durable restore ${checkpoint}`);
}
