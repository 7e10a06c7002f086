/**
 * One look at a work tree, for `status` and for agents: who holds it, what runs, what was interrupted, what waits.
 * A projection of lease, ledgers and processes; it writes nothing.
 */
import { inboxFiles } from './agents/inbox.js';
import { countWaiting } from './decisions/approval.js';
import { conflictsInView } from './decisions/conflict.js';
import { fenceHealth, type FenceHealth } from './fence/health.js';
import type { Storage } from './git/storage.js';
import { judgeHolding } from './lease/life.js';
import { leaseOf, seenLease, type LeaseRecord } from './lease/record.js';
import { workspaceId } from './lease/workspace.js';
import { Ledger } from './ledger/ledger.js';
import { orphansLeft } from './orphans/find.js';
import { lookAround } from './orphans/look.js';
import { distinct, type Orphan } from './orphans/orphan.js';
import { packageVersion } from './package.js';
import type { RecoverReport } from './recovery/document.js';
import { recoveryReport } from './recovery/report.js';

export interface Status {
  /** Of this program. */
  readonly version: string;
  readonly workspace: string | null;
  readonly lease: LeaseStatus | null;
  readonly turn: TurnStatus | null;
  readonly interrupted: RecoverReport['interrupted'];
  readonly approvals: number;
  readonly conflicts: number;
  readonly orphans: number;
  /** Reports of agents that are on record nowhere (lib/agents/inbox.ts), of all work trees; `since`: the oldest, null for none. */
  readonly inbox: { readonly count: number; readonly since: string | null };
  readonly fence: FenceHealth;
}

export interface LeaseStatus {
  readonly holder: { readonly agent: string; readonly host: string; readonly pid: number };
  readonly task: string | null;
  readonly turn: string | null;
  readonly epoch: number;
  readonly acquiredAt: string;
  readonly alive: boolean;
  readonly ttlMs: number;
  readonly renewedAt: string;
  readonly host: string;
  readonly bootId: string;
}

export interface TurnStatus {
  readonly id: string;
  readonly task: string;
  readonly state: string;
  readonly objective: string;
  readonly agent: string;
  readonly startedAt: string;
}

export async function readStatus(storage: Storage): Promise<Status> {
  const workspace = workspaceId(storage, { create: false });
  const record = await heldRecord(storage, workspace);
  const [report, left, approvals, conflicts] = await Promise.all([
    recoveryReport(storage, {}),
    leftRunning(storage),
    countWaiting(storage),
    conflictsInView(storage),
  ]);
  return {
    version: packageVersion(),
    workspace,
    lease: record === null ? null : leaseStatus(storage, record),
    turn: record === null ? null : await turnStatus(storage, record),
    interrupted: report.interrupted,
    approvals,
    conflicts: conflicts.filter(({ isOpen }) => isOpen).length,
    orphans: distinct([...report.interrupted.flatMap((turn) => turn.orphans), ...left]).length,
    inbox: inboxStatus(storage),
    fence: await fenceHealth(storage, record),
  };
}

function inboxStatus(storage: Storage): Status['inbox'] {
  const files = inboxFiles(storage);
  return { count: files.length, since: files[0]?.since ?? null };
}

/** The lease of this work tree when it is held, with what `lease` shows besides. */
export async function readLeaseStatus(storage: Storage): Promise<LeaseStatus | null> {
  const record = await heldRecord(storage, workspaceId(storage, { create: false }));
  return record === null ? null : leaseStatus(storage, record);
}

/** Processes only: a container client takes longer than all the rest (`orphans` and `recover` ask it). */
async function leftRunning(storage: Storage): Promise<Orphan[]> {
  const look = await lookAround(storage, { containers: false });
  return orphansLeft(storage, look);
}

async function heldRecord(storage: Storage, workspace: string | null): Promise<LeaseRecord | null> {
  const current = workspace === null ? null : await seenLease(storage, leaseOf(workspace));
  return current?.record.state === 'held' ? current.record : null;
}

function leaseStatus(storage: Storage, record: LeaseRecord): LeaseStatus {
  const { holder } = record;
  return {
    holder: { agent: holder.agent, host: holder.hostname, pid: holder.pid },
    task: record.task,
    turn: record.turn,
    epoch: record.epoch,
    acquiredAt: record.acquiredAt,
    alive: judgeHolding(storage, record).verdict !== 'dead',
    ttlMs: record.ttlMs,
    renewedAt: record.renewedAt,
    host: holder.host,
    bootId: holder.boot,
  };
}

async function turnStatus(storage: Storage, record: LeaseRecord): Promise<TurnStatus | null> {
  if (record.task === null || record.turn === null) return null;
  const { turn } = (await Ledger.open(storage, record.task).readable()).state;
  if (turn?.id !== record.turn) return null;
  const dead = storage.identity.judge(record.holder).verdict === 'dead';
  const { event } = turn.started;
  return {
    id: turn.id,
    task: record.task,
    state: turn.state === 'open' && dead ? 'interrupted' : turn.state,
    objective: event.objective,
    agent: event.agent,
    startedAt: event.at,
  };
}
