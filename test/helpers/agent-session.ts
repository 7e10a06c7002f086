/** An agent as its hooks see it: a process that lives, and payloads that go through the real hook entry. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { isRecord } from './json.js';
import type { Ran, Scratch } from './scratch.js';

const ENTRY = fileURLToPath(new URL('../../program/hooks/hook-entry.js', import.meta.url));

export interface Said {
  /** `additionalContext`; empty when nothing was said. */
  readonly context: string;
  /** The reason of a refusal; null when the tool may run. */
  readonly refused: string | null;
  /** What is decided in place of the host's own question; null when the host asks. */
  readonly decision: { readonly behavior: string; readonly message?: string } | null;
  readonly stderr: string;
}

type Agent = 'claude-code' | 'codex' | 'opencode' | 'kilo';

export class AgentSession {
  readonly #place: Scratch;
  readonly #child: ChildProcess;
  readonly #base: { readonly agent: Agent; readonly session: string };

  private constructor(place: Scratch, child: ChildProcess, base: AgentSession['base']) {
    this.#place = place;
    this.#child = child;
    this.#base = base;
  }

  static start(
    t: Pick<ExecutionContext, 'teardown'>,
    place: Scratch,
    base: AgentSession['base'],
  ): AgentSession {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1 << 30)'], {
      stdio: 'ignore',
    });
    const session = new AgentSession(place, child, base);
    t.teardown(() => {
      // A turn that is ended leaves nothing for its keeper to write while the place is taken away.
      if (child.exitCode === null && child.signalCode === null) session.end();
      child.kill('SIGKILL');
    });
    return session;
  }

  get base(): { readonly agent: Agent; readonly session: string } {
    return this.#base;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Fires one hook and waits for its answer. */
  fire(
    event: string,
    more: Readonly<Record<string, unknown>> = {},
    env: Readonly<Record<string, string>> = {},
  ): Said {
    return saidIn(this.run(this.#payload(event, more), env), event);
  }

  /** The same without waiting for it. */
  async firing(event: string, more: Readonly<Record<string, unknown>> = {}): Promise<Said> {
    const child = spawn(process.execPath, [ENTRY, this.#base.agent], {
      cwd: this.#place.dir,
      env: { ...this.#place.env, ...this.#env() },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    child.stdin.end(JSON.stringify(this.#payload(event, more)));
    const [stdout, stderr, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'exit') as Promise<[number | null]>,
    ]);
    return saidIn({ code, stdout, stderr, signal: null }, event);
  }

  /** Any payload, as it is. */
  run(payload: unknown, env: Readonly<Record<string, string>> = {}): Ran {
    return this.#place.run(process.execPath, [ENTRY, this.#base.agent], {
      input: JSON.stringify(payload),
      env: { ...this.#env(), ...env },
    });
  }

  /** What the plugin of OpenCode or Kilo hands on. */
  plugin(hook: string, input: unknown, output: unknown = null): Readonly<Record<string, unknown>> {
    const ran = this.run({ hook, directory: this.#place.dir, input, output });
    if (ran.code !== 0 || ran.stderr !== '') throw new Error(`${hook}: ${ran.stderr}`);
    const said: unknown = ran.stdout === '' ? {} : JSON.parse(ran.stdout);
    return isRecord(said) ? said : {};
  }

  end(): void {
    const { agent, session } = this.#base;
    if (agent === 'claude-code' || agent === 'codex') this.fire('SessionEnd', { reason: 'other' });
    else this.plugin('event:session.deleted', { properties: { sessionID: session } });
  }

  #payload(event: string, more: Readonly<Record<string, unknown>>): unknown {
    return {
      session_id: this.#base.session,
      cwd: this.#place.dir,
      hook_event_name: event,
      ...more,
    };
  }

  #env(): Record<string, string> {
    return { DURABLE_AGENT_PID: String(this.pid) };
  }

  prompt(text: string, id: string): Said {
    return this.fire('UserPromptSubmit', { prompt: text, prompt_id: id });
  }

  before(call: string, tool: string, input: unknown): Said {
    return this.fire('PreToolUse', { tool_name: tool, tool_input: input, tool_use_id: call });
  }

  after(call: string, tool: string, input: unknown): Said {
    return this.fire('PostToolUse', {
      tool_name: tool,
      tool_input: input,
      tool_use_id: call,
      tool_response: 'done',
    });
  }

  async kill(): Promise<void> {
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }
}

function saidIn(ran: Ran, event: string): Said {
  if (ran.code !== 0) throw new Error(`${event}: exit ${String(ran.code)}: ${ran.stderr}`);
  const all: unknown = ran.stdout === '' ? {} : JSON.parse(ran.stdout);
  const output = isRecord(all) && isRecord(all['hookSpecificOutput']) ? all['hookSpecificOutput'] : {};
  const { additionalContext, permissionDecisionReason, decision } = output;
  return {
    context: typeof additionalContext === 'string' ? additionalContext : '',
    refused: typeof permissionDecisionReason === 'string' ? permissionDecisionReason : null,
    decision: isRecord(decision) ? (decision as unknown as NonNullable<Said['decision']>) : null,
    stderr: ran.stderr,
  };
}
