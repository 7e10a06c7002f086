/**
 * Taking in what lies in the inbox (lib/agents/inbox.ts), oldest first.
 *
 * A payload is appended under the very acquisition under which it came and under no other one, not even a later one of its own
 * agent (PROTOCOL.md 6): its turn is open, and its agent's process holds it. It goes through the gate as it would have then, so that
 * what was appended after all is found by its key, and is not appended again. Once its turn is over, nothing appends it: a `git.observed`, bound to no
 * lease, says of what it was too late, with no word of its text, and the file is set aside for a person.
 * Killed anywhere, the same is done again and ends the same.
 */
import type { Storage } from '../git/storage.js';
import { workspaceId } from '../lease/workspace.js';
import { leaseOf, readLease } from '../lease/record.js';
import { Ledger } from '../ledger/ledger.js';
import type { TurnState } from '../ledger/state.js';
import { cut } from '../ledger/subject.js';
import type { Attached } from '../turn/attach.js';
import {
  dropPayload,
  inboxFiles,
  lateName,
  readPayload,
  setAside,
  type InboxFile,
  type KeptPayload,
  type PayloadPlace,
} from './inbox.js';
import { keyOf, ownTurn, placeIn, type AgentProcess } from './own-turn.js';
import type { Reply, Step } from './step.js';
import { stepIn } from './translate.js';

/** One step through the gate. */
export type TakeStep = (storage: Storage, by: AgentProcess, step: Step) => Promise<Reply>;

export interface Delivered {
  readonly appended: number;
  /** Names of the files that were set aside. */
  readonly late: readonly string[];
}

/**
 * `of`: only what this process reported; default: what any did in this work tree. Stops at the first that cannot be taken in yet: a later one
 * may say what became of it. Errors: those of an append, the disk's; what was not taken in stays.
 */
export async function deliverInbox(
  storage: Storage,
  take: TakeStep,
  of?: AgentProcess['process'],
): Promise<Delivered> {
  let appended = 0;
  const late: string[] = [];
  for (const file of inboxFiles(storage)) {
    const kept = file.isLate ? null : readPayload(file);
    if (kept === null || kept.workTree !== storage.layout.workTree) continue;
    if (of !== undefined && (kept.process.pid !== of.pid || kept.process.start !== of.start)) continue;
    const outcome = await deliver(storage, take, { file, kept });
    if (outcome === 'waits') break;
    if (outcome === 'appended') appended += 1;
    else late.push(outcome);
  }
  return { appended, late };
}

/** The turn that a payload of this agent is of now; null where nobody can tell. Never throws. */
export async function placeOf(
  storage: Storage,
  by: AgentProcess,
  session: string,
): Promise<PayloadPlace | null> {
  try {
    const workspace = workspaceId(storage, { create: false });
    const record = workspace === null ? undefined : (await readLease(storage, leaseOf(workspace)))?.record;
    if (record === undefined) return null;
    // Of an agent that has died meanwhile no start is known; nothing is appended for it.
    const isDead = by.process.start === '' && by.process.pid === record.holder.pid;
    const of = isDead ? { ...by, process: record.holder } : by;
    if ((await placeIn(storage, record, { by: of, session })) === 'none') return null;
    const { task, turn, epoch } = record;
    return task === null || turn === null ? null : { task, turn, epoch };
  } catch {
    // The very reason why it goes to the inbox.
    return null;
  }
}

interface Waiting {
  readonly file: InboxFile;
  readonly kept: KeptPayload;
}

/** 'waits', 'appended', or the name under which it is set aside. */
async function deliver(storage: Storage, take: TakeStep, waiting: Waiting): Promise<string> {
  const { file, kept } = waiting;
  const by: AgentProcess = { agent: kept.agent, process: kept.process };
  const step = stepOf(kept);
  const own = step === null ? null : await ownTurn(storage, by, step.session);
  if (step !== null && own !== null && (await belongs(own, kept, step))) {
    await take(storage, by, step);
    dropPayload(storage, file);
    return 'appended';
  }
  const turn = await turnOf(storage, kept.place);
  if (own === null && turn?.state === 'open') return 'waits';
  if (step !== null && turn !== null && isRecorded(turn, step)) {
    dropPayload(storage, file);
    return 'appended';
  }
  await observeLate(storage, { waiting, step, turn });
  return setAside(storage, file);
}

/** Null for what this program does not understand any more. */
function stepOf({ agent, payload }: KeptPayload): Step | null {
  try {
    return stepIn(agent, payload);
  } catch {
    // It was understood when it was kept: an older or a newer program did.
    return null;
  }
}

/** Whether this is the acquisition under which it came. A call tells its turn; an end is of the turn that was open then. */
async function belongs(
  { context: { turn: id, held, ledger } }: Attached,
  { place }: KeptPayload,
  step: Step,
): Promise<boolean> {
  const { turn } = await ledger.state();
  const { epoch } = held.token;
  if (turn === null || turn.started.event.epoch !== epoch) return false;
  if (place !== null && (place.turn !== id || place.epoch !== epoch)) return false;
  if (step.kind !== 'after-tool') return place !== null;
  return callIn(turn, step) !== undefined;
}

const callIn = (turn: TurnState, step: Step): TurnState['invocations'][number] | undefined =>
  step.kind === 'after-tool' && step.call !== null
    ? turn.invocations.find(({ key }) => key === keyOf(step.session, step.call ?? ''))
    : undefined;

/** The turn of that place, when it is still the newest of its task. */
async function turnOf(storage: Storage, place: PayloadPlace | null): Promise<TurnState | null> {
  if (place === null) return null;
  const { turn } = (await Ledger.open(storage, place.task).readable()).state;
  return turn?.id === place.turn ? turn : null;
}

/** Appended after all: the hook was late, or was killed, between its append and its answer. */
function isRecorded(turn: TurnState, step: Step): boolean {
  if (step.kind === 'after-tool') return callIn(turn, step)?.finished != null;
  return step.kind === 'session-end' && turn.state === 'finished';
}

async function observeLate(
  storage: Storage,
  { waiting: { file, kept }, step, turn }: { waiting: Waiting; step: Step | null; turn: TurnState | null },
): Promise<void> {
  if (kept.place === null) return;
  const { task } = kept.place;
  const what = `too late, and kept in durable/inbox/${lateName(file)}: ${kept.agent} said ${saidIn(step)}`;
  const draft = {
    type: 'git.observed',
    turn: turn?.id ?? null,
    key: `inbox:${file.name}`,
    what: cut(what, 200),
    ref: null,
    before: null,
    after: null,
    process: null,
  } as const;
  const workspace = workspaceId(storage, { create: false });
  await Ledger.open(storage, task).append(() => [draft], { lease: null, agent: kept.agent, workspace });
}

function saidIn(step: Step | null): string {
  switch (step?.kind) {
    case 'after-tool':
      return `that ${step.tool} ${step.isFailed ? 'failed' : 'finished'} (call ${step.call ?? 'without an id'})`;
    case 'stop':
      return `that the turn was ${step.outcome}`;
    case 'session-end':
      return 'that the session ended';
    case 'answer':
      return 'what a person answered';
    default:
      return 'what is not understood';
  }
}
