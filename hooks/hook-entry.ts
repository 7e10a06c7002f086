/**
 * The program that an agent's hook runs: `node hook-entry.js AGENT NONCE`, or `git-durable hook AGENT NONCE`, the payload on standard input, the agent's own answer
 * on standard output.
 *
 * Exit code 0 always, since an agent takes another one for an error of the hook: a refusal is said in the answer. Where the
 * payload cannot be read, or the gate fails before a tool that may change files, the tool is refused; after a tool nothing
 * is: what cannot be recorded is kept (lib/agents/report.ts), and what went wrong is one line on standard error. Outside of a repository it does nothing.
 *
 * The agent's process is, in this order: DURABLE_AGENT_PID (a plugin says it), CLAUDE_PID, the nearest ancestor that is no shell.
 */
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { answerWithin } from '../lib/agents/limits.js';
import { effectOf } from '../lib/agents/tools.js';
import { AGENTS, PASS, type AgentName, type Reply, type Step } from '../lib/agents/step.js';
import { takeStep } from '../lib/agents/gate.js';
import { isReport, report } from '../lib/agents/report.js';
import { recordSeen } from '../lib/agents/seen.js';
import { TRANSLATIONS } from '../lib/agents/translate.js';
import { hasCode, messageOf } from '../lib/errors.js';
import { processFaultActions } from '../lib/git/fault-actions.js';
import { plannedFaults } from '../lib/git/fault.js';
import { openStorage, type Storage } from '../lib/git/storage.js';
import { systemHost } from '../lib/host.js';
import { commandOf, entryOf, type ProcessIdentity } from '../lib/lease/processes.js';

const [NAME, NONCE] = process.argv.slice(process.argv[2] === 'hook' ? 3 : 2);

/** In a payload that is not understood: a tool waits for the answer. */
const BEFORE_TOOL = /"(?:PreToolUse|tool\.execute\.before)"/;

const SHELL = /^\S*\b(?:sh|bash|dash|zsh|ksh|fish|env)(?:\s|$)/;

async function main(name: string | undefined): Promise<void> {
  const agent = AGENTS.find((one) => one === name);
  if (agent === undefined) {
    note(`no agent is called '${name ?? ''}'; there are ${AGENTS.join(', ')}`);
    return;
  }
  const answer = await answerTo(agent, await text(process.stdin));
  // What a refused call had begun must not go on behind the answer.
  process.stdout.write(answer, () => process.exit(0));
}

async function answerTo(agent: AgentName, payload: string): Promise<string> {
  const { decode, encode } = TRANSLATIONS[agent];
  let step: Step | null;
  try {
    const said: unknown = JSON.parse(payload);
    step = decode(said);
  } catch (error) {
    note(`this payload of ${agent} is not understood: ${messageOf(error)}`);
    const why = `git-durable does not understand what ${agent} says of this call; nothing ran. To go on without records, take its hooks out`;
    return BEFORE_TOOL.test(payload) ? encode('before-tool', { kind: 'deny', reason: why }) : '';
  }
  return step === null ? '' : encode(step.kind, await replied(agent, step, payload));
}

async function replied(agent: AgentName, step: Step, payload: string): Promise<Reply> {
  try {
    return await inRepository(agent, step, payload);
  } catch (error) {
    if (hasCode(error, 'not-a-repository') || hasCode(error, 'bare-repository')) return PASS;
    note(messageOf(error));
    if (step.kind !== 'before-tool') return PASS;
    return {
      kind: 'deny',
      reason: `git-durable could not record this call, and nothing ran: ${messageOf(error)}`,
    };
  }
}

async function inRepository(agent: AgentName, step: Step, payload: string): Promise<Reply> {
  const host = systemHost(plannedFaults(process.env['DURABLE_FAULTS'], processFaultActions(process.pid)));
  const storage = await openStorage(step.cwd ?? process.cwd(), host);
  try {
    noteSeen(storage, agent);
    const by = { agent, process: agentProcess(isReport(step)) };
    if (isReport(step)) {
      const leftMs = answerWithin(agent, step, storage.settings.hookLimitMs) - performance.now();
      return await report(storage, { by, step, payload }, { leftMs, note });
    }
    const reply = takeStep(storage, by, step);
    if (step.kind !== 'before-tool' || effectOf(agent, step.tool, step.input) === 'reads') return await reply;
    return await inTime(reply, answerWithin(agent, step, storage.settings.hookLimitMs));
  } finally {
    await storage.close();
  }
}

/** `doctor` says whether hooks fire; nothing depends on it. */
function noteSeen(storage: Storage, agent: AgentName): void {
  try {
    recordSeen(storage, agent, NONCE ?? '');
  } catch (error) {
    note(messageOf(error));
  }
}

/** `ms` from this process's start. A host that gave up waiting lets the tool run. */
async function inTime(reply: Promise<Reply>, ms: number): Promise<Reply> {
  const late = new AbortController();
  const refusal = pause(Math.max(0, ms - performance.now()), LATE, { signal: late.signal });
  try {
    return await Promise.race([reply, refusal]);
  } finally {
    late.abort();
    refusal.catch(() => undefined);
  }
}

const LATE: Reply = {
  kind: 'deny',
  reason:
    "git-durable refused this call, and nothing ran: it was not on record within the time limit of the hook (durable.hookLimit, or the agent's own). See what holds it up with: git durable status",
};

/** A report may come from a hook that has outlived its agent. Errors: with `orDead` false where the agent is not found. */
function agentProcess(orDead: boolean): ProcessIdentity {
  const said = Number(process.env['DURABLE_AGENT_PID'] ?? process.env['CLAUDE_PID'] ?? 0);
  let entry = entryOf(said > 0 ? said : process.ppid);
  while (said === 0 && entry !== null && SHELL.test(commandOf(entry.pid))) entry = entryOf(entry.parent);
  if (entry === null && orDead) return { pid: said, start: '' };
  if (entry === null) throw new Error('the process of the agent is not found');
  return { pid: entry.pid, start: entry.start };
}

function note(line: string): void {
  process.stderr.write(`git-durable: ${line}\n`);
}

await main(NAME);
