/**
 * One round with a real agent: it works on its task and is killed with SIGKILL at the drawn call; it is started again and told to go
 * on; and the four questions are judged.
 *
 * With `isBare` nothing of this program is in the repository, and the same agent does the same.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { AgentName } from '../../../lib/agents/step.js';
import { Product } from '../answers.js';
import { Chance } from '../chance.js';
import { descendants, gone } from '../kill.js';
import { end, find, until, type Seen } from '../processes.js';
import { dirtyPaths, type ScratchRepository } from '../scratch.js';
import { difference, readTree } from '../tree.js';
import { BOUND_MS } from './bound.js';
import { judge, type AgentChecks, type AgentFacts, type Asked } from './judge.js';
import { endAllOf, living, RealAgent, type AgentRun } from './launch.js';
import type { ModelRequest } from './script.js';
import { ScriptedModel } from './scripted-model.js';
import { describe, isHeld, makeTask, type Task } from './task.js';

export interface AgentDrill {
  readonly name: AgentName;
  /** The agent's program, absolute. */
  readonly agent: string;
  /** Ours: the built `cli/main.js`. */
  readonly product: string;
  readonly isBare: boolean;
  readonly log: (line: string) => void;
}

export interface AgentRound {
  readonly killedAfter: string;
  readonly checks: AgentChecks;
  readonly facts: AgentFacts;
}

export const PROMPT = 'Rename it everywhere, ask before the deployment, run the tests #first';
const AGAIN = 'Go on with the task #second';

