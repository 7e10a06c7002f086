/**
 * The line of a conversation: which events it still stands on after rewinds.
 *
 * A rewind does not remove events, it moves the conversation to where it was after an earlier event (`toSeq`); what comes
 * next continues from there. So the events form a tree, and the line is the way from the newest event to the first:
 * at a rewind it goes on from its target, else from the event before. The rewind of a rewind is a rewind to an event that the
 * first one left: its line is the one of then, whole. Pure.
 */
import type { Recorded } from '../event.js';
import type { InvocationFold, TaskState, TurnState } from './state.js';

type Rewinds = readonly Pick<Recorded<'conversation.rewound'>, 'event'>[];

/** Whether the event with this number is on the line. A rewind itself is on none: it only says where the line goes. */
export type OnLine = (seq: number) => boolean;

/** `rewinds`: all up to `head`, oldest first (of a turn: those since its start, which is enough for its own events). */
export function lineAt(rewinds: Rewinds, head: number): OnLine {
  const stretches: { readonly after: number; readonly to: number }[] = [];
  let to = head;
  for (const { event } of rewinds.toReversed()) {
    if (event.seq > to) continue;
    stretches.push({ after: event.seq, to });
    to = event.toSeq;
  }
  stretches.push({ after: 0, to });
  return (seq) => stretches.some((one) => one.after < seq && seq <= one.to);
}

/** The newest event on the line; 0 when none is. Two heads with one tip are the same conversation. */
export function tipOf(rewinds: Rewinds, head: number): number {
  let tip = head;
  for (const { event } of rewinds.toReversed()) if (event.seq === tip) tip = event.toSeq;
  return tip;
}

/**
 * The newest turn as its conversation stands: without the calls and transactions that a rewind has left, and with a call
 * whose end was left back where it was. It is what a run again may be answered from: the rest is done anew.
 */
export function turnOnLine(state: TaskState): TurnState | null {
  const { turn, rewinds, head } = state;
  if (turn === null || rewinds.length === 0) return turn;
  const onLine = lineAt(rewinds, head?.seq ?? 0);
  return {
    ...turn,
    invocations: turn.invocations.filter(({ seq }) => onLine(seq)).map((call) => callOnLine(call, onLine)),
    transactions: turn.transactions.filter(({ prepared }) => onLine(prepared.event.seq)),
  };
}

function callOnLine(call: InvocationFold, onLine: OnLine): InvocationFold {
  if (call.finished === null || onLine(call.finished.event.seq)) return call;
  return { ...call, state: call.startedAt === null ? 'proposed' : 'started', finished: null };
}
