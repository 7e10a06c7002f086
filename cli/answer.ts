/** Answering a request, for `approve` and `reject`: by a person, from outside the turn. */
import { EXIT } from './exit.js';
import { refuseInside, userName } from './person.js';
import { withRepository } from './open.js';
import type { VerbContext } from './verb.js';

export interface Decision {
  readonly verb: 'approve' | 'reject';
  readonly decision: 'approved' | 'rejected';
  readonly feedback: string;
}

export async function answer(context: VerbContext, decided: Decision): Promise<number> {
  const id = context.arguments.required('id');
  return withRepository(context, async (repository) => {
    await refuseInside(repository, decided.verb);
    const { event } = await repository.resolveApproval(id, {
      decision: decided.decision,
      by: userName(context),
      feedback: decided.feedback,
    });
    const { approval, task, turn, decision, by, at } = event;
    context.output.result({ id: approval, task, turn, decision, by, at }, () => {
      context.output.line(`${decision} ${approval}`);
    });
    return EXIT.done;
  });
}
