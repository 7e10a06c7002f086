/**
 * Drives holder.ts: a real process that holds a lease, can be paused by SIGSTOP or by a fault plan, and killed.
 * Whatever a test leaves running is killed when it ends, by pid.
 */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import type { HolderOptions } from './holder.js';
import { isRecord } from './json.js';
import { stateOf, until } from './processes.js';
import type { Scratch } from './scratch.js';

const PROGRAM = fileURLToPath(new URL('./holder.js', import.meta.url));

export interface Answer {
  readonly ok?: unknown;
  readonly error?: string;
  readonly fields?: unknown;
  readonly record?: unknown;
  readonly detail?: string;
}

export interface StartOptions extends HolderOptions {
  readonly dir?: string;
  readonly faults?: string;
  readonly keeperFaults?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export class HolderProcess {
  readonly pid: number;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #waiting: ((answer: Answer) => void)[] = [];
  readonly #exited: Promise<unknown>;

  private constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    this.pid = child.pid ?? 0;
    this.#exited = once(child, 'exit');
    createInterface({ input: child.stdout }).on('line', (line) => {
      const value: unknown = JSON.parse(line);
      this.#waiting.shift()?.(isRecord(value) ? value : {});
    });
    // A killed program says nothing more: whoever waits for it is told so.
    child.on('exit', (code, signal) => {
      for (const tell of this.#waiting.splice(0)) tell({ error: 'ended', detail: signal ?? String(code) });
    });
    child.stdin.on('error', () => undefined);
  }

  static async start(
    t: Pick<ExecutionContext, 'teardown'>,
    place: Scratch,
    options: StartOptions = {},
  ): Promise<HolderProcess> {
    const { dir, faults, keeperFaults, env, ...holder } = options;
    const child = spawn(process.execPath, [PROGRAM, dir ?? place.dir], {
      env: {
        ...place.env,
        HOLDER: JSON.stringify(holder),
        DURABLE_FAULTS: faults ?? '',
        DURABLE_KEEPER_FAULTS: keeperFaults ?? '',
        ...env,
      },
    });
    child.stderr.on('data', (bytes: Buffer) => process.stderr.write(bytes));
    const started = new HolderProcess(child);
    t.teardown(() => started.kill());
    await started.#next();
    return started;
  }

  /** Sends a command and waits for its answer; a stopped process answers when it is continued. */
  async ask(command: string, given: Readonly<Record<string, unknown>> = {}): Promise<Answer> {
    const answer = this.#next();
    this.#child.stdin.write(`${JSON.stringify({ ...given, do: command })}\n`);
    return answer;
  }

  /** As `ask`, for a command that must succeed. */
  async must(command: string, given: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
    const answer = await this.ask(command, given);
    if (answer.error !== undefined)
      throw new Error(`${command}: ${answer.error} ${answer.detail ?? JSON.stringify(answer.fields)}`);
    return answer.ok;
  }

  stop(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  /** SIGKILL, and its death awaited. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  /** Orderly end: its input is closed. */
  async end(): Promise<void> {
    this.#child.stdin.end();
    await this.#exited;
  }

  /** Waits until a fault plan has stopped it. */
  async stopped(): Promise<void> {
    await until(`holder ${String(this.pid)} is stopped`, () => stateOf(this.pid) === 'T');
  }

  #next(): Promise<Answer> {
    return new Promise((resolve) => {
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) resolve({ error: 'ended' });
      else this.#waiting.push(resolve);
    });
  }
}

/** True for a process that runs or is stopped: neither gone nor a zombie. */
export const isAlive = (pid: number): boolean => !['Z', 'X', ''].includes(stateOf(pid));
