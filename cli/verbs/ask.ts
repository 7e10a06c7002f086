/** Stands in until the library below it has landed. */
import { DurableError } from '../../lib/errors.js';
import type { VerbContext } from '../verb.js';

export function run(context: VerbContext): Promise<number> {
  const detail = `'ask' is not built yet in ${context.version}`;
  return Promise.reject(new DurableError('usage', { detail }));
}
