/**
 * The recovery report: what was interrupted, and what is found. Reads only (invariant 9).
 *
 * Cost: one look at the newest turn of each task, then for each interrupted turn its own events, touched paths, one
 * `git status` and one look at the process table. The length of a ledger does not matter.
 */
import { existsSync } from 'node:fs';
import { exactJson, type ExactJson } from '../exact-json.js';
import { hasCode } from '../errors.js';
import { lapseOf } from '../decisions/lapse.js';
import type { Expected, Found } from '../files/verdict.js';
import { openStorage, type Storage } from '../git/storage.js';
import { findProcesses } from '../lease/processes.js';
import type { ApprovalState, TurnState } from '../ledger/state.js';
import { cutRestoreReport, cutRestores } from './cut-restore.js';
import type {
  InterruptedTurn,
  RecoverReport,
  ReportedApproval,
  ReportedFile,
  ReportedOrphan,
} from './document.js';
import { findDrift, parseStatus } from './drift.js';
import { findingsOf, type FileFinding, type Findings } from './findings.js';
import { openTurns, type OpenTurn } from './interrupted.js';
import { aftermathOf, needsScene, sceneOf } from './scene.js';
import type { RecoveryContext } from './touched.js';

/** Of this work tree; with `all`, of every work tree of the repository. Errors: the repository's and the disk's. */
export async function recoveryReport(
  storage: Storage,
  options: { readonly all?: boolean } = {},
): Promise<RecoverReport> {
  const interrupted: InterruptedTurn[] = [];
  for (const open of await openTurns(storage, options.all ?? false)) {
    if (open.detectedBy !== null) interrupted.push(await inItsWorkTree(storage, open));
  }
  for (const cut of await cutRestores(storage, options.all ?? false))
    interrupted.push(await cutRestoreReport(storage, cut));
  return { interrupted };
}

/** The document of one turn, and the findings it was made from. */
export async function reportOf(
  context: RecoveryContext,
  open: OpenTurn,
): Promise<{ document: InterruptedTurn; findings: Findings }> {
  const { state, turn } = open;
  const aftermath = aftermathOf(context.storage, open);
  const findings = await findingsOf(context, { state, turn, aftermath });
  return { document: await documentOf(context, open, findings), findings };
}

/** Paths of another work tree are looked at there; where it is gone no path can be looked at. */
async function inItsWorkTree(storage: Storage, open: OpenTurn): Promise<InterruptedTurn> {
  if (open.isOfHere) return (await reportOf({ storage, ledger: open.ledger }, open)).document;
  const place = open.record?.workTree;
  if (place === undefined || !existsSync(place)) {
    const findings: Findings = { turn: open.turn, files: [], calls: [], folders: new Set() };
    return documentOf({ storage, ledger: open.ledger }, open, findings);
  }
  const other = await openStorage(place, storage.host);
  try {
    return (await reportOf({ storage: other, ledger: open.ledger }, open)).document;
  } finally {
    await other.close();
  }
}

async function documentOf(
  context: RecoveryContext,
  open: OpenTurn,
  findings: Findings,
): Promise<InterruptedTurn> {
  const { turn, state } = open;
  const { event } = turn.started;
  const drift = await driftOf(context, turn, findings.files);
  const approvals: ReportedApproval[] = [];
  for (const approval of state.approvals.values()) {
    if (approval.state !== 'pending') continue;
    if ((await lapseOf(context.storage, approval, { workTree: true })) !== null) continue;
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
    approvals,
    orphans: orphansOf(context.storage, open),
    isSceneMissing: needsScene(turn) && sceneOf(turn) === null,
    gitStatusMatches: drift.length === 0,
    drift,
  };
}

function reportedFile({ touched, verdict, sight }: FileFinding): ReportedFile {
  return {
    path: touched.path,
    state: verdict.state,
    before: verdict.before?.oid ?? null,
    expected: oidOf(verdict.expected),
    now: oidOf(sight.found),
  };
}

function oidOf(image: Expected | Found): string | null {
  return image === null || typeof image === 'string' ? null : image.oid;
}

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
    if (!hasCode(error, 'object-missing')) throw error;
  }
  return { id, tool, args: exact, fingerprint, requestedAt: at };
}

/** Every live process of the turn: recorded, or carrying the marker whose hash the lease record has. */
function orphansOf(storage: Storage, { turn, record }: OpenTurn): ReportedOrphan[] {
  const isOwn = record?.turn === turn.id || record?.recovering?.turn === turn.id;
  const recorded = [
    ...turn.processes.map(({ process }) => process),
    ...turn.invocations.flatMap(({ process }) => (process === null ? [] : [process])),
    ...(turn.interrupted?.event.survivors ?? []),
  ];
  const started = new Map(turn.processes.map((one) => [keyOf(one.process), one.startedAt]));
  // A taker that died before it ended them left the holder's processes to the next one.
  const holdings = isOwn ? [record, ...record.older] : [];
  const except = holdings.flatMap(({ keeper }) => (keeper === null ? [] : [keeper]));
  const hashes = [null, ...holdings.map(({ markerHash }) => markerHash)];
  const search = { recorded, caller: storage.host.pid, except };
  const found = hashes.flatMap((markerHash) => findProcesses({ ...search, markerHash }));
  const once = new Map(found.map((one) => [one.pid, one]));
  return [...once.values()].map((found) => ({
    pid: found.pid,
    command: found.command,
    startedAt: started.get(keyOf(found)) ?? startTime(storage, found.start),
  }));
}

const keyOf = (process: { pid: number; start: string }): string => `${String(process.pid)} ${process.start}`;

const TICKS_PER_SECOND = 100;

/** Start time as the system gives it (Linux: ticks since boot; elsewhere: text) as ISO 8601; null when it is neither. */
function startTime({ host }: Storage, start: string): string | null {
  if (/^\d+$/.test(start)) {
    const age = host.uptimeMs() - (Number(start) / TICKS_PER_SECOND) * 1000;
    return new Date(host.now().getTime() - Math.max(0, age)).toISOString();
  }
  const time = Date.parse(start);
  return Number.isNaN(time) ? null : new Date(time).toISOString();
}
