/**
 * A restore outside turns that was cut short: prepared in the work tree's standing task, and nobody alive is at it.
 *
 * It is reported and repaired like an interrupted turn, under its transaction's id: its files are those of its manifest, roll
 * back puts them to where they were before the restore, roll forward completes it, keep ends it as it is found. Nothing else of
 * it can be in doubt, since a restore runs no call. Order of the repair as in repair.ts; the restore is settled by the last append,
 * so killed before that it is still cut short, and what the killed repair moved is known from its own manifest.
 *
 * Cost: only the standing task that a lease record names as its holder's is read.
 */
import { DurableError, hasCode } from '../errors.js';
import type { EventDraft } from '../event.js';
import { takeCheckpoint } from '../files/checkpoint.js';
import { settledAsFound } from '../files/settle.js';
import { applyEntries, type TransactionContext } from '../files/transaction.js';
import type { Storage } from '../git/storage.js';
import type { Held } from '../lease/hold.js';
import { cutRestoreOf } from '../lease/open-turn.js';
import { LEASE_PREFIX, leaseOf, seenLease, type LeaseRecord } from '../lease/record.js';
import { ownWorkspace } from '../lease/take.js';
import { takeOver } from '../lease/takeover.js';
import { workspaceId } from '../lease/workspace.js';
import type { Ledger } from '../ledger/ledger.js';
import type { TaskState, TransactionState } from '../ledger/state.js';
import { acquiredDraft } from '../turn/lease-events.js';
import { STATUS_ARGS } from '../turn/grounding.js';
import { aimOf } from './aim.js';
import type { InterruptedTurn, RepairAction, RepairResult } from './document.js';
import { findDrift, parseStatus } from './drift.js';
import { findingsOf, reportedFile, rollsForward, type Findings } from './findings.js';
import { demandNamed, originOf } from './interrupted.js';
import { refuseLossy } from './losses.js';
import { conflictsMet, decided } from './met.js';
import { writtenInFact } from './outcome.js';

export interface CutRestore {
  readonly ledger: Ledger;
  readonly state: TaskState;
  readonly transaction: TransactionState;
  readonly record: LeaseRecord;
  readonly isOfHere: boolean;
  /** As of an open turn. */
  readonly origin: string | null;
}

/** Of this work tree; with `all`, of every one. Errors: the repository's and the disk's. */
export async function cutRestores(storage: Storage, all: boolean): Promise<CutRestore[]> {
  const here = workspaceId(storage, { create: false });
  const found: CutRestore[] = [];
  for (const ref of storage.refs.names(LEASE_PREFIX)) {
    const lease = ref.slice(LEASE_PREFIX.length);
    const record = (await seenLease(storage, lease))?.record;
    if (record === undefined) continue;
    const isOwn = (here !== null && lease === leaseOf(here)) || record.workTree === storage.layout.workTree;
    const origin = isOwn ? null : originOf(storage, lease, record);
    const isOfHere = isOwn || origin !== null;
    const { verdict } = storage.identity.judge(record.holder);
    const isOver = record.state === 'free' || verdict === 'dead' || (origin !== null && verdict !== 'alive');
    const cut = isOver && (all || isOfHere) ? await cutRestoreOf(storage, record) : null;
    if (cut !== null) found.push({ ...cut, record, isOfHere, origin });
  }
  return found;
}

/** Reads only. In another work tree its paths cannot be looked at from here, and none are listed. */
export async function cutRestoreReport(storage: Storage, cut: CutRestore): Promise<InterruptedTurn> {
  const { files, lost } = cut.isOfHere ? await findingsIn(storage, cut) : { files: [], lost: [] };
  const drift = cut.isOfHere ? await driftOf(storage, files) : [];
  const { event } = cut.transaction.prepared;
  return {
    turn: cut.transaction.id,
    task: cut.state.task,
    objective: cut.record.objective,
    agent: event.agent,
    startedAt: event.at,
    lastEventAt: event.at,
    detectedBy: 'recover',
    invocations: [],
    files: files.map(reportedFile),
    approvals: [],
    orphans: [],
    isSceneMissing: false,
    workTree: cut.isOfHere ? null : cut.record.workTree,
    origin: cut.origin,
    rollsForward: lost.length === 0 && rollsForward({ files }),
    gitStatusMatches: drift.length === 0,
    drift,
    ...NOTHING_UNCOVERED,
    lost,
  };
}

/** A restore names each of its paths. */
const NOTHING_UNCOVERED = { uncovered: [], uncoveredCount: 0 } as const;

/** The cut restore that a person means; null when a turn is meant. Errors: 'ambiguous'. */
export async function chosenCutRestore(
  storage: Storage,
  wanted: string | undefined,
  turns: readonly string[],
): Promise<CutRestore | null> {
  const cut = await cutRestores(storage, false);
  const named =
    wanted === undefined ? cut : cut.filter(({ transaction }) => transaction.id.startsWith(wanted));
  const [chosen] = named;
  if (chosen === undefined) return null;
  const candidates = [...named.map(({ transaction }) => transaction.id), ...turns];
  if (candidates.length > 1)
    throw new DurableError('ambiguous', { what: 'interrupted turn', id: wanted ?? '', candidates });
  demandNamed({ origin: chosen.origin, id: chosen.transaction.id }, wanted);
  return chosen;
}

