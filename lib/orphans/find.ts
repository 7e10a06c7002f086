/**
 * The orphans of a work tree: processes and containers that an interrupted or a finished turn left running. Reads only.
 *
 * Of an interrupted turn: what its events name, and what carries the marker of its holding or of one before it. Of turns that
 * are over: what the lease record carried on (lib/lease/left.ts), and what carries their markers. Never the caller, its ancestors,
 * a keeper, anything of a live holder of this repository, or of a turn of another one that was begun inside. What was recorded in another boot, on another host or in another
 * pid namespace is no process of here.
 */
import type { ProcessRecord } from '../event.js';
import type { Storage } from '../git/storage.js';
import { foreignMarkers } from '../lease/foreign.js';
import { isOfHere, leftTurns, processKey, recordedSurvivors } from '../lease/left.js';
import { findProcesses, isRunning, type ProcessIdentity } from '../lease/processes.js';
import { abandonedOperation } from '../lease/life.js';
import { leaseOf, seenLease, type LeaseRecord, type LeftTurn } from '../lease/record.js';
import { standingTaskId, workspaceId } from '../lease/workspace.js';
import { interruptedHere, type OpenTurn } from '../recovery/interrupted.js';
import { lookAround, isLive, type Look } from './look.js';
import { distinct, startTime, type Orphan } from './orphan.js';

export interface FoundOrphans {
  /** Of the oldest interrupted turn first, then of turns that are over, the newest first. */
  readonly orphans: readonly Orphan[];
  /** What could not be asked: one sentence each. */
  readonly silent: readonly string[];
  /** Who holds a turn of another repository that was begun inside an orphan: left alone, with all that it started. */
  readonly foreign: readonly ProcessRecord[];
}

export async function findOrphans(
  storage: Storage,
  options: { readonly containers: boolean },
): Promise<FoundOrphans> {
  const look = await lookAround(storage, options);
  const orphans = await orphansIn(storage, look);
  return { orphans, silent: look.containers.silent, foreign: [...look.foreign.values()] };
}

export async function orphansIn(storage: Storage, look: Look): Promise<Orphan[]> {
  const interrupted = await interruptedHere(storage);
  const orphans = interrupted.flatMap((open) => orphansOfTurn(storage, open, look));
  return distinct([...orphans, ...(await orphansLeft(storage, look))]);
}

/** What an interrupted turn left. */
export function orphansOfTurn(storage: Storage, open: OpenTurn, look: Look): Orphan[] {
  const { turn, state } = open;
  const holdings = holdingsOf(open);
  const at = { task: state.task, turn: turn.id };
  const hashes = holdings.flatMap(({ markerHash }) => (markerHash === null ? [] : [markerHash]));
  const containers = containersOf(storage, look, { ...at, hashes });
  const all = [turn.started.event.holder, ...holdings.map(({ holder }) => holder)];
  const local = all.filter((holder) => isOfHere(storage, holder));
  if (local.length === 0) return containers;
  // Of a dead holder what a repair would end is what is listed; one that lives on runs more than this turn.
  const holders = local.filter((holder) => !isRunning(holder));
  const recorded = [...holders, ...recordedSurvivors(turn)];
  const except = holdings.flatMap(({ keeper }) => (keeper === null ? [] : [keeper]));
  const found = [null, ...hashes].flatMap((markerHash) =>
    processesFor(storage, look, { recorded, holders, except, markerHash, isOver: false }),
  );
  const startedAt = new Map(turn.processes.map((one) => [processKey(one.process), one.startedAt]));
  const processes = found.map((one) => ({
    ...processOrphan(storage, one, at),
    startedAt: startedAt.get(processKey(one)) ?? startTime(storage, one.start),
  }));
  return distinct([...processes, ...containers]);
}

type Holding = LeaseRecord['older'][number];

/** A taker that died before it ended them left the holder's processes to the next one. */
function holdingsOf({ turn, record }: OpenTurn): Holding[] {
  if (record === null) return [];
  const isOwn = record.turn === turn.id || record.recovering?.turn === turn.id;
  return isOwn ? [record, ...record.older] : [];
}

