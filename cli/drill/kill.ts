/**
 * The kill: the agent started as a program of its own, SIGKILL at the drawn moment, its keeper's in half of the rounds.
 *
 * The moment is really outside the agent: it reports each flushed line of its record by one byte, and the drill kills it a
 * drawn time after the drawn line, wherever it then is.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Chance } from './chance.js';
import { alive, end, processes, until, type Seen } from './processes.js';
import type { ObjectFormat, ScratchRepository } from './scratch.js';
import { chooseKill, writeScript, type KillMoment } from './script.js';

/** What a call of the product is taken to last while there is no example of it. */
const CALL_MS = 20;
const PATIENCE_MS = 20_000;
/** For what a dead agent had written to its standard error to arrive. */
const LAST_WORDS_MS = 200;

export interface RoundPlan {
  readonly seed: string;
  /** Keeper killed with the agent. */
  readonly keeperToo: boolean;
  readonly format: ObjectFormat;
}

/** Everything of a round comes from its number, so that one round of a long drill can be played again alone. */
export function planRound(seed: number): RoundPlan {
  return { seed: String(seed), keeperToo: seed % 2 === 0, format: seed % 5 === 4 ? 'sha256' : 'sha1' };
}

/** Where the product under test is: the built `cli` folder. */
export interface Build {
  readonly program: string;
  readonly agent: string;
}

/** The agent's place in a round. */
export interface Stage {
  readonly build: Build;
  readonly plan: RoundPlan;
  readonly chance: Chance;
  readonly repository: ScratchRepository;
}

export interface Killed {
  /** The independent record's file. */
  readonly record: string;
  readonly keeper: readonly Seen[];
  /** The keeper outlived the agent and has ended since. */
  readonly heard: boolean;
}

/** Starts the agent, waits for the chosen moment, and kills it (and its keeper). Returns when nothing of it writes any more. */
export async function killedAgent(stage: Stage): Promise<Killed> {
  const { build, plan, chance, repository } = stage;
  const record = join(repository.top, 'record');
  const moment = chooseKill(chance.split('kill'), writeScript(chance.split('script')));
  const child = spawn(process.execPath, [build.agent, repository.dir, record, plan.seed], {
    cwd: repository.dir,
    env: repository.env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => {
      resolve();
    });
  });
  await reached(child, moment);
  const pid = child.pid ?? 0;
  const keeper = descendants(pid).filter((one) => one.command.includes('keeper'));
  child.kill('SIGKILL');
  if (plan.keeperToo) for (const one of keeper) end(one);
  await ended;
  // Its shell command and its gits are in its process group and end when they find it gone.
  if (!(await until(() => !processes().some((one) => one.group === pid), PATIENCE_MS)))
    throw new Error('a process of the agent did not end');
  // Half of the time a keeper that is alive has its say first, else it speaks while the questions are asked.
  const heard = !plan.keeperToo && chance.split('keeper').often(1, 2);
  if (plan.keeperToo || heard) await gone(keeper, 'the keeper');
  return { record, keeper, heard };
}

/** Resolves at the kill's moment; rejects when the agent ends by itself. */
async function reached(child: ChildProcess, moment: KillMoment): Promise<void> {
  const errors: Buffer[] = [];
  child.stderr?.on('data', (chunk: Buffer) => errors.push(chunk));
  const arrived: number[] = [];
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      for (let byte = 0; byte < chunk.length; byte += 1) arrived.push(performance.now());
      if (arrived.length >= moment.lines) resolve();
    });
    child.once('error', reject);
    // 'exit' and not 'close': a process that outlives the agent may hold its standard error.
    child.once('exit', (code) => {
      setTimeout(() => {
        const said = Buffer.concat(errors).toString('utf8');
        reject(new Error(`the scripted agent ended by itself (${String(code)}): ${said}`));
      }, LAST_WORDS_MS);
    });
  });
  const [asked, answered] = arrived.slice(moment.sample - 1, moment.sample + 1);
  const unit = asked === undefined || answered === undefined ? CALL_MS : answered - asked;
  await pause(moment.units * unit);
}

export function descendants(pid: number): Seen[] {
  const all = processes();
  const family: Seen[] = [];
  const next = [pid];
  for (let parent = next.shift(); parent !== undefined; parent = next.shift()) {
    const children = all.filter((one) => one.parent === parent);
    family.push(...children);
    next.push(...children.map((one) => one.pid));
  }
  return family;
}

/** Waits for processes that end by themselves; throws when they do not. */
export async function gone(all: readonly Seen[], what: string): Promise<void> {
  if (!(await until(() => !all.some(alive), PATIENCE_MS)))
    throw new Error(`${what} did not end: ${all.map((one) => one.command).join('; ')}`);
}
