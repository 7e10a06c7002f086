/** What every step of a turn works with: where it is recorded, under which lease, and as whom. */
import type { Recorded } from '../event.js';
import { observe } from '../fence/observer.js';
import type { Storage } from '../git/storage.js';
import type { Decide } from '../ledger/append.js';
import type { Ledger } from '../ledger/ledger.js';
import type { Held } from '../lease/hold.js';
import { Reads } from './reads.js';

export interface TurnContext {
  readonly storage: Storage;
  readonly ledger: Ledger;
  readonly held: Held;
  readonly agent: string;
  readonly workspace: string;
  /** The turn's id. */
  readonly turn: string;
  /** Revisions as this turn has read them. */
  readonly reads: Reads;
  /** Appends under this turn's lease; `decide` runs again after each failed swap. `after`: see AppendBy. */
  readonly append: (decide: Decide, after?: Promise<unknown>) => Promise<readonly Recorded[]>;
}

export function turnContext(parts: Omit<TurnContext, 'append' | 'reads'>): TurnContext {
  return {
    ...parts,
    reads: new Reads(),
    append: (decide, after = Promise.resolve()) =>
      parts.ledger.append(decide, {
        lease: parts.held.token,
        agent: parts.agent,
        workspace: parts.workspace,
        after,
      }),
  };
}

/** Appends what was done to the repository beside the turn since the last look. */
export async function recordObserved(context: TurnContext, isLast = false): Promise<void> {
  const { storage, held, turn, agent, workspace, ledger } = context;
  const drafts = observe(storage, { turn, stageDir: held.stageDir }, isLast);
  if (drafts.length > 0) await ledger.append(() => drafts, { lease: null, agent, workspace });
}