/** Throws where the drill itself cannot go on. */
export async function runAgentRound(drill: AgentDrill, seed: number): Promise<AgentRound> {
  const task = makeTask(new Chance(`${drill.name}/${String(seed)}`), (repository) => {
    placeProgram(drill, repository);
    install(drill, repository);
  });
  const place = { ...task.repository, env: withTemporary(task.repository) };
  const tidy = (): void => {
    endAllOf(place);
    rmSync(task.repository.top, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  };
  const forget = beforeInterruption(tidy);
  try {
    const model = await ScriptedModel.start(place);
    const { name, agent: program, log } = drill;
    return await played({ drill, task, model, agent: new RealAgent({ name, program, place, model, log }) });
  } finally {
    tidy();
    forget();
  }
}

const INTERRUPTIONS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Of a signal that ends this program: `tidy` comes first, then the signal does what it always did. Returns what takes that back. */
function beforeInterruption(tidy: () => void): () => void {
  const taken = INTERRUPTIONS.map((signal) => {
    const handler = (): void => {
      tidy();
      forget();
      process.kill(process.pid, signal);
    };
    process.on(signal, handler);
    return { signal, handler };
  });
  const forget = (): void => {
    for (const { signal, handler } of taken) process.off(signal, handler);
  };
  return forget;
}

interface Scene {
  readonly drill: AgentDrill;
  readonly task: Task;
  readonly model: ScriptedModel;
  readonly agent: RealAgent;
}

async function played(scene: Scene): Promise<AgentRound> {
  const { drill, task, model, agent } = scene;
  const { repository } = task;
  const then = await killedAtCall(scene);
  const killed = readTree(repository.dir);
  const product = drill.isBare ? null : new Product(drill.product, repository);
  const asked = product === null ? null : await ask(product);
  const heardBefore = model.requests();
  const dirtyNow = dirtyPaths(repository);
  model.follow({ '#second': [] });
  const again = await agent.run({ prompt: AGAIN, isResumed: true });
  const request = model.requests('#second')[0];
  if (request === undefined)
    throw new Error(`${agent.name} did not go on when it was started again: ${again.said.slice(-600)}`);
  const facts: AgentFacts = {
    name: drill.name,
    objective: PROMPT,
    changed: difference(task.before, killed).filter(isOfTask),
    byKilledCall: difference(then, killed).filter(isOfTask),
    killed,
    dirtyBefore: task.dirtyBefore,
    dirtyNow: new Set([...dirtyNow].filter(isOfTask)),
    heardBefore,
    request,
    asked,
    pendingAfter: product === null ? null : (await product.approvals()).document.pending,
  };
  const { call } = task.kill;
  return { killedAfter: `call ${String(call)}: ${describe(task.steps[call])}`, checks: judge(facts), facts };
}

/** Agents put files of their own into the work tree. */
const isOfTask = (path: string): boolean => !/^\.(?:claude|codex|opencode|kilo|kilocode)\//.test(path);

async function ask(product: Product): Promise<Asked> {
  const [recover, approvals] = [await product.recover(), await product.approvals()];
  return { recover: recover.document, pending: approvals.document.pending };
}

/** The work tree as it was when the call was asked for. */
async function killedAtCall({ task, model, agent }: Scene): Promise<ReturnType<typeof readTree>> {
  const { steps, kill, repository } = task;
  model.follow({ '#first': [...steps.slice(0, kill.call + 1), { silent: true }] });
  const run = await agent.started({ prompt: PROMPT });
  // Before its first call: its launcher, the agent, and what it always has beside it.
  const own = [run.pid, ...descendants(run.pid).map(({ pid }) => pid)].flatMap((pid) => find(pid) ?? []);
  const then = await moment({ run, task, model });
  for (const one of own) end(one);
  await run.ended;
  await gone(own, agent.name);
  // What tells of a call's begin or end may have been started already.
  await gone(ours(repository), 'what records for the agent');
  return then;
}

async function moment({
  run,
  task,
  model,
}: {
  run: AgentRun;
  task: Task;
  model: ScriptedModel;
}): Promise<ReturnType<typeof readTree>> {
  const { kill, repository } = task;
  const before = await askedFor({ run, model, step: kill.call - 1 });
  const now = await askedFor({ run, model, step: kill.call });
  const then = readTree(repository.dir);
  if (kill.hold === 'never') {
    await pause(kill.part * (now - before));
    return then;
  }
  const note = (name: string): string => readFileSync(join(repository.top, name), 'utf8');
  const held = (): boolean => isHeld(kill, { renamed: note('renamed'), tested: note('tested') });
  if (!(await until(held, BOUND_MS)))
    throw new Error(`call ${String(kill.call)} did not come to where it is killed: ${run.said.slice(-600)}`);
  return then;
}

/** When, in milliseconds of the clock of this process. */
async function askedFor({
  run,
  model,
  step,
}: {
  run: AgentRun;
  model: ScriptedModel;
  step: number;
}): Promise<number> {
  const isAsked = (request: ModelRequest): boolean => request.step === step;
  if (!(await until(() => model.requests('#first').some(isAsked), BOUND_MS)))
    throw new Error(`the model was not asked for call ${String(step)}: ${run.said.slice(-600)}`);
  return performance.now();
}

/** Hooks and keepers of this round. */
const ours = (repository: ScratchRepository): Seen[] =>
  living(repository).filter(({ command }) => /(?:hook|keeper)-entry/.test(command));

/** Agents leave sockets and logs in the temporary folder. */
function withTemporary({ top, env }: ScratchRepository): Record<string, string> {
  const folder = join(top, 'tmp');
  mkdirSync(folder);
  return { ...env, TMPDIR: folder };
}

/** `../bin/git-durable` of the task; with `isBare` it says that it is not there. */
function placeProgram({ product, isBare }: AgentDrill, { top }: ScratchRepository): void {
  const folder = join(top, 'bin');
  mkdirSync(folder);
  const quoted = [process.execPath, product].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  const body = isBare ? 'echo "git-durable: not found" >&2; exit 127' : `exec ${quoted} "$@"`;
  writeFileSync(join(folder, 'git-durable'), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
}

/** The agent's hooks, committed nowhere. */
function install({ name, product, isBare }: AgentDrill, repository: ScratchRepository): void {
  if (isBare) return;
  const words = [product, '-C', repository.dir, 'init', '--agent', name];
  const ran = spawnSync(process.execPath, words, { env: repository.env, encoding: 'utf8' });
  if (ran.status !== 0) throw new Error(`git-durable init --agent ${name}: ${ran.stderr}`);
}
