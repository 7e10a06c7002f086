/**
 * Finding the processes of a turn: what may still write after its agent died (PROTOCOL.md 13).
 *
 * A process belongs to a turn when it carries the turn's marker in its environment, is one of the recorded processes
 * (same pid and same start time), is in a process group or session that a recorded process leads, names a dead holder as its
 * agent, or descends from one of these. What never belongs: a process that merely reuses a recorded pid, a zombie, the caller and its ancestors (a
 * person may type `recover` in a shell that the dead turn started; then what the caller started does not either), and what
 * `except` names. Of a turn of another repository that was begun inside this one (`isForeign`) neither its holder belongs to this
 * one nor anything that it started: what is told apart is a process that carries another marker than its parent does.
 *
 * Caveats: a process that clears its environment and double-forks out of its group and session is not found. A group is
 * told by its number: a number that was reused by a second leader which died in its turn would be taken for the first. Of a
 * turn that ended long ago (`isOver`) the number of a dead leader therefore tells nothing: what was in its group at the end
 * is among the recorded ones by itself, and the system gives no number out again while a group of that number has members.
 * Environments of other users' processes cannot be read. On macOS `ps` shows the environment of one's own processes.
 */
import { readdirSync } from 'node:fs';
import { digest } from '../canonical.js';
import type { ProcessRecord } from '../event.js';
import { errno } from '../git/disk.js';
import { ps, readProc, variablesOf } from './process-reading.js';

/** Name of the environment variable that holds a turn's secret; only its SHA-256 is ever stored. */
export const MARKER = 'DURABLE_MARKER';

/** Variables in which agents give what they start their own pid. Their shells lead sessions of their own, and carry no marker. */
export const AGENT_PIDS: readonly string[] = ['CLAUDE_PID', 'OPENCODE_PID', 'KILO_PID'];

export interface ProcessIdentity {
  readonly pid: number;
  readonly start: string;
}

export interface ProcessEntry extends ProcessIdentity {
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  readonly zombie: boolean;
  readonly stopped: boolean;
}

export interface ProcessSearch {
  readonly markerHash: string | null;
  readonly recorded: readonly ProcessIdentity[];
  /** Of `recorded`: those that hold or held the turn. They may lead a group or session that is not the turn's alone. */
  readonly holders?: readonly ProcessIdentity[];
  /** The process that asks: it and its ancestors are never in the answer. */
  readonly caller: number;
  /** Others never to be in the answer: a keeper of the caller. */
  readonly except?: readonly ProcessIdentity[];
  /** `recorded` are those that were alive at the turn's end: a group counts while its leader lives. */
  readonly isOver?: boolean;
  /** Whether a marker is of a turn that is not this repository's (lib/lease/foreign.ts). */
  readonly isForeign?: (marker: string) => boolean;
  /** Told of the holder of each such turn, or of its first process where the holder is gone. */
  readonly onForeign?: (process: ProcessRecord) => void;
}

/** The hash of a process's marker, null where it has none or hides it. */
export type Markers = (pid: number) => string | null;

/** Reads each environment once, for several searches in one table. */
export function readMarkers(): Markers {
  const known = new Map<number, string | null>();
  return (pid) => {
    const hash = known.has(pid) ? (known.get(pid) ?? null) : markerHashOf(pid);
    known.set(pid, hash);
    return hash;
  };
}

/** Every process of the turn that is alive (stopped ones are), by pid. */
export function findProcesses(
  search: ProcessSearch,
  table: readonly ProcessEntry[] = processTable(),
  markers: Markers = markerHashOf,
): ProcessRecord[] {
  const byPid = new Map(table.map((entry) => [entry.pid, entry]));
  const found = new Set<number>();
  for (const entry of table) {
    if (belongs(entry, search, { byPid, markers })) found.add(entry.pid);
  }
  addDescendants(found, table);
  const spared = sparedPids(search, byPid);
  // A caller that runs inside the turn (a shell of it) started its helpers there too. One outside may have started the
  // agent itself: what it started is the turn's then, and no helper of its own.
  if (found.has(search.caller)) addDescendants(spared, table, new Set([search.caller]));
  for (const entry of foreignHolders(search, found, byPid)) {
    if (!spared.has(entry.pid) && !entry.zombie) search.onForeign?.(recordOf(entry));
    addDescendants(spared, table, new Set([entry.pid]));
  }
  return table
    .filter((entry) => found.has(entry.pid) && !spared.has(entry.pid) && !entry.zombie)
    .sort((a, b) => a.pid - b.pid)
    .map(recordOf);
}

