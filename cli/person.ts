/**
 * Decisions that only a person takes: who it is, and that it is not the agent.
 *
 * A process belongs to a turn by the marker in its environment or an ancestor's, or because a process of the turn is among its
 * ancestors; from there a decision is refused (4), whichever way the agent tries, and after the turn's end too.
 */
import { userInfo } from 'node:os';
import { DurableError } from '../lib/errors.js';
import type { Repository } from '../lib/repository.js';
import { insideTurn } from '../lib/turn/belonging.js';
import type { VerbContext } from './verb.js';

/** Throws 'inside-turn'. */
export async function refuseInside(repository: Repository, verb: string): Promise<void> {
  if (await insideTurn(repository.storage)) throw new DurableError('inside-turn', { verb });
}

/** The login name; a user id without one (a container) is named by its number. */
export function userName(context: VerbContext): string {
  try {
    return userInfo().username;
  } catch {
    return context.host.env['USER'] ?? `uid ${String(process.getuid?.() ?? '?')}`;
  }
}
