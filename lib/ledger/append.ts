/**
 * Appending: the one way an event comes into a ledger (PROTOCOL.md 5 to 9).
 *
 *     read the lease · read the head · fold · decide · write the commits · verify the lease and move the ledger
 *
 * The last is one ref transaction, and the ledger's ref move is the only commit point: several events are several
 * commits and one move. When it fails, all is read again: the same token and epoch, then fold and decide anew; anything
 * else is 'lease-lost'. Tries are bounded by time, not by a count (8). A draft whose key is in the fold is not appended;
 * its recorded event is returned in its place (7).
 *
 * Guarantees: when `append` resolves, the events are flushed, with the ref and its folder; also those that were found and
 * not written by this call. When it throws anything but 'ref-locked', 'io-failed', 'out-of-space' or
 * 'permission-denied', nothing was appended; after those, the same append with the same keys is safe.
 *
 * Crash points: before the ref's move nothing happened (commits that no ref names are left); after it, all of it did.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DurableError, isDurableError } from '../errors.js';
import type { EventDraft, Recorded } from '../event.js';
import type { Storage } from '../git/storage.js';
import { tokenOid } from '../lease/record.js';
import { readEvent } from './load.js';
import { planned, type AppendBy, type Plan, type PlanIn } from './plan.js';
import type { TaskState } from './state.js';

/** Pure in effect: it runs again, on a newer state, after each lost swap. What it throws ends the append. */
export type Decide = (state: TaskState) => readonly EventDraft[] | Promise<readonly EventDraft[]>;

/** What an append needs of its ledger. */
export interface AppendTo extends PlanIn {
  readonly ref: string;
  /** The state at a head (null: no ledger yet). */
  readonly at: (head: string | null) => Promise<TaskState>;
  /** Told of the state after each append. */
  readonly moved: (state: TaskState) => void;
}

const BUDGET_MS = 10_000;

/**
 * Errors: 'lease-lost', 'usage' (a lease-bound draft without a token), 'turn-closed', 'no-turn', 'turn-claimed', 'recovery-needed',
 * 'approval-settled', 'conflict-settled', 'not-found', 'event-invalid', 'ref-moved' and 'ref-locked' (the budget ended),
 * 'ledger-damaged', 'version-unsupported', and those of the disk.
 */
export async function append(to: AppendTo, decide: Decide, by: AppendBy): Promise<readonly Recorded[]> {
  try {
    return await appended(to, decide, by);
  } finally {
    await Promise.allSettled([by.after]);
  }
}

async function appended(to: AppendTo, decide: Decide, by: AppendBy): Promise<readonly Recorded[]> {
  const { host, refs } = to.storage;
  const deadline = host.monotonicMs() + (by.budgetMs ?? BUDGET_MS);
  for (;;) {
    const lease = by.lease === null ? null : { ref: by.lease.ref, oid: await tokenOid(to.storage, by.lease) };
    const from = refs.read(to.ref);
    const before = await to.at(from);
    const plan = await planned(to, { before, by, drafts: await decide(before) });
    if (plan.written.length === 0) {
      await by.after;
      settle(to.storage, to.ref);
      return plan.results;
    }
    // Beside what they name: only the ref's move must come after both.
    const commits = to.storage.objects.writeAll(plan.bodies.map((body) => ({ type: 'commit', body })));
    await Promise.all([commits, by.after]);
    const move = { ref: to.ref, from, to: plan.after.head?.commit ?? '' };
    const outcome = await refs.update(
      { verify: lease === null ? [] : [lease], move },
      Math.max(1, deadline - host.monotonicMs()),
    );
    if (outcome.moved) {
      to.moved(plan.after);
      return plan.results;
    }
    if (outcome.ref === to.ref) await dropLitter(to, plan);
    if (host.monotonicMs() > deadline) {
      throw new DurableError('ref-moved', { ref: to.ref, expected: from, actual: outcome.was });
    }
  }
}

/**
 * An event that was found and not written may have been moved onto by a process that died before it flushed the ref's
 * folder: a receipt for it means the same as for a new one.
 */
function settle(storage: Storage, ref: string): void {
  const path = join(storage.layout.commonDir, ref);
  if (!existsSync(path)) return;
  storage.disk.syncDir('ledger.settle', dirname(path));
}

/**
 * Commits of a lost swap. The ref only moves on from where it was, so nobody can publish them any more, unless another
 * process made the very same bytes and won: then they are in the ledger now, and stay.
 */
async function dropLitter(to: AppendTo, plan: Plan): Promise<void> {
  const [first] = plan.written;
  const head = to.storage.refs.read(to.ref);
  if (first === undefined || head === null) return;
  const winner = await commitAt(to, head, first.event.seq);
  if (winner === null || winner === first.commit) return;
  for (const { commit } of plan.written) to.storage.objects.drop(commit);
}

const NEAR = 32;

/** The commit that has this number, looked for near the head; null when it is not there, or cannot be read. */
async function commitAt(to: AppendTo, head: string, seq: number): Promise<string | null> {
  try {
    let at = await readEvent(to.storage, to.task, head);
    for (let steps = 0; at.recorded.event.seq > seq && at.parent !== null && steps < NEAR; steps += 1) {
      at = await readEvent(to.storage, to.task, at.parent);
    }
    return at.recorded.event.seq === seq ? at.recorded.commit : null;
  } catch (error) {
    if (isDurableError(error)) return null;
    throw error;
  }
}
