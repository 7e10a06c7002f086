/**
 * Answering a request, for `approve` and `reject`: by a person, from outside the turn.
 *
 * A process belongs to a turn by the marker in its environment, or because a process of the turn is among its ancestors;
 * from there an answer is refused (4), whichever way the agent tries.
 */
import { userInfo } from 'node:os';
import { DurableError } from '../lib/errors.js';
import { insideTurn } from '../lib/turn/belonging.js';
import { EXIT } from './exit.js';
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
    if (await insideTurn(repository.storage)) throw new DurableError('inside-turn', { verb: decided.verb });
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

/** The login name; a user id without one (a container) is named by its number. */
function userName(context: VerbContext): string {
  try {
    return userInfo().username;
  } catch {
    return context.host.env['USER'] ?? `uid ${String(process.getuid?.() ?? '?')}`;
  }
}
