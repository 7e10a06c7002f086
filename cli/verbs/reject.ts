/** `reject`: as `approve`, with a text that the agent gets as it is. */
import { answer } from '../answer.js';
import { usage } from '../arguments.js';
import type { VerbContext } from '../verb.js';

export function run(context: VerbContext): Promise<number> {
  const feedback = context.arguments.text('feedback');
  if (feedback === null) throw usage("say why: git durable reject ID --feedback TEXT ('' for no reason)");
  return answer(context, { verb: 'reject', decision: 'rejected', feedback });
}