export interface CutRestoreRepair {
  readonly action: RepairAction;
  readonly agent: string;
  readonly force: boolean;
}

/** Errors as those of repairing a turn. */
export async function repairCutRestore(
  storage: Storage,
  cut: CutRestore,
  { action, agent, force }: CutRestoreRepair,
): Promise<RepairResult> {
  const { ledger, record } = cut;
  const { task } = ledger;
  const { objective } = record;
  refuseLossy(action, (await findingsIn(storage, cut)).lost);
  const operation = { kind: 'operation', task, turn: null, turnKey: null } as const;
  const held = await takeOver(storage, { ...operation, objective, agent, force });
  const context = { storage, ledger, held, agent, workspace: ownWorkspace(storage), turn: null };
  try {
    const result = await repaired(context, action);
    await held.release();
    return result;
  } catch (error) {
    await held.letGo();
    throw error;
  }
}

const MOST_TRIES = 3;

async function repaired(
  context: TransactionContext & { readonly held: Held },
  action: RepairAction,
): Promise<RepairResult> {
  const { storage, held } = context;
  let checkpoint: string | null = null;
  for (let tries = 1; ; tries += 1) {
    const cut = await cutRestoreOf(storage, held.record);
    if (cut === null)
      throw new DurableError('not-found', { what: 'interrupted turn in this work tree', id: '' });
    const findings = await findingsIn(storage, cut);
    refuseLossy(action, findings.lost);
    checkpoint ??= await before(context, action, findings);
    const aim = await aimOf(storage, { action, findings, checkpoint });
    try {
      const { moves, kept, prune } = aim;
      if (moves.length > 0) await applyEntries(context, moves, { purpose: 'repair', isKept: false, prune });
      const changed = writtenInFact(storage, aim, findings);
      await settle(context, cut, action);
      const foreign = held.takenOver?.foreign ?? [];
      return {
        turn: cut.transaction.id,
        action,
        ...changed,
        kept,
        ...NOTHING_UNCOVERED,
        checkpoint,
        foreign,
      };
    } catch (error) {
      if (!hasCode(error, 'conflict') || tries === MOST_TRIES) throw error;
    }
  }
}

async function before(
  context: TransactionContext,
  action: RepairAction,
  { files }: Findings,
): Promise<string> {
  const { storage, ledger, agent, workspace } = context;
  const taken = await takeCheckpoint(storage, ledger, {
    message: `before ${action} of a restore that was cut short`,
    reason: 'before-repair',
    turn: null,
    by: { agent, workspace },
    paths: files.filter(({ sight }) => sight.found !== 'directory').map(({ touched }) => touched.path),
  });
  return taken.checkpoint;
}

async function settle(
  context: TransactionContext,
  { transaction: restore }: Pick<CutRestore, 'transaction'>,
  action: RepairAction,
): Promise<void> {
  const { storage, ledger, held, agent, workspace } = context;
  await ledger.append(
    async (state) => {
      const { transactions } = state;
      const repairs = repairsOf(state, restore);
      const conflicts = conflictsMet(state, null, repairs);
      const drafts: EventDraft[] = [acquiredDraft(held)];
      for (const transaction of [...transactions.values()].filter(isUnsettled)) {
        const by = { turn: null, transaction: transaction.id, by: 'recovery' } as const;
        if (transaction.id !== restore.id || action === 'roll-back')
          drafts.push({ type: 'transaction.rolled-back', ...by, reason: 'cut short, and ended by a repair' });
        else if (action === 'roll-forward') drafts.push({ type: 'transaction.committed', ...by });
        else drafts.push(await settledAsFound(context, transaction));
      }
      drafts.push(...decided(storage, state, { conflicts, by: agent }));
      return [...drafts, { type: 'lease.released', turn: null }];
    },
    { lease: held.token, agent, workspace },
  );
}

function isUnsettled({ state, prepared }: TransactionState): boolean {
  return state === 'prepared' && prepared.event.turn === null;
}

/** The restore is the only intent; repairs of it that were killed since are the displacements. */
function findingsIn(
  storage: Storage,
  { ledger, state, transaction }: Pick<CutRestore, 'ledger' | 'state' | 'transaction'>,
): Promise<Findings> {
  const repairs = repairsOf(state, transaction);
  const { id } = transaction;
  const turn = { id, invocations: [], recovered: null, transactions: [transaction, ...repairs] };
  return findingsOf({ storage, ledger }, { state, turn, aftermath: { scene: null, deadBy: null } });
}

function repairsOf({ transactions }: TaskState, { prepared }: TransactionState): TransactionState[] {
  return [...transactions.values()].filter(
    ({ prepared: { event } }) =>
      event.purpose === 'repair' && event.turn === null && event.seq > prepared.event.seq,
  );
}

/** There is no baseline: what git status lists beside the restore's paths was there before it. */
async function driftOf(storage: Storage, files: Findings['files']): Promise<string[]> {
  const names = new Set(files.map(({ touched }) => touched.path));
  const { dirty, staged, modified } = parseStatus(await storage.git.output(STATUS_ARGS));
  const others = new Set([...dirty].filter((path) => !names.has(path)));
  const touched = files.map(({ touched: { path }, sight: { found } }) => {
    return { path, now: found === 'directory' || found === 'special' ? null : found };
  });
  return findDrift(storage, { dirty: others, staged, modified }, touched);
}
