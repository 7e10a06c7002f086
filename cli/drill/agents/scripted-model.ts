/**
 * A scripted model in a network namespace of its own, where loopback is all there is: whoever is started in it reaches nobody else.
 * Needs root or unprivileged user namespaces.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { packageFile } from '../../../lib/package.js';
import { until } from '../processes.js';
import { BOUND_MS } from './bound.js';
import type { ModelRequest, ModelScript } from './script.js';

const ENTRY = packageFile('dist/program/cli/drill/agents/model-entry.js');
const IS_ROOT = process.getuid?.() === 0;

/** Where an agent works: its work tree, the folder that holds everything of the round, and its whole environment. */
export interface AgentPlace {
  readonly dir: string;
  readonly top: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The words before a program that is to have a network namespace of its own, with loopback. */
export const INSIDE: readonly [string, ...string[]] = [
  'unshare',
  ...[IS_ROOT ? '-n' : '-rn', '--'],
  ...['sh', '-c', 'ip link set lo up && exec "$@"', 'sh'],
];

export class ScriptedModel {
  readonly port: string;
  readonly #child: ChildProcess;
  readonly #files: { readonly script: string; readonly log: string };
  readonly #requests: ModelRequest[] = [];
  #read = 0;

  private constructor(child: ChildProcess, port: string, files: ScriptedModel['files']) {
    this.#child = child;
    this.port = port;
    this.#files = files;
  }

  /** To be ended by `end`. */
  static async start(place: AgentPlace): Promise<ScriptedModel> {
    const files = { script: join(place.top, 'script.json'), log: join(place.top, 'requests.jsonl') };
    writeFileSync(files.script, '{}');
    const [program, ...args] = [...INSIDE, process.execPath, ENTRY, files.script, files.log];
    const child = spawn(program, args, {
      env: { ...place.env, WORK: place.dir },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.on('error', () => undefined);
    for await (const port of createInterface({ input: child.stdout }))
      return new ScriptedModel(child, port, files);
    throw new Error('the scripted model did not start: are network namespaces allowed here?');
  }

  get files(): { readonly script: string; readonly log: string } {
    return this.#files;
  }

  end(): void {
    this.#child.kill('SIGKILL');
  }

  /** From the next request on. */
  follow(script: ModelScript): void {
    writeFileSync(this.#files.script, JSON.stringify(script));
  }

  /** Those that belong to `key`, or all; oldest first. */
  requests(key?: string): ModelRequest[] {
    this.#readMore();
    return key === undefined ? [...this.#requests] : this.#requests.filter((request) => request.key === key);
  }

  /** A line is whole when its end is there. */
  #readMore(): void {
    const { log } = this.#files;
    if (!existsSync(log) || statSync(log).size === this.#read) return;
    const bytes = readFileSync(log).subarray(this.#read);
    const whole = bytes.subarray(0, bytes.lastIndexOf('\n') + 1);
    this.#read += whole.length;
    for (const line of whole.toString('utf8').split('\n').slice(0, -1))
      this.#requests.push(JSON.parse(line) as ModelRequest);
  }

  /** Waits for the request that asks for this step of `key`. */
  async asked(key: string, step: number): Promise<ModelRequest> {
    let found: ModelRequest | undefined;
    await until(() => {
      found = this.requests(key).find((request) => request.step === step);
      return found !== undefined;
    }, BOUND_MS);
    if (found === undefined) throw new Error(`the model was never asked for step ${String(step)} of ${key}`);
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
