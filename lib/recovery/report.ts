/**
 * The recovery report: what was interrupted, and what is found. Reads only (invariant 9).
 *
 * Cost: one look at the newest turn of each task, then for each interrupted turn its own events, touched paths, one
 * `git status` and one look at the process table. The length of a ledger does not matter.
 */
import { existsSync } from 'node:fs';
import type { ProcessRecord } from '../event.js';
import { exactJson, type ExactJson } from '../exact-json.js';
import { isLoss } from '../errors.js';
import { isWaiting, lapseOf } from '../decisions/lapse.js';
import { openStorage, type Storage } from '../git/storage.js';
import { leaseOf } from '../lease/record.js';
import { copiedFrom } from '../lease/workspace.js';
import { orphansOfTurn } from '../orphans/find.js';
import { lookAround, type Look } from '../orphans/look.js';
import type { ApprovalState, TurnState } from '../ledger/state.js';
import { cutRestoreReport, cutRestores, type CutRestore } from './cut-restore.js';
import type { InterruptedTurn, RecoverReport, ReportedApproval } from './document.js';
import { findDrift, parseStatus } from './drift.js';
import { findingsOf, reportedFile, rollsForward, type FileFinding, type Findings } from './findings.js';
import { findTurns, isInterrupted, refuseNewer, type OpenTurn } from './interrupted.js';
import { Losses } from './losses.js';
import { aftermathOf, needsScene, sceneOf } from './scene.js';
import type { RecoveryContext } from './touched.js';
import { uncoveredIn } from './uncovered.js';

export interface ReportOptions {
  /** Of every work tree of the repository. */
  readonly all?: boolean;
  /** Ask docker and podman what the turns left running there. Default false: it takes as long as they do. */
  readonly containers?: boolean;
}

/**
 * Of this work tree, unless told otherwise. Errors: 'version-unsupported' when nothing is found and a ledger is of a newer
 * program; the repository's and the disk's.
 */
export async function recoveryReport(storage: Storage, options: ReportOptions = {}): Promise<RecoverReport> {
  const interrupted: InterruptedTurn[] = [];
  let foreign: readonly ProcessRecord[] = [];
  const found = await findTurns(storage, options.all ?? false);
  const open = found.open.filter(isInterrupted);
  if (open.length > 0) {
    const look = await lookAround(storage, { containers: options.containers ?? false });
    for (const one of open) interrupted.push(await inItsWorkTree(storage, one, look));
    foreign = [...look.foreign.values()];
  }
  for (const cut of await cutRestores(storage, options.all ?? false))
    interrupted.push(await cutRestoreReport(storage, cut));
  if (interrupted.length === 0) refuseNewer(found.newer);
  return { interrupted, foreign };
}

export interface TurnsAround {
  /** Of this work tree, interrupted or not. */
  readonly isOpen: boolean;
  /** Interrupted in other work trees, or in the repository that this is a copy of. */
  readonly elsewhere: number;
  /** The work tree that this one is a copy of, where a turn was interrupted and it stands still; null: there is none. */
  readonly original: Original | null;
}

export interface Original {
  readonly workTree: string;
  /** The checkpoint from before that turn, by which the copy's own files can be put back; null: not known. */
  readonly checkpoint: string | null;
}

/** What somebody may have meant who finds nothing interrupted. Errors: the repository's and the disk's. */
export async function turnsAround(storage: Storage): Promise<TurnsAround> {
  const { open } = await findTurns(storage, true);
  const others = [...open.filter(isInterrupted), ...(await cutRestores(storage, true))];
  const elsewhere = others.filter(({ isOfHere }) => !isOfHere);
  return {
    isOpen: open.some(({ isOfHere }) => isOfHere),
    elsewhere: elsewhere.length,
    original: originalAmong(storage, elsewhere),
  };
}

function originalAmong(storage: Storage, others: readonly (OpenTurn | CutRestore)[]): Original | null {
  const copied = new Set(copiedFrom(storage).map(leaseOf));
  const original = others.find(({ record }) => record !== null && copied.has(record.lease));
  if (original?.record == null) return null;
  const checkpoint = 'turn' in original ? original.turn.started.event.checkpoint : null;
  return { workTree: original.record.workTree, checkpoint };
}

