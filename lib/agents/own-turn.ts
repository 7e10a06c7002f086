/** The turn of an agent's session, and its calls as the ledger names them. */
import { hasCode } from '../errors.js';
import { argsText } from '../decisions/fingerprint.js';
import type { Storage } from '../git/storage.js';
import type { ProcessIdentity } from '../lease/processes.js';
import type { LeaseRecord } from '../lease/record.js';
import { attach, type Attached } from '../turn/attach.js';
import type { Call } from '../turn/call.js';
import type { AgentName, StepOf } from './step.js';

export interface AgentProcess {
  readonly agent: AgentName;
  /** The process whose death ends the turn. */
  readonly process: ProcessIdentity;
}

/** The turn of this session and this very process; null when it holds none. */
export async function ownTurn(
  storage: Storage,
  { process: { pid, start } }: AgentProcess,
  session: string,
): Promise<Attached | null> {
  const isOwn = (_: Storage, { sessions, holder }: LeaseRecord): boolean =>
    sessions.includes(session) && holder.pid === pid && holder.start === start;
  try {
    return await attach(storage, isOwn);
  } catch (error) {
    if (hasCode(error, 'no-turn') || hasCode(error, 'lease-lost')) return null;
    throw error;
  }
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
