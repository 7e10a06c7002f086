/**
 * A real agent, started as a user would start it without a terminal, beside a scripted model and with a HOME of its own.
 *
 * Each run is one process group of one pid that is known; it is killed by that pid. `endAllOf` kills all that still has this HOME
 * in its environment, each by its pid: what the agent left running, and its daemons.
 */
import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentName } from '../../../lib/agents/step.js';
import { end, processes, until, type Seen } from '../processes.js';
import { BOUND_MS } from './bound.js';
import type { AgentPlace, ScriptedModel } from './scripted-model.js';

export interface Launch {
  readonly prompt: string;
  /** Goes on in the newest session of this agent here. */
  readonly isResumed?: boolean;
  /** Claude Code: asks before each change, as it does by itself in a terminal. */
  readonly asks?: boolean;
  /** The words of a program that starts it, before its own. */
  readonly below?: readonly string[];
}

interface CommandLine {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface AgentOptions {
  readonly name: AgentName;
  /** Its program, absolute. */
  readonly program: string;
  readonly place: AgentPlace;
  readonly model: ScriptedModel;
  /** Hears of a start that is repeated. */
  readonly log: (line: string) => void;
}

export class RealAgent {
  readonly name: AgentName;
  readonly #options: AgentOptions;

  /** Writes the agent's own configuration below the place's HOME. */
  constructor(options: AgentOptions) {
    this.name = options.name;
    this.#options = options;
    CONFIGURE[this.name](options.place, options.model.port);
  }

  /** Runs until the agent ends by itself, or BOUND_MS. One that never reached its model is started once more, and said so. */
  async run(launch: Launch): Promise<AgentRun> {
    const { model } = this.#options;
    const before = model.requests().length;
    const first = this.#start(launch);
    await first.endedInTime();
    if (model.requests().length > before) return first;
    this.#repeated(first);
    const again = this.#start(launch);
    await again.endedInTime();
    return again;
  }

  /** Its first request to the model is there. One that never reached its model is started once more, and said so. */
  async started(launch: Launch): Promise<AgentRun> {
    const { model } = this.#options;
    const before = model.requests().length;
    const isThere = (): boolean => model.requests().length > before;
    for (let tries = 2; ; tries -= 1) {
      const run = this.#start(launch);
      const state = { isOver: false };
      void run.ended.then(() => (state.isOver = true));
      await until(() => state.isOver || isThere(), BOUND_MS);
      if (isThere()) return run;
      await run.kill();
      if (tries === 1) throw new Error(`${this.name} did not start: ${run.said.slice(-600)}`);
      this.#repeated(run);
    }
  }

  /** Its program with other words, for one who speaks to it: standard input and output are pipes. */
  serving(words: readonly string[]): ChildProcessWithoutNullStreams {
    const { model, place, program } = this.#options;
    const { env } = COMMANDS[this.name]({ prompt: '' }, place, model.port);
    const [first, all] = model.beside(program, words);
    return spawn(first, all, { cwd: place.dir, env: environmentIn(place, env) });
  }

  #repeated(first: AgentRun): void {
    this.#options.log(`${this.name} did not start, once more: ${first.said.slice(-400)}`);
  }

