/**
 * What older epochs left: ending a live holder, and settling writers before anybody reads the work tree
 * (PROTOCOL.md 12, 13, 16, 17). Every step covers all older epochs and may be done again by the next taker.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { DurableError } from '../errors.js';
import type { ProcessRecord } from '../event.js';
import type { Storage } from '../git/storage.js';
import { endProcesses } from './ending.js';
import { foreignMarkers } from './foreign.js';
import { isOfHere } from './left.js';
import { turnState } from './open-turn.js';
import { findProcesses, isRunning, processTable, type ProcessIdentity } from './processes.js';
import type { LeaseRecord } from './record.js';
import { heldBy } from './refusal.js';
import { revokeOlder } from './staging.js';
import { breakTicket, olderTickets, type ShownTicket } from './writing.js';

/** What was done with the processes of older epochs. */
export interface Settled {
  readonly ended: readonly ProcessRecord[];
  /** Who holds a turn of another repository, or of another work tree, that was begun inside: left alone with all that it started. */
  readonly foreign: readonly ProcessRecord[];
}

export const NOTHING_SETTLED: Settled = { ended: [], foreign: [] };

/**
 * Ends a live holder: agent, keeper and every recorded or found process; returns once all are dead.
 * Errors: 'lease-held' when one of them cannot be ended, or is this process or one that it runs in.
 */
export async function endHolder(storage: Storage, record: LeaseRecord): Promise<Settled> {
  const found = await processesOf(storage, record);
  const isFound = found.own.some(({ pid }) => pid === record.holder.pid);
  if (!isFound && isRunning(record.holder))
    throw heldBy(storage, record, 'this very process, or one that it runs in, holds it');
  return endAll(storage, record, found);
}

/**
 * Revokes the stages of all older epochs, ends what is left of a dead holder, and waits for older write tickets.
 * `replaced` is the record that was taken over, null where its turn was over in good order: then nothing is ended, only awaited.
 * Errors: 'lease-held' while a writer of an older epoch can neither be ended nor proven dead.
 */
export async function settleOlder(
  storage: Storage,
  epoch: number,
  replaced: LeaseRecord | null,
): Promise<Settled> {
  revokeOlder(storage, epoch);
  if (replaced === null) {
    await awaitTickets(storage, epoch, null);
    return NOTHING_SETTLED;
  }
  const settled = await endAll(storage, replaced, await processesOf(storage, replaced));
  await awaitTickets(storage, epoch, replaced);
  return settled;
}

interface Processes {
  readonly own: readonly ProcessRecord[];
  readonly foreign: readonly ProcessRecord[];
}

/** Every live process of the holding, and of those before it, that this process could end; none where pids mean nothing here. */
async function processesOf(storage: Storage, record: LeaseRecord): Promise<Processes> {
  const table = processTable();
  const found = new Map<number, ProcessRecord>();
  const foreign = new Map<number, ProcessRecord>();
  const named = await recordedProcesses(storage, record);
  for (const holding of [record, ...record.older].filter((one) => isOfHere(storage, one.holder))) {
    const keeper = holding.keeper === null ? [] : [holding.keeper];
    const search = {
      markerHash: holding.markerHash,
      recorded: [holding.holder, ...keeper, ...named],
      holders: [holding.holder],
      caller: storage.host.pid,
      isForeign: foreignMarkers(storage, record.lease),
      onForeign: (one: ProcessRecord) => foreign.set(one.pid, one),
    };
    for (const one of findProcesses(search, table)) found.set(one.pid, one);
  }
  return { own: [...found.values()], foreign: [...foreign.values()] };
}

/** Processes that the turn's events name. */
export async function recordedProcesses(storage: Storage, record: LeaseRecord): Promise<ProcessIdentity[]> {
  const task = record.recovering?.task ?? record.task;
  const turn = record.recovering?.turn ?? record.turn;
  const state = task === null ? null : await turnState(storage, task);
  if (state === null || state.id !== turn) return [];
  const invoked = state.invocations.flatMap((one) => (one.process === null ? [] : [one.process]));
  return [...state.processes.map((one) => one.process), ...invoked];
}

async function endAll(storage: Storage, record: LeaseRecord, { own, foreign }: Processes): Promise<Settled> {
  const [stubborn] = await endProcesses(storage.host, own);
  // The keeper is ours and writes no tree: it is no process of the turn's to be told about.
  const keepers = [record, ...record.older].map(({ keeper }) => keeper?.pid);
  if (stubborn === undefined) return { ended: own.filter(({ pid }) => !keepers.includes(pid)), foreign };
  throw heldBy(storage, record, `process ${String(stubborn.pid)} (${stubborn.command}) does not end`);
}

/** How long a live writer of an older epoch is given to find out by itself that the epoch is over. */
const GRACE_MS = 500;
const BUDGET_MS = 10_000;
const POLL_MS = 20;

async function awaitTickets(storage: Storage, epoch: number, replaced: LeaseRecord | null): Promise<void> {
  const from = storage.host.monotonicMs();
  for (;;) {
    const left = olderTickets(storage, epoch).filter((shown) => !isOver(storage, shown));
    const waited = storage.host.monotonicMs() - from;
    const [first] = left;
    if (first === undefined) return;
    if (replaced !== null && waited >= GRACE_MS) await endWriters(storage, left);
    if (waited >= BUDGET_MS) throw stillWriting(storage, first, replaced);
    await pause(POLL_MS);
  }
}

/** True when the ticket is gone, or was a dead writer's and is broken now. */
function isOver(storage: Storage, shown: ShownTicket): boolean {
  if (shown.ticket !== null && storage.identity.judge(shown.ticket).verdict !== 'dead') return false;
  breakTicket(storage, shown);
  return true;
}

async function endWriters(storage: Storage, left: readonly ShownTicket[]): Promise<void> {
  const writers = left
    .flatMap(({ ticket }) => (ticket === null ? [] : [ticket]))
    .filter(
      (ticket) => ticket.pid !== storage.host.pid && storage.identity.judge(ticket).verdict === 'alive',
    );
  await endProcesses(storage.host, writers);
}

function stillWriting(storage: Storage, shown: ShownTicket, replaced: LeaseRecord | null): DurableError {
  const pid = String(shown.ticket?.pid ?? 0);
  const why = `a write of epoch ${String(shown.ticket?.epoch ?? 0)} by process ${pid} is not over`;
  if (replaced !== null) return heldBy(storage, replaced, why);
  return new DurableError('ref-locked', { ref: shown.file, owner: `process ${pid}`, waitedMs: BUDGET_MS });
}