const recordOf = ({ pid, start }: ProcessEntry): ProcessRecord => ({ pid, start, command: commandOf(pid) });

/** Those that began a turn which is not ours: they are the parents of the first processes with its marker. */
function foreignHolders(
  { isForeign, recorded, holders = [] }: ProcessSearch,
  found: ReadonlySet<number>,
  byPid: ReadonlyMap<number, ProcessEntry>,
): Set<ProcessEntry> {
  const foreign = new Set<ProcessEntry>();
  if (isForeign === undefined) return foreign;
  for (const pid of found) {
    const entry = byPid.get(pid);
    const marker = markerOf(pid);
    if (entry === undefined || marker === undefined || !isForeign(marker)) continue;
    // A turn may itself be begun inside another one: what it is known to have started is its own, whatever it carries.
    if (recorded.some((one) => isSame(one, entry)) || markerOf(entry.parent) === marker) continue;
    const parent = byPid.get(entry.parent);
    const isHolder =
      parent !== undefined && found.has(parent.pid) && !holders.some((one) => isSame(one, parent));
    foreign.add(isHolder ? parent : entry);
  }
  return foreign;
}

/** As git judges a pid: one that may be signalled, or that is another user's; whoever has it. */
export function isPidTaken(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errno(error) !== 'ESRCH';
  }
}

/** True when the process is there with that start time and is no zombie. */
export function isRunning(process: ProcessIdentity, table = entryOf(process.pid)): boolean {
  return table !== null && table.start === process.start && !table.zombie;
}

function belongs(
  entry: ProcessEntry,
  search: ProcessSearch,
  { byPid, markers }: { byPid: ReadonlyMap<number, ProcessEntry>; markers: Markers },
): boolean {
  const { recorded, markerHash, isOver, holders = [] } = search;
  if (recorded.some((one) => isSame(one, entry))) return true;
  const led = recorded.filter((one) =>
    isLedBy(entry, one, { now: byPid.get(one.pid), isOver: isOver ?? false }),
  );
  if (led.some((one) => !holders.some((holder) => isSame(holder, one)))) return true;
  if (led.length > 0 && isLeftBehind(entry, search, byPid)) return true;
  const dead = holders.filter(({ pid, start }) => byPid.get(pid)?.start !== start);
  if (dead.length > 0 && dead.some((holder) => namesAgent(entry, holder))) return true;
  return markerHash !== null && markers(entry.pid) === markerHash;
}

/**
 * Whether a member of a holder's group or session came from the turn. A shell with job control puts a whole pipeline into the
 * group that `run` leads: what it started there besides is older than the turn's first process, and its parent, of the same
 * session, lives. What the turn left was handed to a reaper, or descends from what is found in another way.
 */
function isLeftBehind(
  entry: ProcessEntry,
  { recorded, holders = [] }: ProcessSearch,
  byPid: ReadonlyMap<number, ProcessEntry>,
): boolean {
  const parent = byPid.get(entry.parent);
  if (parent !== undefined && parent.pid !== 1 && parent.session === entry.session) return false;
  const own = recorded.filter((one) => !holders.some((holder) => isSame(holder, one)));
  const since = Math.min(...(own.length > 0 ? own : holders).map(({ start }) => Number(start)));
  // Start times that are no numbers (ps) cannot be compared.
  return Number.isNaN(since) || Number.isNaN(Number(entry.start)) || Number(entry.start) >= since;
}

/** Started by `agent`, as its environment says; what is older than `agent` names another one that had its pid. */
function namesAgent(entry: ProcessEntry, agent: ProcessIdentity): boolean {
  if (Number(entry.start) < Number(agent.start)) return false;
  return variablesOf(entry.pid, AGENT_PIDS).includes(String(agent.pid));
}

/** The pid alone is given again to others. */
export const isSame = (a: ProcessIdentity, b: ProcessIdentity): boolean =>
  a.pid === b.pid && a.start === b.start;

