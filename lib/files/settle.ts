/**
 * Ending transactions that nobody ended, by what is found on disk.
 *
 * A transaction is committed when each of its paths holds its after-image, and rolled back otherwise, with the number of
 * paths that do as the reason. No byte is changed: this is for a repair that keeps what is there, and for a transaction that an operation
 * outside turns left when it was killed (a restore), which the next transaction under the same lease ends beside its own.
 */
import { isLoss } from '../errors.js';
import type { EventDraft } from '../event.js';
import type { Storage } from '../git/storage.js';
import type { LeaseToken } from '../lease/record.js';
import type { Ledger } from '../ledger/ledger.js';
import type { TaskState, TransactionState } from '../ledger/state.js';
import { decodeManifest, type Manifest } from './manifest.js';
import { look } from './revision.js';
import { matches } from './verdict.js';
import { quantity } from '../quantity.js';

export interface SettleContext {
  readonly storage: Storage;
  readonly ledger: Ledger;
}

/** Throws 'object-missing' when the manifest was purged. */
export async function manifestOf(
  { ledger }: Pick<SettleContext, 'ledger'>,
  { prepared }: TransactionState,
): Promise<Manifest> {
  const { manifest, contents } = prepared.event;
  return decodeManifest(await ledger.contents.read(manifest), contents);
}

export async function settledAsFound(
  context: SettleContext,
  transaction: TransactionState,
): Promise<EventDraft> {
  const { id, prepared } = transaction;
  const { turn } = prepared.event;
  const by = { turn, transaction: id, by: 'recovery' } as const;
  const entries = await entriesOf(context, transaction);
  if (entries === null)
    return { type: 'transaction.rolled-back', ...by, reason: 'kept as found: the list of its paths is lost' };
  const done = entries.filter(({ path, after }) => matches(look(context.storage, path).found, after)).length;
  if (done === entries.length) return { type: 'transaction.committed', ...by };
  const reason = `kept as found: ${String(done)} of ${quantity(entries.length, 'path')} written`;
  return { type: 'transaction.rolled-back', ...by, reason };
}

/** Null when its manifest is lost: what is there is kept all the same. */
async function entriesOf(
  context: SettleContext,
  transaction: TransactionState,
): Promise<Manifest['entries'] | null> {
  try {
    return (await manifestOf(context, transaction)).entries;
  } catch (error) {
    if (isLoss(error)) return null;
    throw error;
  }
}

/** Those that an older epoch of this lease left outside the turn that is open: nobody else would end them. */
export async function leftBehind(
  context: SettleContext,
  state: TaskState,
  token: LeaseToken,
): Promise<EventDraft[]> {
  const drafts: EventDraft[] = [];
  for (const transaction of state.transactions.values()) {
    const { lease, epoch, turn } = transaction.prepared.event;
    const isOlder = lease === token.lease && (epoch ?? 0) < token.epoch;
    if (transaction.state !== 'prepared' || !isOlder || isOfOpenTurn(state, turn)) continue;
    drafts.push(await settledAsFound(context, transaction));
  }
  return drafts;
}

function isOfOpenTurn({ turn }: TaskState, id: string | null): boolean {
  return turn !== null && turn.id === id && (turn.state === 'open' || turn.state === 'interrupted');
}