/** The document of one turn, and the findings it was made from. */
export async function reportOf(
  context: RecoveryContext,
  open: OpenTurn,
  look?: Look,
): Promise<{ document: InterruptedTurn; findings: Findings }> {
  const { state, turn } = open;
  const aftermath = aftermathOf(context.storage, open);
  const findings = await findingsOf(context, { state, turn, aftermath });
  const seen = look ?? (await lookAround(context.storage, { containers: false }));
  return { document: await documentOf(context, open, { findings, look: seen }), findings };
}

/** Paths of another work tree are looked at there; where it is gone no path can be looked at. */
async function inItsWorkTree(storage: Storage, open: OpenTurn, look: Look): Promise<InterruptedTurn> {
  if (open.isOfHere) return (await reportOf({ storage, ledger: open.ledger }, open, look)).document;
  const place = open.record?.workTree;
  if (place === undefined || !existsSync(place)) {
    const findings: Findings = {
      turn: open.turn,
      files: [],
      calls: [],
      folders: new Set(),
      leftOut: [],
      lost: [],
    };
    return documentOf({ storage, ledger: open.ledger }, open, { findings, look });
  }
  const other = await openStorage(place, storage.host, { badSettings: 'default' });
  try {
    return (await reportOf({ storage: other, ledger: open.ledger }, open, look)).document;
  } finally {
    await other.close();
  }
}

async function documentOf(
  context: RecoveryContext,
  open: OpenTurn,
  { findings, look }: { readonly findings: Findings; readonly look: Look },
): Promise<InterruptedTurn> {
  const { turn, state } = open;
  const { event } = turn.started;
  const losses = new Losses();
  const status = 'what git status said at the start of the turn';
  const drift = await losses.met(status, null, () => driftOf(context, turn, findings.files));
  const uncovered = await uncoveredIn(context.storage, findings);
  const approvals: ReportedApproval[] = [];
  for (const approval of state.approvals.values()) {
    const lapsed = await lapseOf(context.storage, approval, { workTree: false });
    if (!isWaiting(approval, lapsed)) continue;
    approvals.push(await reportedApproval(context, approval));
  }
  return {
    turn: turn.id,
    task: state.task,
    objective: event.objective,
    agent: event.agent,
    startedAt: event.at,
    lastEventAt: turn.lastEventAt,
    detectedBy: open.detectedBy ?? 'recover',
    invocations: findings.calls.map(({ call, state: one }) => {
      return { id: call.id, tool: call.tool, state: one, summary: call.summary };
    }),
    files: findings.files.map(reportedFile),
    workTree: open.isOfHere ? null : (open.record?.workTree ?? null),
    origin: open.origin,
    rollsForward: findings.lost.length === 0 && rollsForward(findings),
    approvals,
    orphans: orphansOfTurn(context.storage, open, look),
    isSceneMissing: needsScene(turn) && sceneOf(turn) === null,
    gitStatusMatches: drift?.length === 0,
    drift: drift ?? [],
    uncovered: uncovered.slice(0, NAMED_AT_MOST),
    uncoveredCount: uncovered.length,
    lost: [...findings.lost, ...losses.all],
  };
}

const NAMED_AT_MOST = 100;

async function driftOf(
  { storage, ledger }: RecoveryContext,
  turn: TurnState,
  files: readonly FileFinding[],
): Promise<string[]> {
  const baseline = parseStatus(await ledger.contents.read(turn.started.event.baseline.status));
  const touched = files.map(({ touched: { path }, sight: { found } }) => {
    return { path, now: found === 'directory' || found === 'special' ? null : found };
  });
  return findDrift(storage, baseline, touched);
}

async function reportedApproval(
  { ledger }: RecoveryContext,
  { id, requested }: ApprovalState,
): Promise<ReportedApproval> {
  const { tool, args, fingerprint, at } = requested.event;
  let exact: ExactJson | string | null = null;
  try {
    exact = exactJson((await ledger.contents.read(args)).toString('utf8'));
  } catch (error) {
    if (!isLoss(error)) throw error;
  }
  return { id, tool, args: exact, fingerprint, requestedAt: at };
}
