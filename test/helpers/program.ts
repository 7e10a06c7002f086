/** The real program, run the way a user's shell runs it. */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import type { Ran, RunOptions, Scratch } from './scratch.js';

/** `dist/program/cli/main.js` of this build. */
export const PROGRAM = fileURLToPath(new URL('../../program/cli/main.js', import.meta.url));

/** Runs `durable ...args` in the scratch work tree. */
export function durable(place: Scratch, args: readonly string[], options: RunOptions = {}): Ran {
  return place.run(process.execPath, [PROGRAM, ...args], options);
}

/** A program that is still running: its lines as they come, and its end. */
export class Running {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  readonly #lines: AsyncIterator<string>;
  #said = '';

  constructor(child: ChildProcessByStdio<Writable, Readable, Readable>) {
    this.child = child;
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    child.stderr.on('data', (chunk: Buffer) => (this.#said += chunk.toString()));
    this.ended = once(child, 'exit').then(([code, signal]: unknown[]) => ({
      code: typeof code === 'number' ? code : null,
      signal: (signal ?? null) as NodeJS.Signals | null,
    }));
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Standard error so far. */
  get said(): string {
    return this.#said;
  }

  /** The next line of standard output; undefined at its end. */
  async line(): Promise<string | undefined> {
    const next = await this.#lines.next();
    return next.done === true ? undefined : next.value;
  }
}

/** Starts `durable ...args` in the scratch work tree and does not wait for it; at the test's end it is gone. */
export function startDurable(
  t: Pick<ExecutionContext, 'teardown'>,
  place: Scratch,
  args: readonly string[],
  options: Omit<RunOptions, 'input'> = {},
): Running {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    cwd: options.cwd ?? place.dir,
    env: { ...place.env, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  t.teardown(() => {
    child.kill('SIGKILL');
    child.stdin.destroy();
  });
  return new Running(child);
}