/** What turns that are over left, as far as the lease records of this work tree know. */
export async function orphansLeft(storage: Storage, look: Look): Promise<Orphan[]> {
  const found: Orphan[] = orphansOfOperation(storage, look);
  for (const left of await turnsLeft(storage, look)) found.push(...orphansOf(storage, left, look));
  return distinct(found);
}

/** The git of an operation that nobody waits for: it holds the work tree until it ends. */
function orphansOfOperation(storage: Storage, { leases }: Look): Orphan[] {
  const id = workspaceId(storage, { create: false });
  const record = id === null ? undefined : leases.find(({ lease }) => lease === leaseOf(id));
  if (id === null || record === undefined) return [];
  const at = { task: standingTaskId(id), turn: null };
  return abandonedOperation(storage, record).map((one) => processOrphan(storage, one, at));
}

/** The turns that the leases of this work tree carry, under whichever id it had. */
async function turnsLeft(storage: Storage, { leases }: Look): Promise<LeftTurn[]> {
  const id = workspaceId(storage, { create: false });
  const here = leases.filter(
    ({ lease, workTree }) => (id !== null && lease === leaseOf(id)) || workTree === storage.layout.workTree,
  );
  return (await Promise.all(here.map((record) => carriedBy(storage, record)))).flat();
}

/** The turns that the present lease of this work tree carries: those that its next holder reconciles. */
export async function turnsCarried(storage: Storage): Promise<LeftTurn[]> {
  const id = workspaceId(storage, { create: false });
  const current = id === null ? null : await seenLease(storage, leaseOf(id));
  return current === null ? [] : carriedBy(storage, current.record);
}

async function carriedBy(storage: Storage, record: LeaseRecord): Promise<LeftTurn[]> {
  return isLive(storage, record) ? record.left : leftTurns(storage, record);
}

function orphansOf(storage: Storage, left: LeftTurn, look: Look): Orphan[] {
  const { task, turn, markerHash } = left;
  const hashes = markerHash === null || look.liveMarkers.has(markerHash) ? [] : [markerHash];
  return [
    ...processesLeft(storage, left, look).map((one) => processOrphan(storage, one, { task, turn })),
    ...containersOf(storage, look, { task, turn, hashes }),
  ];
}

/** Processes of a turn that is over which run now. */
export function processesLeft(storage: Storage, left: LeftTurn, look: Look): ProcessRecord[] {
  if (!isOfHere(storage, left)) return [];
  const { processes: recorded, markerHash } = left;
  return processesFor(storage, look, { recorded, markerHash, isOver: true });
}

function processesFor(
  storage: Storage,
  { table, markers, spared, foreign }: Look,
  search: {
    readonly recorded: readonly ProcessIdentity[];
    readonly holders?: readonly ProcessIdentity[];
    readonly markerHash: string | null;
    readonly isOver: boolean;
    readonly except?: readonly ProcessIdentity[];
  },
): ProcessRecord[] {
  const elsewhere = {
    isForeign: foreignMarkers(storage),
    onForeign: (one: ProcessRecord) => foreign.set(one.pid, one),
  };
  const found = findProcesses({ ...search, ...elsewhere, caller: storage.host.pid }, table, markers);
  return found.filter(({ pid }) => !spared.has(pid));
}

function processOrphan(
  storage: Storage,
  { pid, start, command }: ProcessRecord,
  at: { readonly task: string; readonly turn: string | null },
): Orphan {
  const startedAt = startTime(storage, start);
  return {
    kind: 'process',
    id: `${String(pid)}-${start}`,
    pid,
    start,
    startedAt,
    command,
    ...at,
    client: null,
  };
}

const COMMAND_CHARACTERS = 200;

function containersOf(
  storage: Storage,
  { containers }: Look,
  {
    task,
    turn,
    hashes,
  }: { readonly task: string; readonly turn: string; readonly hashes: readonly string[] },
): Orphan[] {
  return containers.running
    .filter((one) => hashes.some((hash) => one.hashes.has(hash)))
    .map(({ client, id, pid, start, name, image }) => ({
      kind: 'container',
      id,
      pid,
      // Clients that run a virtual machine may give no pid: the id tells one from another.
      start: `${id} ${start}`,
      startedAt: startTime(storage, start),
      command: `container ${name} (${image})`.slice(0, COMMAND_CHARACTERS).toWellFormed(),
      task,
      turn,
      client,
    }));
}
