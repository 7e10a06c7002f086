/** Calls and questions as programs without types make them: refused before anything is kept of them. */
import { DurableError } from '../errors.js';
import type { TurnState } from '../ledger/state.js';

/** Throws 'usage' for a call of no tool. */
export function refuseNameless({ tool }: { readonly tool: unknown }): void {
  if (typeof tool === 'string' && tool !== '') return;
  throw new DurableError('usage', { detail: "a call names its tool: give 'tool' a text that is not empty" });
}

/** Throws 'usage' for a question that leaves open what is decided. */
export function refuseVague(asked: {
  readonly tool: unknown;
  readonly args: unknown;
  readonly command?: unknown;
}): void {
  refuseNameless(asked);
  if (asked.args === undefined)
    throw new DurableError('usage', {
      detail: "a decision is on exact arguments: give 'args', null for none",
    });
  const { command } = asked;
  if (command === undefined) return;
  const isCommand =
    Array.isArray(command) &&
    command.length > 0 &&
    command.every((word) => typeof word === 'string') &&
    command[0] !== '';
  if (isCommand) return;
  throw new DurableError('usage', {
    detail:
      "the command that an approval starts is a list of words, its program first; leave 'command' out when it starts none",
  });
}

/** Throws 'not-found' for an id of which the turn has no call; null names none. */
export function refuseUnknownCall(turn: TurnState | null, invocation: string | null): void {
  if (invocation === null || turn?.invocations.some(({ id }) => id === invocation) === true) return;
  throw new DurableError('not-found', { what: 'call of this turn', id: invocation });
}
