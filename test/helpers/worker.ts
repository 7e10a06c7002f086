/** Long-lived `storage-worker` processes, asked one thing at a time; ended with the test. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import type { RefChange } from '../../lib/git/refs.js';
import type { HostIdentity } from '../../lib/host.js';
import type { Scratch } from './scratch.js';

export type WorkerCommand =
  | { readonly do: 'update'; readonly change: RefChange; readonly budgetMs?: number }
  | { readonly do: 'append'; readonly ref: string; readonly count: number; readonly name: string }
  | { readonly do: 'take' | 'release' | 'heal' | 'heal and take'; readonly lock: string }
  | { readonly do: 'read'; readonly oid: string }
  | { readonly do: 'write'; readonly text: string };

export interface WorkerOptions {
  readonly faults?: string;
  readonly identity?: Partial<HostIdentity>;
}

const PROGRAM = fileURLToPath(new URL('./storage-worker.js', import.meta.url));

export class Worker {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  /** How the process ended. */
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  #said = '';

  private constructor(place: Scratch, options: WorkerOptions) {
    this.#child = spawn(process.execPath, [PROGRAM, place.dir, JSON.stringify(options.identity ?? {})], {
      cwd: place.dir,
      env: { ...place.env, DURABLE_FAULTS: options.faults ?? '' },
    });
    this.#child.stderr.on('data', (chunk: Buffer) => (this.#said += chunk.toString('utf8')));
    this.#child.stdin.on('error', () => undefined);
    this.ended = new Promise((resolve) => {
      this.#child.on('close', (code, signal) => {
        resolve({ code, signal });
      });
    });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  static async start(
    t: Pick<ExecutionContext, 'teardown'>,
    place: Scratch,
    options: WorkerOptions = {},
  ): Promise<Worker> {
    const worker = new Worker(place, options);
    t.teardown(async () => {
      worker.signal('SIGKILL');
      await worker.ended;
    });
    await worker.answer();
    return worker;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  async ask(command: WorkerCommand): Promise<unknown> {
    this.tell(command);
    return this.answer();
  }

  /** Gives a command whose answer nobody waits for. */
  tell(command: WorkerCommand): void {
    this.#child.stdin.write(`${JSON.stringify(command)}\n`);
  }

  /** Closes its input and waits: an orderly end. */
  async finish(): Promise<void> {
    this.#child.stdin.end();
    const { code } = await this.ended;
    if (code !== 0) throw new Error(`the worker ended with ${String(code)}: ${this.#said}`);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** The next answer, null when the process was ended by a signal instead. */
  async answer(): Promise<unknown> {
    const line = await this.#lines.next();
    if (line.done === true) {
      const { signal } = await this.ended;
      if (signal === null) throw new Error(`the worker ended by itself: ${this.#said}`);
      return null;
    }
    return JSON.parse(line.value) as unknown;
  }
}
