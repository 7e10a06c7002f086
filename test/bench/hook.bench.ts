/**
 * What an agent's hooks add to one tool call on a file, in a repository of 2,000 files while the turn's keeper lives: before and after
 * it, against two starts of a node that does nothing. Beside it where the time goes: the same with a disk that need not flush, the
 * keeper's part as a client in this process sees it, what the hooks take that do a step by themselves, and what the keeper's memory grew by.
 *
 * Caveat: where much was deleted in the last minutes (a temporary folder beside running tests), ext4 looks past the inodes of all that for
 * each new file: measured 0.5 ms against 0.02, and a pair makes 12. Name a quiet place then: TMPDIR=DIR npm run bench hook.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROGRAMS } from '../../lib/package.js';
import { askKeeper, keeperSocket, requestFor, buildOfPrograms } from '../helpers/keeper-client.js';
import { keeperOf } from '../helpers/keeper.js';
import { until } from '../helpers/processes.js';
import { removeTree, scratchAt, type Scratch } from '../helpers/scratch.js';
import { memory } from './keeper.bench.js';
import { inTurns, median, ratioRow, timed, type Row } from './row.js';

const FOLDERS = 20;
const FILES = 100;
const ROUNDS = 21;
const SESSION = 'bench';
/** With a plan of faults, be it an empty one, a hook asks no keeper. (One that was killed would be started anew.) */
const BY_ITSELF = { DURABLE_FAULTS: '' };
/** Of both measurements with a keeper, those that warm up included. */
const STEPS = 2 * (ROUNDS + 2 + ROUNDS);

export async function measure(): Promise<readonly Row[]> {
  const top = mkdtempSync(join(tmpdir(), 'durable bench '));
  const agent = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1 << 30)'], { stdio: 'ignore' });
  const bench = new HookBench(scratchAt(top), agent);
  try {
    return await bench.rows();
  } finally {
    bench.fire('SessionEnd', { reason: 'other' });
    agent.kill('SIGKILL');
    await removeTree(top);
  }
}

class HookBench {
  readonly #place: Scratch;
  readonly #agentPid: number;
  #calls = 0;

  constructor(place: Scratch, agent: ChildProcess) {
    this.#place = place;
    this.#agentPid = agent.pid ?? 0;
  }

  async rows(): Promise<readonly Row[]> {
    for (let n = 0; n < FOLDERS * FILES; n += 1)
      this.#place.write(`d${String(n % FOLDERS)}/f${String(n)}`, `${String(n)}\n`);
    this.#place.git('add', '-A');
    this.#place.git('commit', '-q', '-m', 'files');
    await this.#begin();
    const keeper = await keeperOf(this.#place);
    const before = memory(keeper, 'VmRSS');
    const served = await this.#pairs();
    const keepers = await this.#keepersPart();
    const after = memory(keeper, 'VmRSS');
    const direct = await this.#pairs(BY_ITSELF);
    this.fire('Stop', {});
    this.#place.git('config', 'durable.fsync', 'false');
    await this.#begin();
    const unflushed = await this.#pairs();
    const [twoNodes, flushes] = [served.base, served.ours - unflushed.ours];
    return [
      ratioRow('hooks of a file tool call, keeper alive / two bare nodes', served, 1.5),
      reported('  of it the keeper, as its client sees it', keepers, twoNodes),
      reported('  of it flushes (less with durable.fsync=false)', flushes, twoNodes),
      reported('hooks of a file tool call, taken by themselves / two bare nodes', direct.ours, direct.base),
      { ...reported(`keeper after ${String(STEPS)} steps / before them`, after, before), unit: 'MiB' },
    ];
  }

  fire(
    event: string,
    more: Readonly<Record<string, unknown>>,
    env: Readonly<Record<string, string>> = {},
  ): void {
    const ran = this.#place.run(process.execPath, [PROGRAMS.hook, 'claude-code'], {
      env: { DURABLE_AGENT_PID: String(this.#agentPid), ...env },
      input: JSON.stringify(this.#payload(event, more)),
    });
    if (ran.code !== 0 || ran.stdout + ran.stderr !== '') throw new Error(ran.stdout + ran.stderr);
  }

  async #begin(): Promise<void> {
    await until('no keeper of an earlier turn', () => !existsSync(keeperSocket(this.#place.dir)));
    this.fire('UserPromptSubmit', { prompt: 'measure', prompt_id: `p${String(this.#calls)}` });
    await until('the keeper listens', () => existsSync(keeperSocket(this.#place.dir)));
  }

  #pairs(env: Readonly<Record<string, string>> = {}): Promise<{ ours: number; base: number }> {
    const ours = (): void => {
      const call = this.#call();
      this.fire('PreToolUse', call, env);
      this.fire('PostToolUse', { ...call, tool_response: 'done' }, env);
    };
    const base = (): void => {
      for (let n = 0; n < 2; n += 1)
        spawnSync(process.execPath, ['-e', '0'], { env: this.#place.env, input: '{}' });
    };
    return inTurns(ours, base, { rounds: ROUNDS });
  }

  async #keepersPart(): Promise<number> {
    const request = { ...requestFor(this.#place.env, this.#agentPid), build: buildOfPrograms() };
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const call = this.#call();
      times.push(
        await timed(async () => {
          for (const event of ['PreToolUse', 'PostToolUse']) {
            const said = await askKeeper(this.#place.dir, this.#payload(event, call), request);
            if (said?.['answer'] !== '') throw new Error(JSON.stringify(said));
          }
        }),
      );
    }
    return median(times);
  }

  #call(): Record<string, unknown> {
    this.#calls += 1;
    const path = join(this.#place.dir, `d1/new${String(this.#calls)}`);
    const input = { file_path: path, content: 'new\n' };
    return { tool_name: 'Write', tool_use_id: `c${String(this.#calls)}`, tool_input: input };
  }

  #payload(event: string, more: Readonly<Record<string, unknown>>): unknown {
    return { session_id: SESSION, cwd: this.#place.dir, hook_event_name: event, ...more };
  }
}

const reported = (what: string, ours: number, base: number): Row => ({
  ...{ what, ours, base, unit: 'ms', ratio: ours / base },
  limit: Number.POSITIVE_INFINITY,
  rule: null,
});
