/** A step that no keeper takes: the hook's own process opens the repository and puts it on record. Loaded only then. */
import { isAbsolute } from 'node:path';
import { agentProcess } from '../lib/agents/agent-process.js';
import { answerTo, isQuestionUnclear, takeInTime, unclear, type HookCall } from '../lib/agents/answer.js';
import { isReport, keep } from '../lib/agents/report.js';
import type { Reply, Step } from '../lib/agents/step.js';
import { stepIn } from '../lib/agents/translate.js';
import { processFaultActions } from '../lib/git/fault-actions.js';
import { plannedFaults } from '../lib/git/fault.js';
import { openStorage, type Storage } from '../lib/git/storage.js';
import { hasCode, messageOf } from '../lib/errors.js';
import { systemHost, type Host } from '../lib/host.js';
import { MARKER } from '../lib/lease/processes.js';
import { offerOwnGitTo } from '../lib/agents/own-git.js';
import { reviveKeeper } from '../lib/agents/revive.js';
import type { AgentProcess } from '../lib/agents/own-turn.js';

/** What is printed. `agentPid`: as the environment says it. */
export async function answerDirectly(call: HookCall, payload: string, agentPid: string): Promise<string> {
  let step: Step | null;
  try {
    step = stepIn(call.agent, payload);
  } catch (error) {
    if (!isQuestionUnclear(payload)) await keepUnclear(call, { payload, agentPid }, messageOf(error));
    return unclear(call, payload, error);
  }
  return step === null ? '' : answerTo(call, step, (one) => inRepository(call, one, { payload, agentPid }));
}

interface Handed {
  readonly payload: string;
  readonly agentPid: string;
}

async function inRepository(call: HookCall, step: Step, { payload, agentPid }: Handed): Promise<Reply> {
  const storage = await openStorage(step.cwd ?? process.cwd(), ourHost());
  try {
    const found = agentProcess({ agentPid, parent: process.ppid }, { orDead: isReport(step) });
    const by = { agent: call.agent, process: found, marker: storage.host.env[MARKER] };
    offer(storage, by, { call, step });
    // The host's clock begins with this process.
    const reply = await takeInTime(storage, { call, by, payload, beganMs: 0 }, step);
    if (!OUTSIDE_TURN.has(step.kind)) await revive(storage, by, { call, step });
    return reply;
  } finally {
    await storage.close();
  }
}

/** What tells of something that happened, and is not understood, is kept whole: a newer program, or a person, may read it. Never throws. */
async function keepUnclear(call: HookCall, { payload, agentPid }: Handed, why: string): Promise<void> {
  if (payload.trim() === '') return;
  const { cwd, session } = placeIn(payload);
  try {
    const storage = await openStorage(cwd, ourHost());
    try {
      const found = agentProcess({ agentPid, parent: process.ppid }, { orDead: true });
      const by = { agent: call.agent, process: found, marker: storage.host.env[MARKER] };
      await keep(storage, { by, session, payload }, `not understood: ${why}`, call.note);
    } finally {
      await storage.close();
    }
  } catch (error) {
    if (!hasCode(error, 'not-a-repository') && !hasCode(error, 'bare-repository'))
      call.note(messageOf(error));
  }
}

/** What a payload says of folder and session, whatever else is wrong with it. */
function placeIn(payload: string): { readonly cwd: string; readonly session: string } {
  const nowhere = { cwd: process.cwd(), session: '' };
  try {
    const said = JSON.parse(payload) as Partial<Record<string, unknown>> | null;
    const { cwd = said?.['directory'], session_id: session } = said ?? {};
    return {
      cwd: typeof cwd === 'string' && isAbsolute(cwd) ? cwd : nowhere.cwd,
      session: typeof session === 'string' ? session : '',
    };
  } catch {
    // No JSON at all.
    return nowhere;
  }
}

const ourHost = (): Host =>
  systemHost(plannedFaults(process.env['DURABLE_FAULTS'], processFaultActions(process.pid)));

/** Without one the hooks take every step, as this one did: no reason to refuse anything. */
async function revive(
  storage: Storage,
  by: AgentProcess,
  { call, step }: { readonly call: HookCall; readonly step: Step },
): Promise<void> {
  try {
    await reviveKeeper(storage, by, step.session);
  } catch (error) {
    call.note(`the keeper of this turn is gone: ${messageOf(error)}`);
  }
}

const OUTSIDE_TURN: ReadonlySet<Step['kind']> = new Set(['session-start', 'stop', 'session-end']);

/** Without it the turn is fenced by hooks only, which `status` says: no reason to refuse anything. */
function offer(
  storage: Storage,
  by: AgentProcess,
  { call, step }: { readonly call: HookCall; readonly step: Step },
): void {
  try {
    offerOwnGitTo(storage, by, step);
  } catch (error) {
    call.note(`the git of ${call.agent} gets no shim: ${messageOf(error)}`);
  }
}
