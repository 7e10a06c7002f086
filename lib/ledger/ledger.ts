/**
 * A task's ledger: open it, read its state, append to it.
 *
 *     const ledger = await openTask(storage, { objective });          // a new task, or an old one by its id
 *     const state = await ledger.state();
 *     await ledger.append((state) => [draft], { lease: token, agent, workspace });
 *     for await (const { event } of ledger.backwards()) …
 *
 * The state at the last head seen is kept with the opened repository and folded forward by what is new; the ref is read anew each
 * time, so nothing here is ever stale by more than another process's append. Events are streamed, never held. Several
 * appends of one process may run at once: they meet at the compare-and-swap like those of several processes.
 */
import { DurableError, hasCode } from '../errors.js';
import { isOf, type EventType, type Recorded } from '../event.js';
import { Contents } from '../git/contents.js';
import type { Storage } from '../git/storage.js';
import { freshId } from '../host.js';
import { append, type AppendTo, type Decide } from './append.js';
import type { Redact } from './fit.js';
import { initialState } from './fold.js';
import { advanceState, decodeIn, loadState, readEvent } from './load.js';
import type { AppendBy } from './plan.js';
import { repairTip } from './repair.js';
import type { LedgerHead, TaskState } from './state.js';
import { rawEvents } from './stream.js';
import { eventBefore, readableTip, readTip } from './torn.js';
import { verifyLedger, type Verification, type VerifyOf } from './verify.js';

export const TASKS_PREFIX = 'refs/durable/tasks/';

export interface StreamOptions {
  /** Only what came after this commit. */
  readonly after?: string;
  /** Only up to this commit, itself included; default the head. */
  readonly to?: string;
  readonly type?: EventType;
}

export interface Readable {
  /** The state at the newest event that can be read. */
  readonly state: TaskState;
  /** What is wrong with a newer one, null when nothing is. */
  readonly damage: DurableError | null;
}

/** By task, as last seen: a verb that asks four questions of 200 tasks reads each of them once. */
const KNOWN = new WeakMap<Storage, Map<string, TaskState>>();

function knownStates(storage: Storage): Map<string, TaskState> {
  const known = KNOWN.get(storage) ?? new Map<string, TaskState>();
  KNOWN.set(storage, known);
  return known;
}

export interface LedgerOptions {
  /** Applied to every text before it is cut and recorded; default: none. */
  readonly redact?: Redact;
}

export class Ledger {
  readonly task: string;
  readonly ref: string;
  readonly contents: Contents;
  readonly #storage: Storage;
  readonly #redact: Redact;
  readonly #known: Map<string, TaskState>;
  /** Keys of turn.started seen on earlier turns, and the first turn of which all earlier ones are in it. */
  readonly #turnKeys = new Map<string, string>();
  #turnKeysFrom: string | null = null;

  private constructor(storage: Storage, task: string, options: LedgerOptions) {
    this.#storage = storage;
    this.task = task;
    this.ref = `${TASKS_PREFIX}${task}`;
    this.contents = new Contents(storage, task);
    this.#redact = options.redact ?? ((text) => text);
    this.#known = knownStates(storage);
  }

  /** Reads nothing yet. Errors: 'usage' for an id that is none. */
  static open(storage: Storage, task: string, options: LedgerOptions = {}): Ledger {
    if (!/^[a-z0-9][a-z0-9-]{0,63}$/.test(task)) {
      throw new DurableError('usage', {
        detail: `'${task}' is not a task id (lower-case letters, digits, dashes); type 'git durable log' to see them`,
      });
    }
    return new Ledger(storage, task, options);
  }

  /** The newest event's place; null when nothing was appended yet. Errors as `state`. */
  async head(): Promise<LedgerHead | null> {
    return (await this.state()).head;
  }

