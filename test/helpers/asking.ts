/** Turns of the real program in which a script asks for approval, and who answers from outside. */
import type { ExecutionContext } from 'ava';
import { document, type Line } from './events.js';
import { until } from './processes.js';
import { PROGRAM, startDurable, type Running } from './program.js';
import type { Scratch } from './scratch.js';

interface Approvals {
  readonly pending: readonly Line[];
  readonly resolved: readonly Line[];
}

export const approvals = (place: Scratch): Approvals => document<Approvals>(place, ['approvals']);
export const ARGS = '{"path": "a b", "n": 1.0}';

/** A turn in which a script runs; `durable` in it is this build's program. */
export function script(t: ExecutionContext, place: Scratch, text: string): Running {
  const shell = `durable() { "$0" "$1" "$@"; }\n`.replace(
    '"$1" "$@"',
    `'${PROGRAM.replaceAll("'", `'\\''`)}' "$@"`,
  );
  return startDurable(t, place, ['run', '--', 'sh', '-c', `${shell}${text}`, process.execPath]);
}

export async function pendingId(place: Scratch): Promise<string> {
  let id: unknown;
  await until('a request is pending', () => {
    id = approvals(place).pending[0]?.['id'];
    return id !== undefined;
  });
  return String(id);
}

export const ASK = `durable ask --tool deploy --args '${ARGS}' --wait 60`;
