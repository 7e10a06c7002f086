/**
 * A scripted model in a network namespace of its own, where loopback is all there is: whoever is started in it reaches nobody else.
 * Needs root or unprivileged user namespaces.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { until } from '../processes.js';
import type { Scratch } from '../scratch.js';
import { BOUND_MS } from './bound.js';
import type { ModelRequest, ModelScript } from './script.js';

const ENTRY = fileURLToPath(new URL('model-entry.js', import.meta.url));
const IS_ROOT = process.getuid?.() === 0;

export class ScriptedModel {
  readonly port: string;
  readonly #child: ChildProcess;
  readonly #files: { readonly script: string; readonly log: string };

  private constructor(child: ChildProcess, port: string, files: ScriptedModel['files']) {
    this.#child = child;
    this.port = port;
    this.#files = files;
  }

  static async start(t: Pick<ExecutionContext, 'teardown'>, place: Scratch): Promise<ScriptedModel> {
    const files = { script: join(place.top, 'script.json'), log: join(place.top, 'requests.jsonl') };
    writeFileSync(files.script, '{}');
    const inside = ['sh', '-c', 'ip link set lo up && exec "$@"', 'sh'];
    const program = [process.execPath, ENTRY, files.script, files.log];
    const child = spawn('unshare', [IS_ROOT ? '-n' : '-rn', '--', ...inside, ...program], {
      env: { ...place.env, WORK: place.dir },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.teardown(() => child.kill('SIGKILL'));
    for await (const port of createInterface({ input: child.stdout }))
      return new ScriptedModel(child, port, files);
    throw new Error('the scripted model did not start: are network namespaces allowed here?');
  }

  get files(): { readonly script: string; readonly log: string } {
    return this.#files;
  }

  /** From the next request on. */
  follow(script: ModelScript): void {
    writeFileSync(this.#files.script, JSON.stringify(script));
  }

  /** Those that belong to `key`, or all; oldest first. */
  requests(key?: string): ModelRequest[] {
    if (!existsSync(this.#files.log)) return [];
    const lines = readFileSync(this.#files.log, 'utf8').split('\n').slice(0, -1);
    const all = lines.map((line) => JSON.parse(line) as ModelRequest);
    return key === undefined ? all : all.filter((request) => request.key === key);
  }

  /** Waits for the request that asks for this step of `key`. */
  async asked(key: string, step: number): Promise<ModelRequest> {
    let found: ModelRequest | undefined;
    await until(
      `the model is asked for step ${String(step)} of ${key}`,
      () => {
        found = this.requests(key).find((request) => request.step === step);
        return found !== undefined;
      },
      BOUND_MS,
    );
    if (found === undefined) throw new TypeError('it was just seen');
    return found;
  }

  /** The program and its arguments, to be started beside the model. It keeps the pid that the first program gets. */
  beside(program: string, args: readonly string[]): [program: string, args: string[]] {
    const namespaces = [
      `--net=/proc/${String(this.#child.pid)}/ns/net`,
      ...(IS_ROOT ? [] : [`--user=/proc/${String(this.#child.pid)}/ns/user`, '--preserve-credentials']),
    ];
    return ['nsenter', [...namespaces, '--', program, ...args]];
  }
}

/** All that was said to the model in a request, by whom it counts as said. */
export const told = (
  request: ModelRequest | undefined,
  ...from: ModelRequest['heard'][number]['from'][]
): string =>
  (request?.heard ?? [])
    .filter((heard) => from.length === 0 || from.includes(heard.from))
    .map(({ text }) => text)
    .join('\n');
