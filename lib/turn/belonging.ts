/**
 * Whether a process belongs to a turn of this repository: to the one under way, or as one that a turn left behind.
 *
 * `belongsTo` asks for the lease that is held: the environment holds its marker, or the lease's holder or one of the processes
 * that the turn has recorded is among the ancestors (same pid and start time, same host and pid namespace). An agent that clears
 * the environment of a command it starts is still its ancestor.
 * `insideTurn` asks for any turn there ever was, of whichever work tree: a marker in the process's own environment or in that of
 * an ancestor, of whichever repository (what an agent here asks for elsewhere it must not answer there), or an ancestor that a ledger names as holder or as a process of a turn in this boot. A process that was left
 * running decides for nobody, however long its turn is over.
 *
 * Caveat: a process that clears its environment and leaves its ancestors by a double fork is not recognised.
 * Cost of `insideTurn` for one outside: each ledger is listed once.
 */
import { digest } from '../canonical.js';
import { hasCode } from '../errors.js';
import { isOf, type HolderRecord, type Recorded } from '../event.js';
import type { Storage } from '../git/storage.js';
import { isOfHere } from '../lease/left.js';
import { entryOf, isSame, MARKER, markerOf, type ProcessIdentity } from '../lease/processes.js';
import { LEASE_PREFIX, seenLease, type LeaseRecord } from '../lease/record.js';
import { Ledger, listTasks } from '../ledger/ledger.js';
import { decodeIn } from '../ledger/load.js';
import { rawEvents } from '../ledger/stream.js';

/** True when the caller belongs to any turn or operation, under way or over, of whichever work tree, or carries another repository's marker. */
export async function insideTurn(storage: Storage): Promise<boolean> {
  const line = ancestors(storage.host.pid);
  const markers = [storage.host.env[MARKER], ...line.map(({ pid }) => markerOf(pid))];
  if (markers.some((marker) => marker !== undefined)) return true;
  for (const ref of storage.refs.names(LEASE_PREFIX)) {
    const record = (await seenLease(storage, ref.slice(LEASE_PREFIX.length)))?.record;
    if (record?.state === 'held' && (await belongsTo(storage, record))) return true;
  }
  for (const task of listTasks(storage)) if (await names(storage, task, line)) return true;
  return false;
}

/** True when the caller, or another process that is asked about, is one of this lease's holder. */
export async function belongsTo(
  storage: Storage,
  record: LeaseRecord,
  one: { readonly pid: number; readonly marker: string | undefined } = {
    pid: storage.host.pid,
    marker: storage.host.env[MARKER],
  },
): Promise<boolean> {
  if (one.marker !== undefined && record.markerHash === digest(one.marker)) return true;
  if (!isOfHere(storage, record.holder)) return false;
  const of = [record.holder, ...(await recordedProcesses(storage, record))];
  return ancestors(one.pid).some((above) => of.some((other) => isSame(above, other)));
}

async function recordedProcesses(storage: Storage, record: LeaseRecord): Promise<readonly ProcessIdentity[]> {
  if (record.task === null) return [];
  const { state } = await Ledger.open(storage, record.task).readable();
  return state.turn?.id === record.turn ? state.turn.processes.map((entry) => entry.process) : [];
}

/** Whether a turn of this task names one of these as its holder or as a process that it started. */
async function names(storage: Storage, task: string, line: readonly ProcessIdentity[]): Promise<boolean> {
  const { head } = (await Ledger.open(storage, task).readable()).state;
  if (head === null) return false;
  const named = new Named(storage);
  try {
    const range = { after: null, to: head.commit, oldestFirst: true };
    for await (const batch of rawEvents(storage, task, range)) {
      for (const { commit, message } of batch) {
        if (!TELLING.some((type) => message.startsWith(type))) continue;
        const process = named.by(decodeIn(task, message, commit));
        if (process !== null && line.some((one) => isSame(one, process))) return true;
      }
    }
  } catch (error) {
    // What cannot be read any more names nobody; the marker and the other ledgers still do.
    if (!hasCode(error, 'ledger-damaged')) throw error;
  }
  return false;
}

const TELLING = ['lease.acquired', 'turn.started', 'turn.recovered', 'process.started'] as const;

/** The processes that a ledger names, event by event: pids of another boot say nothing here. */
class Named {
  readonly #storage: Storage;
  #acquired: HolderRecord | null = null;
  #holder: HolderRecord | null = null;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  by(recorded: Recorded): ProcessIdentity | null {
    if (isOf(recorded, 'lease.acquired')) this.#acquired = recorded.event.holder;
    if (isOf(recorded, 'process.started'))
      return this.#holder !== null && isOfHere(this.#storage, this.#holder) ? recorded.event.process : null;
    if (isOf(recorded, 'turn.started')) this.#holder = recorded.event.holder;
    else if (isOf(recorded, 'turn.recovered') && recorded.event.action === 'resume')
      this.#holder = this.#acquired;
    else return null;
    return this.#holder !== null && isOfHere(this.#storage, this.#holder) ? this.#holder : null;
  }
}

/** The process itself, its parent, and so on. */
function ancestors(pid: number): ProcessIdentity[] {
  const found = new Map<number, ProcessIdentity>();
  for (let entry = entryOf(pid); entry !== null && !found.has(entry.pid); entry = entryOf(entry.parent))
    found.set(entry.pid, entry);
  return [...found.values()];
}
