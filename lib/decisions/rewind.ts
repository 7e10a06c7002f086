/**
 * Rewinding a conversation: an appended event that says where it goes on from. Nothing is deleted and no file changes.
 *
 * `rewind` moves the conversation to where it was after an earlier event; everything since leaves the line (lib/ledger/line.ts).
 * It is undone by rewinding to the event just before it, which it returns, any number of times. Requests for approval after
 * the target that were not used are invalidated in the same append (PROTOCOL.md 24) and stay so; a used one stays used.
 * `conversation` is what a resumed agent should believe: every turn with its calls and what was typed, each marked.
 * The append is not lease-bound: a person rewinds while the agent is dead, or under it; its next use of an answer sees it.
 */
import { DurableError } from '../errors.js';
import { isOf, type Recorded } from '../event.js';
import { pickOne } from './pick.js';
import type { Storage } from '../git/storage.js';
import { isUnused } from '../ledger/carried.js';
import { Ledger, listTasks } from '../ledger/ledger.js';
import { lineAt, tipOf, type OnLine } from '../ledger/line.js';
import type { TaskState } from '../ledger/state.js';
import { leaseOf, readLease } from '../lease/record.js';
import { workspaceId } from '../lease/workspace.js';

export interface RewindRequest {
  /**
   * A turn, by its id or a prefix: to just before it began. A number, or `<task>/<number>`: to just after that event. A bare
   * number is of the task that this work tree worked on last.
   */
  readonly target: string;
  /** Why, cut at 2,000 characters. */
  readonly reason?: string;
}

export interface Rewound {
  readonly task: string;
  /** The conversation goes on from after this event. */
  readonly toSeq: number;
  /** Turns that were on the line and have left it, oldest first. */
  readonly turns: readonly string[];
  /** Approvals that this invalidated, oldest first. */
  readonly invalidated: readonly string[];
  /** Rewinding to it (`<task>/<number>`) undoes this. Null when the conversation stood there already: nothing was recorded. */
  readonly undo: string | null;
}

/** Errors: 'not-found', 'ambiguous', 'usage' (a bare number without a task), those of an append. */
export async function rewind(storage: Storage, request: RewindRequest): Promise<Rewound> {
  const { ledger, toSeq } = await targetOf(storage, request.target);
  const done = { task: ledger.task, toSeq };
  let found: Omit<Rewound, 'task' | 'toSeq'> = { turns: [], invalidated: [], undo: null };
  await ledger.append(
    async (state) => {
      const head = state.head?.seq ?? 0;
      const { rewinds, starts } = await marks(ledger);
      if (toSeq < 1 || toSeq > head)
        throw new DurableError('not-found', { what: 'event', id: `${ledger.task}/${String(toSeq)}` });
      if (tipOf(rewinds, toSeq) === tipOf(rewinds, head)) return [];
      const [before, after] = [lineAt(rewinds, head), lineAt(rewinds, toSeq)];
      const turns = starts
        .filter(({ event }) => before(event.seq) && !after(event.seq))
        .flatMap(({ event }) => event.turn ?? []);
      found = { turns, invalidated: unusedAfter(state, toSeq), undo: `${ledger.task}/${String(head)}` };
      return [
        {
          type: 'conversation.rewound',
          turn: null,
          toSeq,
          turns: turns.slice(-MOST_TURNS),
          reason: request.reason ?? '',
        },
      ];
    },
    { lease: null, agent: 'person', workspace: workspaceId(storage, { create: false }) },
  );
  return { ...done, ...found };
}

/** A record must not grow with the ledger: of more turns the newest are named, and `toSeq` says the rest. */
const MOST_TURNS = 1000;

const unusedAfter = (state: TaskState, seq: number): string[] =>
  [...state.approvals.values()]
    .filter((approval) => isUnused(approval) && approval.requested.event.seq > seq)
    .map(({ id }) => id);

export interface ConversationItem {
  /** Number of the event that says it. */
  readonly seq: number;
  readonly at: string;
  readonly kind: 'call' | 'typed';
  /** Of a call: its id and tool; null for what a person typed. */
  readonly invocation: string | null;
  readonly tool: string | null;
  /** A call's summary, or what was typed, cut at 2,000 characters. */
  readonly text: string;
  /** 'proposed', 'started' (in doubt when the turn is over), 'finished', 'failed', 'denied'; of what was typed: 'received'. */
  readonly state: string;
  readonly rewound: boolean;
}

export interface ConversationTurn {
  readonly turn: string;
  /** Number of its first event. */
  readonly seq: number;
  readonly objective: string;
  readonly agent: string;
  readonly startedAt: string;
  readonly state: 'open' | 'finished' | 'interrupted' | 'recovered';
  /** The whole turn has left the line; one that has left it in part has items that say so. */
  readonly rewound: boolean;
  readonly items: readonly ConversationItem[];
}

export interface Conversation {
  readonly task: string;
  /** The newest event that the conversation stands on. */
  readonly tip: number;
  /** Oldest first. */
  readonly turns: readonly ConversationTurn[];
}

/** Reads every event of the task. Errors: 'not-found', 'ledger-damaged'. */
export async function conversation(storage: Storage, task: string): Promise<Conversation> {
  const ledger = Ledger.open(storage, task);
  const head = await ledger.head();
  if (head === null) throw new DurableError('not-found', { what: 'task', id: task });
  const { rewinds } = await marks(ledger, head.commit);
  const telling = new Telling(lineAt(rewinds, head.seq));
  for await (const recorded of ledger.forwards({ to: head.commit })) telling.add(recorded);
  return { task, tip: tipOf(rewinds, head.seq), turns: telling.turns() };
}

