/**
 * Every decision of a task, those of earlier turns included that have their end.
 *
 * A task's state forgets at each turn's start what is decided and used, so that its cost is that of a turn. Who answers
 * such a request, or lists what was decided, is told by the whole ledger, read once and only where there was an earlier turn.
 */
import { hasCode } from '../errors.js';
import type { Storage } from '../git/storage.js';
import { Folding, initialState } from '../ledger/fold.js';
import { Ledger } from '../ledger/ledger.js';
import { decodeIn } from '../ledger/load.js';
import type { TaskState } from '../ledger/state.js';
import { rawEvents } from '../ledger/stream.js';

export type Decisions = Pick<TaskState, 'approvals' | 'conflicts' | 'transactions'>;

/** In the order they were asked for; of a damaged ledger what can be read. Errors: 'version-unsupported'. */
export async function everyDecision(storage: Storage, task: string): Promise<Decisions> {
  const { state } = await Ledger.open(storage, task).readable();
  if (state.head === null || state.turn?.started.event.previousTurn == null) return state;
  const { approvals, conflicts, transactions } = await decisionsUpTo(storage, task, state.head.commit);
  return {
    approvals: new Map([...approvals, ...state.approvals]),
    conflicts: new Map([...conflicts, ...state.conflicts]),
    transactions: new Map([...transactions, ...state.transactions]),
  };
}

/** A fold that no turn's start makes forget. */
async function decisionsUpTo(storage: Storage, task: string, to: string): Promise<Decisions> {
  const folding = new Folding(initialState(task));
  try {
    for await (const batch of rawEvents(storage, task, { after: null, to, oldestFirst: true })) {
      for (const { commit, message } of batch)
        if (DECIDES.test(message)) folding.add(decodeIn(task, message, commit));
    }
  } catch (error) {
    if (!hasCode(error, 'ledger-damaged')) throw error;
  }
  return folding.state();
}

/** By the subject, which begins with the type: most events need not be decoded. */
const DECIDES = /^(?:approval|conflict|transaction)\.|^conversation\.rewound/;
