/** What a harness may record as used: what can be summed, and is said again as it was said. */
import { DurableError } from '../errors.js';
import type { DraftOf } from '../event.js';

export type Used = Omit<DraftOf<'usage.recorded'>, 'type' | 'turn' | 'key' | 'agent'>;

/** What a function that is run again says again: the time it takes is another, and so is the call where one is done anew. */
export const SAID_AGAIN = ['model', 'inputTokens', 'outputTokens', 'cacheTokens', 'costUsd'] as const;

export const USED = ['invocation', ...SAID_AGAIN, 'wallMs'] as const;

/** Sums of whole numbers, and of dollars in whole billionths, are exact up to here. */
const MOST = Number.MAX_SAFE_INTEGER;
const MOST_USD = MOST / 1e9;
const MODEL_CHARACTERS = 200;

const NUMBERS = {
  inputTokens: { isWhole: true, most: MOST },
  outputTokens: { isWhole: true, most: MOST },
  cacheTokens: { isWhole: true, most: MOST },
  costUsd: { isWhole: false, most: MOST_USD },
  wallMs: { isWhole: false, most: MOST },
} as const;

/** Events that are there already are read as they are: this is asked before one is made. Throws 'usage'. */
export function refuseUsage(used: Used): void {
  const names = Object.keys(NUMBERS) as (keyof typeof NUMBERS)[];
  for (const name of names) {
    const { isWhole, most } = NUMBERS[name];
    // Programs in JavaScript call this too.
    const value: unknown = used[name];
    if (value === null) continue;
    const isNumber = typeof value === 'number' && value >= 0 && value <= most;
    if (isNumber && (!isWhole || Number.isInteger(value))) continue;
    const kind = isWhole ? 'a whole number' : 'a number';
    throw refused(name, `${kind} from 0 to ${String(most)}, or null where nobody knows it`, value);
  }
  const { model, invocation }: { readonly model: unknown; readonly invocation: unknown } = used;
  if (invocation !== null && (typeof invocation !== 'string' || invocation === ''))
    throw refused('invocation', 'the id of a call of the turn, or null', invocation);
  if (model === null) return;
  const isName = typeof model === 'string' && model.isWellFormed() && model.length <= MODEL_CHARACTERS;
  if (!isName)
    throw refused('model', `a name of at most ${String(MODEL_CHARACTERS)} characters, or null`, model);
}

function refused(name: string, wanted: string, value: unknown): DurableError {
  const given =
    typeof value === 'string' ? `${value.length > 20 ? 'a long' : 'another'} text` : String(value);
  return new DurableError('usage', { detail: `'${name}' of a usage is ${wanted}; ${given} was given` });
}