/** In the group or session of `leader`, which still is the recorded process, or is gone with its number not reused. */
function isLedBy(
  entry: ProcessEntry,
  leader: ProcessIdentity,
  { now, isOver }: { now: ProcessEntry | undefined; isOver: boolean },
): boolean {
  if (entry.group !== leader.pid && entry.session !== leader.pid) return false;
  return now === undefined ? !isOver : now.start === leader.start;
}

/** Adds to `pids` all that descends from `from`. */
export function addDescendants(
  pids: Set<number>,
  table: readonly ProcessEntry[],
  from = new Set(pids),
): void {
  for (let before = -1; before !== from.size;) {
    before = from.size;
    for (const entry of table) if (from.has(entry.parent)) from.add(entry.pid);
  }
  for (const pid of from) pids.add(pid);
}

/** The caller, its ancestors, init, and what `except` names. */
function sparedPids(search: ProcessSearch, byPid: ReadonlyMap<number, ProcessEntry>): Set<number> {
  const spared = new Set([1, search.caller]);
  for (const one of search.except ?? []) {
    if (byPid.get(one.pid)?.start === one.start) spared.add(one.pid);
  }
  addAncestors(spared, search.caller, byPid);
  return spared;
}

export function addAncestors(pids: Set<number>, of: number, byPid: ReadonlyMap<number, ProcessEntry>): void {
  for (let at = byPid.get(of); at !== undefined && at.parent !== 0; at = byPid.get(at.parent))
    pids.add(at.parent);
}

/** Every process that this one may see. A process that ends while it is read is left out. */
export function processTable(): ProcessEntry[] {
  return process.platform === 'linux' ? linuxTable() : psTable(['-axo', PS_COLUMNS]);
}

export function entryOf(pid: number): ProcessEntry | null {
  if (process.platform === 'linux') return linuxEntry(pid);
  return psTable(['-p', String(pid), '-o', PS_COLUMNS])[0] ?? null;
}

function linuxTable(): ProcessEntry[] {
  const entries: ProcessEntry[] = [];
  for (const name of readdirSync('/proc')) {
    const entry = /^\d+$/.test(name) ? linuxEntry(Number(name)) : null;
    if (entry !== null) entries.push(entry);
  }
  return entries;
}

/** proc_pid_stat(5): the command stands in parentheses and may hold any character, so fields count from the last one. */
function linuxEntry(pid: number): ProcessEntry | null {
  const text = readProc(pid, 'stat')?.toString('latin1');
  if (text === undefined) return null;
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = '', parent = '0', group = '0', session = '0'] = fields;
  return {
    pid,
    start: fields[19] ?? '',
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    // A leader that ended before its other threads shows as a zombie while they still write.
    zombie: (state === 'Z' || state === 'X') && Number(fields[17] ?? '0') <= 1,
    stopped: state === 'T' || state === 't',
  };
}

function markerHashOf(pid: number): string | null {
  const value = markerOf(pid);
  return value === undefined ? null : digest(value);
}

/** The marker that the process was started with; undefined when it has none, is gone or is another user's. */
export const markerOf = (pid: number): string | undefined => variablesOf(pid, [MARKER])[0];

const COMMAND_CHARACTERS = 200;

/** The command line, cut; empty when the process is gone or hides it. */
export function commandOf(pid: number): string {
  const line =
    process.platform === 'linux'
      ? readProc(pid, 'cmdline')?.toString('utf8').replaceAll('\0', ' ')
      : ps(['-p', String(pid), '-o', 'command=']);
  return (line ?? '').trim().slice(0, COMMAND_CHARACTERS).toWellFormed();
}

/** ps(1) of macOS and the BSDs; lstart has five words and stands last but for the state. */
const PS_COLUMNS = 'pid=,ppid=,pgid=,sess=,state=,lstart=';

function psTable(args: readonly string[]): ProcessEntry[] {
  return ps(args)
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((words) => words.length >= 10)
    .map(([pid, parent, group, session, state = '', ...start]) => ({
      pid: Number(pid),
      parent: Number(parent),
      group: Number(group),
      session: Number(session),
      zombie: state.startsWith('Z'),
      stopped: state.startsWith('T'),
      start: start.join(' '),
    }));
}
