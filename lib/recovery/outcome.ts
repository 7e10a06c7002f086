/**
 * What a repair records when it is done: the report it acted on, the transactions that nobody ended, the counts.
 */
import { canonicalJson } from '../canonical.js';
import type { EventDraft, EventOf, FileState, Kept, ProcessRecord } from '../event.js';
import { look } from '../files/revision.js';
import { settledAsFound } from '../files/settle.js';
import type { TransactionContext } from '../files/transaction.js';
import { matches } from '../files/verdict.js';
import type { Storage } from '../git/storage.js';
import type { Held } from '../lease/hold.js';
import type { Ledger } from '../ledger/ledger.js';
import type { TaskState, TransactionState, TurnState } from '../ledger/state.js';
import type { Aim } from './aim.js';
import type { InterruptedTurn, RepairAction, RepairResult } from './document.js';
import type { Findings } from './findings.js';

export async function keepReport(ledger: Ledger, document: InterruptedTurn): Promise<Kept> {
  const [kept] = await ledger.contents.keep([Buffer.from(canonicalJson(document), 'utf8')]);
  if (kept === undefined) throw new RangeError('contents kept nothing of one entry');
  return kept;
}

export type Outcome = Pick<EventOf<'turn.recovered'>, 'action' | 'checkpoint' | 'restored' | 'removed'>;

export function draftOf(parts: {
  report: Kept;
  findings: Findings;
  held: Held;
  outcome: Outcome;
}): EventDraft {
  const { report, findings, held, outcome } = parts;
  const ended: readonly ProcessRecord[] = held.takenOver?.ended ?? [];
  return {
    type: 'turn.recovered',
    turn: findings.turn.id,
    ...outcome,
    report,
    invocations: findings.calls.map(({ call, state }) => ({ id: call.id, state })),
    files: countsOf(findings),
    ended: [...ended],
  };
}

function countsOf({ files }: Findings): Record<FileState, number> {
  const counts = { untouched: 0, written: 0, partial: 0, foreign: 0, deleted: 0, changed: 0 };
  for (const { verdict } of files) counts[verdict.state] += 1;
  return counts;
}

/** A transaction by which a repair, since the turn last went on, has begun to change the tree. */
export function isRepair(
  { prepared }: TransactionState,
  { recovered }: Pick<TurnState, 'recovered'>,
): boolean {
  return prepared.event.purpose === 'repair' && prepared.event.seq > (recovered?.event.seq ?? 0);
}

/** What a repair has written in fact, and what those that were killed before it have and it left there. */
export function writtenInFact(
  storage: Storage,
  aim: Aim,
  findings: Findings,
): Pick<RepairResult, 'restored' | 'removed'> {
  const moved = new Map(aim.moves.map(({ path, to }) => [path, [to]]));
  const restored: string[] = [];
  const removed: string[] = [];
  for (const { touched, displaced } of findings.files) {
    const { path } = touched;
    const { found } = look(storage, path);
    const written = moved.get(path) ?? displaced?.written ?? [];
    if (!written.some((image) => matches(found, image))) continue;
    (found === null || found === 'directory' ? removed : restored).push(path);
  }
  return { restored, removed };
}

/** How the transactions without an end are ended: those of the turn as the turn is, others as they are found. */
export async function settlements(
  context: TransactionContext,
  state: TaskState,
  action: RepairAction,
): Promise<EventDraft[]> {
  const drafts: EventDraft[] = [];
  for (const transaction of state.transactions.values()) {
    if (transaction.state !== 'prepared') continue;
    const { turn, purpose } = transaction.prepared.event;
    const by = { turn, transaction: transaction.id, by: 'recovery' } as const;
    if (purpose === 'repair')
      drafts.push({
        type: 'transaction.rolled-back',
        ...by,
        reason: 'cut short, and replaced by this repair',
      });
    else if (turn !== state.turn?.id || action === 'keep')
      drafts.push(await settledAsFound(context, transaction));
    else if (action === 'roll-forward') drafts.push({ type: 'transaction.committed', ...by });
    else drafts.push({ type: 'transaction.rolled-back', ...by, reason: 'the turn was rolled back' });
  }
  return drafts;
}