type Draft = { -readonly [K in keyof ConversationTurn]: ConversationTurn[K] } & { items: ConversationItem[] };

class Telling {
  readonly #onLine: OnLine;
  readonly #turns = new Map<string, Draft>();

  constructor(onLine: OnLine) {
    this.#onLine = onLine;
  }

  turns(): ConversationTurn[] {
    return [...this.#turns.values()];
  }

  add(recorded: Recorded): void {
    const { event } = recorded;
    if (isOf(recorded, 'turn.started')) this.#begin(recorded);
    const turn = this.#turns.get(event.turn ?? '');
    if (turn === undefined) return;
    if (event.type === 'turn.finished') turn.state = 'finished';
    if (event.type === 'turn.interrupted') turn.state = 'interrupted';
    if (event.type === 'turn.recovered') turn.state = event.action === 'resume' ? 'open' : 'recovered';
    if (event.type === 'steering.received')
      turn.items.push({ ...this.#item(recorded), kind: 'typed', text: event.text, state: 'received' });
    if (event.type === 'invocation.proposed')
      this.#propose(turn, recorded as Recorded<'invocation.proposed'>);
    if (event.type === 'invocation.started') this.#move(turn, { ...event, state: 'started' });
    if (event.type === 'invocation.finished') this.#move(turn, event);
  }

  #begin({ event }: Recorded<'turn.started'>): void {
    const { turn, seq, objective, agent, at } = event;
    if (turn === null) return;
    const rewound = !this.#onLine(seq);
    this.#turns.set(turn, { turn, seq, objective, agent, startedAt: at, state: 'open', rewound, items: [] });
  }

  #item({ event }: Recorded) {
    return { seq: event.seq, at: event.at, invocation: null, tool: null, rewound: !this.#onLine(event.seq) };
  }

  #propose(turn: Draft, recorded: Recorded<'invocation.proposed'>): void {
    const { invocation, tool, summary } = recorded.event;
    const item = {
      ...this.#item(recorded),
      kind: 'call',
      invocation,
      tool,
      text: summary,
      state: 'proposed',
    } as const;
    const again = turn.items.findIndex((one) => one.invocation === invocation);
    if (again === -1) turn.items.push(item);
    else turn.items.splice(again, 1, item);
  }

  /** What left the line did not happen to the conversation: the call is then where it was before. */
  #move(
    turn: Draft,
    moved: { readonly invocation: string; readonly seq: number; readonly state: string },
  ): void {
    const at = turn.items.findIndex((one) => one.invocation === moved.invocation);
    const item = turn.items[at];
    if (item === undefined || (!item.rewound && !this.#onLine(moved.seq))) return;
    turn.items[at] = { ...item, state: moved.state };
  }
}

/** Every rewind and every turn's beginning, oldest first. */
async function marks(
  ledger: Ledger,
  to?: string,
): Promise<{ rewinds: Recorded<'conversation.rewound'>[]; starts: Recorded<'turn.started'>[] }> {
  const rewinds: Recorded<'conversation.rewound'>[] = [];
  const starts: Recorded<'turn.started'>[] = [];
  for await (const recorded of ledger.forwards(to === undefined ? {} : { to })) {
    if (isOf(recorded, 'conversation.rewound')) rewinds.push(recorded);
    if (isOf(recorded, 'turn.started')) starts.push(recorded);
  }
  return { rewinds, starts };
}

async function targetOf(storage: Storage, target: string): Promise<{ ledger: Ledger; toSeq: number }> {
  const numbered = /^(?:([a-z0-9-]+)\/)?(\d{1,15})$/.exec(target);
  if (numbered === null) return beforeTurn(storage, target);
  const task = numbered[1] ?? (await lastTask(storage));
  if (!listTasks(storage).includes(task)) throw new DurableError('not-found', { what: 'task', id: task });
  return { ledger: Ledger.open(storage, task), toSeq: Number(numbered[2]) };
}

/** The task that this work tree worked on last, else the only one there is. Errors: 'usage' when that names none. */
export async function lastTask(storage: Storage): Promise<string> {
  const workspace = workspaceId(storage, { create: false });
  const lease = workspace === null ? null : await readLease(storage, leaseOf(workspace));
  const tasks = listTasks(storage);
  const last = lease?.record.task;
  if (last != null && tasks.includes(last)) return last;
  const [only, ...others] = tasks;
  if (only !== undefined && others.length === 0) return only;
  const detail = only === undefined ? 'there is no task yet' : `name the task: one of ${tasks.join(', ')}`;
  throw new DurableError('usage', { detail });
}

async function beforeTurn(storage: Storage, prefix: string): Promise<{ ledger: Ledger; toSeq: number }> {
  const found: { id: string; ledger: Ledger; toSeq: number }[] = [];
  for (const task of listTasks(storage)) {
    const ledger = Ledger.open(storage, task);
    for await (const { event } of ledger.turnStarts()) {
      if (event.turn?.startsWith(prefix) === true)
        found.push({ id: event.turn, ledger, toSeq: event.seq - 1 });
    }
  }
  return pickOne('turn', prefix, found, ({ id }) => id);
}
