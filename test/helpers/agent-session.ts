/** An agent as its hooks see it: a process that lives, and payloads that go through the real hook entry. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { isRecord } from './json.js';
import type { Scratch } from './scratch.js';

const ENTRY = fileURLToPath(new URL('../../hooks/hook-entry.js', import.meta.url));

export interface Said {
  /** `additionalContext`; empty when nothing was said. */
  readonly context: string;
  /** The reason of a refusal; null when the tool may run. */
  readonly refused: string | null;
  readonly stderr: string;
}

export class AgentSession {
  readonly #place: Scratch;
  readonly #child: ChildProcess;
  readonly #base: { readonly agent: 'claude-code' | 'codex'; readonly session: string };

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
      if (child.exitCode === null && child.signalCode === null)
        session.fire('SessionEnd', { reason: 'other' });
      child.kill('SIGKILL');
    });
    return session;
  }

  get base(): { readonly agent: 'claude-code' | 'codex'; readonly session: string } {
    return this.#base;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Fires one hook and waits for its answer. */
  fire(event: string, more: Readonly<Record<string, unknown>> = {}): Said {
    const { agent, session } = this.#base;
    const payload = { session_id: session, cwd: this.#place.dir, hook_event_name: event, ...more };
    const ran = this.#place.run(process.execPath, [ENTRY, agent], {
      input: JSON.stringify(payload),
      env: { DURABLE_AGENT_PID: String(this.pid) },
    });
    if (ran.code !== 0) throw new Error(`${event}: exit ${String(ran.code)}: ${ran.stderr}`);
    const all: unknown = ran.stdout === '' ? {} : JSON.parse(ran.stdout);
    const output = isRecord(all) && isRecord(all['hookSpecificOutput']) ? all['hookSpecificOutput'] : {};
    const { additionalContext, permissionDecisionReason } = output;
    return {
      context: typeof additionalContext === 'string' ? additionalContext : '',
      refused: typeof permissionDecisionReason === 'string' ? permissionDecisionReason : null,
      stderr: ran.stderr,
    };
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