  /** Errors: 'ledger-damaged' (see `readable`), 'version-unsupported'. */
  async state(): Promise<TaskState> {
    const { commit, damage } = await readTip(this.#storage, this.task, this.ref);
    if (damage !== null) throw damage;
    return this.#at(commit);
  }

  /** As `state`, but goes back to the newest readable event when the newest is damaged. Errors: 'version-unsupported'. */
  async readable(): Promise<Readable> {
    const { commit: head, damage } = await readTip(this.#storage, this.task, this.ref);
    try {
      return { state: await this.#at(head), damage };
    } catch (error) {
      if (head === null || !hasCode(error, 'ledger-damaged')) throw error;
      const before = await eventBefore(this.#storage, this.task, error.fields.commit ?? head, null);
      const state =
        before === null ? initialState(this.task) : await loadState(this.#storage, this.task, before);
      return { state, damage: damage ?? error };
    }
  }

  /** What is wrong with the ref or the newest event, at the cost of one read; what lies before is `readable`'s to find. */
  async tipDamage(): Promise<DurableError | null> {
    const { commit, damage } = await readTip(this.#storage, this.task, this.ref);
    if (damage !== null || commit === null) return damage;
    try {
      await this.event(commit);
      return null;
    } catch (error) {
      if (hasCode(error, 'ledger-damaged')) return error;
      throw error;
    }
  }

  /** See lib/ledger/append.ts for guarantees and errors. A torn newest event is set aside first, when that is safe. */
  async append(decide: Decide, by: AppendBy): Promise<readonly Recorded[]> {
    try {
      return await append(this.#appendTo(), decide, by);
    } catch (error) {
      if (!hasCode(error, 'ledger-damaged') || !(await this.#repair(by.agent, false))) throw error;
      return append(this.#appendTo(), decide, by);
    }
  }

  /** Sets a torn newest event aside, and mends a damaged ref (lib/ledger/repair.ts). True when it did. */
  async repair(agent: string): Promise<boolean> {
    return this.#repair(agent, true);
  }

  /** Oldest first. Errors: 'ledger-damaged' after all that can be read, 'version-unsupported'. */
  forwards(options: StreamOptions = {}): AsyncGenerator<Recorded, void> {
    return this.#stream(options, true);
  }

  /** Newest first. Errors as `forwards`. */
  backwards(options: StreamOptions = {}): AsyncGenerator<Recorded, void> {
    return this.#stream(options, false);
  }

  /** Errors: 'ledger-damaged', 'version-unsupported'. */
  async event(commit: string): Promise<Recorded> {
    return (await readEvent(this.#storage, this.task, commit)).recorded;
  }

  /** The first event of each turn, newest first; each names the one before. */
  async *turnStarts(): AsyncGenerator<Recorded<'turn.started'>, void> {
    const { turnStart } = await this.state();
    yield* this.#turnStartsFrom(turnStart);
  }

  /** Never throws for damage: it becomes a finding. */
  verify(options: Pick<VerifyOf, 'contents'> = {}): Promise<Verification> {
    return verifyLedger(this.#storage, { task: this.task, ref: this.ref, ...options });
  }

  async #repair(agent: string, isAsked: boolean): Promise<boolean> {
    const of = { task: this.task, ref: this.ref, agent, isAsked };
    return (await repairTip(this.#storage, of)) !== null;
  }

  async #at(head: string | null): Promise<TaskState> {
    if (head === null) return initialState(this.task);
    const known = this.#known.get(this.task) ?? initialState(this.task);
    if (known.head?.commit === head) return known;
    const state = await advanceState(this.#storage, known, head);
    this.#known.set(this.task, state);
    return state;
  }

  #appendTo(): AppendTo {
    return {
      storage: this.#storage,
      task: this.task,
      ref: this.ref,
      redact: this.#redact,
      at: (head) => this.#at(head),
      event: (commit) => this.event(commit),
      earlier: (state, key) => this.#turnWithKey(state, key),
      moved: (state) => {
        this.#known.set(this.task, state);
      },
    };
  }

  /** Hops over all turns once, and later only over those that are new. */
  async #turnWithKey(state: TaskState, key: string): Promise<string | null> {
    const until = this.#turnKeysFrom;
    for await (const { commit, event } of this.#turnStartsFrom(state.turnStart)) {
      if (commit === until) break;
      if (event.key !== null && !this.#turnKeys.has(event.key)) this.#turnKeys.set(event.key, commit);
    }
    this.#turnKeysFrom = state.turnStart;
    return this.#turnKeys.get(key) ?? null;
  }

  async *#turnStartsFrom(commit: string | null): AsyncGenerator<Recorded<'turn.started'>, void> {
    for (let at = commit; at !== null;) {
      const { recorded } = await readEvent(this.#storage, this.task, at);
      if (!isOf(recorded, 'turn.started')) {
        const detail = 'it starts no turn, though one names it so';
        throw new DurableError('ledger-damaged', { task: this.task, commit: at, detail });
      }
      yield recorded;
      at = recorded.event.previousTurn;
    }
  }

  async *#stream(options: StreamOptions, oldestFirst: boolean): AsyncGenerator<Recorded, void> {
    const tip = await readableTip(this.#storage, this.task, this.ref);
    const damage = options.to === undefined ? tip.damage : null;
    const to = options.to ?? tip.commit;
    if (to === null) {
      if (damage !== null) throw damage;
      return;
    }
    const range = { after: options.after ?? null, to, oldestFirst };
    for await (const batch of rawEvents(this.#storage, this.task, range)) {
      for (const { message, commit } of batch) {
        const recorded = decodeIn(this.task, message, commit);
        if (options.type === undefined || recorded.event.type === options.type) yield recorded;
      }
    }
    // All that can be read was given, and the caller is told that its end is not known from the ref.
    if (damage !== null) throw damage;
  }
}

export interface OpenTask {
  /** An existing task, or the id of a new one; default: a fresh id. */
  readonly task?: string;
  readonly objective: string;
  /** The task of a work tree that holds what happens outside turns. */
  readonly standing?: boolean;
  readonly agent: string;
  readonly workspace: string | null;
  readonly redact?: Redact;
}

/** Opens a task, and begins its ledger with task.opened if it has none. Errors as `Ledger.append`. */
export async function openTask(storage: Storage, options: OpenTask): Promise<Ledger> {
  const { redact, objective, standing = false, agent, workspace } = options;
  const ledger = Ledger.open(
    storage,
    options.task ?? freshId(storage.host),
    redact === undefined ? {} : { redact },
  );
  await ledger.append(
    (state) => (state.opened === null ? [{ type: 'task.opened', objective, standing }] : []),
    {
      lease: null,
      agent,
      workspace,
    },
  );
  return ledger;
}

/** Ids of all tasks that have a ledger here, sorted; those too whose ref is damaged. */
export function listTasks(storage: Storage): string[] {
  return storage.refs.names(TASKS_PREFIX).map((ref) => ref.slice(TASKS_PREFIX.length));
}
