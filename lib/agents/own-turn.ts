/**
 * The turn of an agent's session, and its calls as the ledger names them.
 *
 * An agent whose own process holds the work tree has that turn in the session that started it, and in no other one. One that a turn
 * of somebody else has started (`git durable run -- AGENT`, an agent that another agent calls) is part of that turn: its steps are recorded in
 * it, and it neither begins nor ends it. When who began it is dead, the turn is over for that agent too (`isCut`): a change is refused,
 * and its next prompt recovers that turn and begins one of its own.
 */
import { hasCode } from '../errors.js';
import { argsText } from '../decisions/fingerprint.js';
import type { Storage } from '../git/storage.js';
import type { ProcessIdentity } from '../lease/processes.js';
import type { LeaseRecord } from '../lease/record.js';
import { attach, type Attached } from '../turn/attach.js';
import { belongsTo } from '../turn/belonging.js';
import type { Call } from '../turn/call.js';
import type { AgentName, StepOf } from './step.js';

export interface AgentProcess {
  readonly agent: AgentName;
  /** The process whose death ends the turn. */
  readonly process: ProcessIdentity;
  /** The turn's secret as the agent's environment has it. */
  readonly marker?: string | undefined;
}

export interface OwnTurn extends Attached {
  /** Of whoever started this agent. */
  readonly isJoined: boolean;
  /** Joined, and who started this agent is proven dead: nothing more may begin in it, and what has happened may still be recorded. */
  readonly isCut: boolean;
}

/** The turn of this session and this very process, or the one that it is part of; null when there is none. */
export async function ownTurn(storage: Storage, by: AgentProcess, session: string): Promise<OwnTurn | null> {
  let isJoined = false;
  let isCut = false;
  const isOwn = async (_: Storage, record: LeaseRecord): Promise<boolean> => {
    const place = await placeIn(storage, record, { by, session });
    isJoined = place === 'joined';
    isCut = isJoined && storage.identity.judge(record.holder).verdict === 'dead';
    return place !== 'none';
  };
  try {
    return { ...(await attach(storage, isOwn)), isJoined, isCut };
  } catch (error) {
    if (hasCode(error, 'no-turn') || hasCode(error, 'lease-lost')) return null;
    throw error;
  }
}

/** What an agent's session is in the turn that holds the work tree. */
export async function placeIn(
  storage: Storage,
  record: LeaseRecord,
  { by: { process, marker }, session }: { readonly by: AgentProcess; readonly session: string },
): Promise<'own' | 'joined' | 'none'> {
  const { sessions, holder, kind } = record;
  if (holder.pid === process.pid && holder.start === process.start)
    return sessions.includes(session) ? 'own' : 'none';
  const isPart = kind === 'turn' && (await belongsTo(storage, record, { pid: process.pid, marker }));
  return isPart ? 'joined' : 'none';
}

export function callOf(
  storage: Storage,
  step: StepOf<'before-tool' | 'after-tool' | 'permission'>,
): Call & { readonly summary: string } {
  const { workTree } = storage.layout;
  const summary = argsText(step.input).slice(0, 200);
  const call = { tool: step.tool, args: step.input, cwd: step.cwd ?? workTree, summary };
  return step.call === null ? call : { ...call, key: keyOf(step.session, step.call) };
}

/** What a call, or a question, of a host is known by in the ledger. */
export function keyOf(session: string, id: string): string {
  return `${session}:${id}`;
}