  #start(launch: Launch): AgentRun {
    const { model, place } = this.#options;
    const { args, env } = COMMANDS[this.name](launch, place, model.port);
    const [first = '', ...words] = [...(launch.below ?? []), this.#options.program, ...args];
    const [program, all] = model.beside(first, words);
    const child = spawn(program, all, {
      cwd: place.dir,
      env: environmentIn(place, env),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return new AgentRun(child);
  }
}

const environmentIn = (place: AgentPlace, own: CommandLine['env']): Record<string, string> => ({
  ...place.env,
  SHELL: '/bin/bash',
  TERM: 'xterm-256color',
  ...own,
});

export class AgentRun {
  readonly ended: Promise<number | null>;
  readonly #child: ChildProcess;
  #said = '';

  constructor(child: ChildProcess) {
    this.#child = child;
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (bytes: Buffer) => (this.#said += bytes.toString('utf8')));
    this.ended = once(child, 'exit').then(([code]: unknown[]) => (typeof code === 'number' ? code : null));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Both outputs so far. */
  get said(): string {
    return this.#said;
  }

  /** Killed after BOUND_MS. */
  async endedInTime(): Promise<void> {
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), BOUND_MS);
    await this.ended;
    clearTimeout(timer);
  }

  /** SIGKILL to the agent alone, and its death awaited. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended;
  }
}

const COMMANDS: {
  readonly [A in AgentName]: (launch: Launch, place: AgentPlace, port: string) => CommandLine;
} = {
  'claude-code': ({ prompt, isResumed, asks }, _, port) => ({
    args: [
      ...['-p', prompt, ...(isResumed === true ? ['--continue'] : [])],
      ...['--permission-mode', asks === true ? 'manual' : 'bypassPermissions'],
      ...['--output-format', 'stream-json', '--verbose'],
    ],
    env: {
      IS_SANDBOX: '1',
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`,
      ANTHROPIC_API_KEY: 'none',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    },
  }),
  codex: ({ prompt, isResumed }, place) => ({
    args: [
      ...['exec', '--json', '--sandbox', 'danger-full-access', '--dangerously-bypass-hook-trust'],
      ...(isResumed === true ? ['resume', '--last', prompt] : [prompt]),
    ],
    env: { CODEX_HOME: codexHome(place), MODEL_KEY: 'none' },
  }),
  opencode: ({ prompt, isResumed }) => ({
    args: ['run', '--format', 'json', ...(isResumed === true ? ['--continue'] : []), prompt],
    env: { OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' },
  }),
  kilo: ({ prompt, isResumed }) => ({
    args: ['run', '--auto', '--format', 'json', ...(isResumed === true ? ['--continue'] : []), prompt],
    env: {
      KILO_DISABLE_MODELS_FETCH: '1',
      KILO_DISABLE_AUTOUPDATE: '1',
      KILO_TELEMETRY_LEVEL: 'off',
      KILO_DISABLE_SESSION_INGEST: '1',
    },
  }),
};

const codexHome = (place: AgentPlace): string => join(place.env['HOME'] ?? '', '.codex');

const CONFIGURE: { readonly [A in AgentName]: (place: AgentPlace, port: string) => void } = {
  'claude-code': () => undefined,
  codex: (place, port) => {
    mkdirSync(codexHome(place), { recursive: true });
    const lines = [
      'model = "gpt-5.5-codex"',
      'model_provider = "scripted"',
      'check_for_update_on_startup = false',
      '[analytics]',
      'enabled = false',
      '[features]',
      ...['plugins', 'remote_plugin', 'apps'].map((feature) => `${feature} = false`),
      '[model_providers.scripted]',
      'name = "scripted"',
      `base_url = "http://127.0.0.1:${port}/v1"`,
      'wire_api = "responses"',
      'env_key = "MODEL_KEY"',
      `[projects.${JSON.stringify(place.dir)}]`,
      'trust_level = "trusted"',
    ];
    writeFileSync(join(codexHome(place), 'config.toml'), `${lines.join('\n')}\n`);
  },
  opencode: (place, port) => {
    openCodeConfig(place, 'opencode', port);
  },
  kilo: (place, port) => {
    openCodeConfig(place, 'kilo', port);
  },
};

function openCodeConfig(place: AgentPlace, name: string, port: string): void {
  const home = place.env['HOME'] ?? '';
  const folder = join(home, '.config', name);
  mkdirSync(folder, { recursive: true });
  // It installs a package of its own beside each plugin, and begins only when that has failed for the last time.
  writeFileSync(join(home, '.npmrc'), 'offline=true\nfetch-retries=0\n');
  const options = { baseURL: `http://127.0.0.1:${port}/v1`, apiKey: 'none' };
  const models = { scripted: { tool_call: true, limit: { context: 100_000, output: 8000 } } };
  const provider = { scripted: { npm: '@ai-sdk/openai-compatible', options, models } };
  const model = 'scripted/scripted';
  const config = { model, small_model: model, autoupdate: false, share: 'disabled', provider };
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(config));
}

/** Kills what has this place's HOME in its environment: agents, their daemons, and what a killed one left running. */
export function endAllOf(place: Pick<AgentPlace, 'env'>): void {
  for (const one of living(place)) end(one);
}

/** What has this place's HOME in its environment. */
export function living(place: Pick<AgentPlace, 'env'>): Seen[] {
  const mark = `HOME=${place.env['HOME'] ?? ''}`;
  return processes().filter(({ pid }) => pid !== process.pid && environmentOf(pid).includes(mark));
}

function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${String(pid)}/environ`, 'utf8').split('\0');
  } catch {
    // It ended while the list was read, or is somebody else's.
    return [];
  }
}
