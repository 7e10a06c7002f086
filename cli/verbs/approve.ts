/** `approve`: one conditional append; of two answers one wins and the other is told who did. */
import { answer } from '../answer.js';
import type { VerbContext } from '../verb.js';

export function run(context: VerbContext): Promise<number> {
  return answer(context, { verb: 'approve', decision: 'approved', feedback: '' });
}
