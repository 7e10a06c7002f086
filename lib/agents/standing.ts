/** The decisions that an agent finds when it begins: those of the task that this work tree was last held for. */
import { isUnused } from '../ledger/carried.js';
import { lapseOf } from '../decisions/lapse.js';
import { isLoss } from '../errors.js';
import type { Kept } from '../event.js';
import type { Storage } from '../git/storage.js';
import { leaseOf, readLease } from '../lease/record.js';
import { workspaceId } from '../lease/workspace.js';
import { Ledger } from '../ledger/ledger.js';
import type { KnownApproval } from './known.js';

/** Not answered, or answered and not used; oldest first. Errors: the repository's and the disk's. */
export async function standingApprovals(storage: Storage): Promise<KnownApproval[]> {
  const workspace = workspaceId(storage, { create: false });
  const last = workspace === null ? null : await readLease(storage, leaseOf(workspace));
  const task = last?.record.task ?? null;
  if (task === null) return [];
  const ledger = Ledger.open(storage, task);
  const { state } = await ledger.readable();
  const known: KnownApproval[] = [];
  for (const approval of state.approvals.values()) {
    const { requested, resolved } = approval;
    if (!isUnused(approval) || (await lapseOf(storage, approval, { workTree: false })) !== null) continue;
    known.push({
      id: approval.id,
      state: approval.state,
      by: resolved?.event.by ?? null,
      tool: requested.event.tool,
      args: (await textOf(ledger, requested.event.args)) ?? requested.event.summary,
      feedback: await textOf(ledger, resolved?.event.feedback ?? null),
    });
  }
  return known;
}

async function textOf({ contents }: Ledger, kept: Kept | null): Promise<string | null> {
  try {
    return kept === null ? null : (await contents.read(kept)).toString('utf8');
  } catch (error) {
    if (!isLoss(error)) throw error;
    return null;
  }
}
