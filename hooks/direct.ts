/** A step that no keeper takes: the hook's own process opens the repository and puts it on record. Loaded only then. */
import { agentProcess } from '../lib/agents/agent-process.js';
import { answerTo, takeInTime, unclear, type HookCall } from '../lib/agents/answer.js';
import { isReport } from '../lib/agents/report.js';
import type { Reply, Step } from '../lib/agents/step.js';
import { stepIn } from '../lib/agents/translate.js';
import { processFaultActions } from '../lib/git/fault-actions.js';
import { plannedFaults } from '../lib/git/fault.js';
import { openStorage, type Storage } from '../lib/git/storage.js';
import { systemHost } from '../lib/host.js';
import { messageOf } from '../lib/errors.js';
import { MARKER } from '../lib/lease/processes.js';
import { offerOwnGitTo } from '../lib/agents/own-git.js';
import type { AgentProcess } from '../lib/agents/own-turn.js';

/** What is printed. `agentPid`: as the environment says it. */
export async function answerDirectly(call: HookCall, payload: string, agentPid: string): Promise<string> {
  let step: Step | null;
  try {
    step = stepIn(call.agent, payload);
  } catch (error) {
    return unclear(call, payload, error);
  }
  return step === null ? '' : answerTo(call, step, (one) => inRepository(call, one, { payload, agentPid }));
}

async function inRepository(
  call: HookCall,
  step: Step,
  { payload, agentPid }: { readonly payload: string; readonly agentPid: string },
): Promise<Reply> {
  const host = systemHost(plannedFaults(process.env['DURABLE_FAULTS'], processFaultActions(process.pid)));
  const storage = await openStorage(step.cwd ?? process.cwd(), host);
  try {
    const found = agentProcess({ agentPid, parent: process.ppid }, { orDead: isReport(step) });
    const by = { agent: call.agent, process: found, marker: host.env[MARKER] };
    offer(storage, by, { call, step });
    // The host's clock begins with this process.
    return await takeInTime(storage, { call, by, payload, beganMs: 0 }, step);
  } finally {
    await storage.close();
  }
}

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
