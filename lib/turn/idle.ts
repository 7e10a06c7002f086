/**
 * The end of a turn that nobody ended: its agent lives and does nothing any more, since a "No" or an interruption that no hook
 * tells of was the last thing that happened. Called by the turn's keeper.
 *
 * A call that is under way is no idleness, however long it takes; one whose question to a person is unanswered has not begun.
 */
import type { Storage } from '../git/storage.js';
import { isToken, type LeaseToken } from '../lease/record.js';
import { Ledger } from '../ledger/ledger.js';
import type { TaskState } from '../ledger/state.js';
import { attach } from './attach.js';

/** Where the ledger of a task stands: something happened when it moves. */
export function headOf(storage: Storage, task: string): string | null {
  return storage.refs.read(Ledger.open(storage, task).ref);
}

/** Ends the turn as abandoned if no call of it is under way; returns whether it did. Errors: 'no-turn', 'lease-lost', the disk's. */
export async function abandonIdle(storage: Storage, token: LeaseToken, idleMs: number): Promise<boolean> {
  const { turn, context } = await attach(storage, (_, record) => isToken(record, token));
  if (isBusy(await context.ledger.state())) return false;
  const minutes = String(Math.round(idleMs / 60_000));
  await turn.finish({
    outcome: 'abandoned',
    summary: `nothing happened for ${minutes} minutes (durable.idle), and no end was told`,
  });
  return true;
}

function isBusy({ turn, approvals }: TaskState): boolean {
  const waiting = new Set(
    [...approvals.values()]
      .filter(({ state }) => state === 'pending')
      .map(({ requested }) => requested.event.invocation),
  );
  return turn?.invocations.some(({ id, state }) => state === 'started' && !waiting.has(id)) === true;
}
