/** A program named docker that knows the containers of one folder: what a test says is running, and nothing of the machine. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Beside the program, since a test's folder has a quote in its name. */
const SCRIPT = `#!/bin/sh
state="\${0%/*}/state"
printf '%s\\n' "$*" >> "$state/calls"
env >> "$state/environments"
case "$1" in
  ps) for one in "$state"/*.json; do one=\${one##*/}; [ "$one" = '*.json' ] || echo "\${one%.json}"; done ;;
  inspect)
    shift
    printf '['
    between=''
    for id; do read -r one < "$state/$id.json"; printf '%s%s' "$between" "$one"; between=','; done
    printf ']\\n' ;;
  stop)
    shift 3
    for id; do [ -e "$state/stubborn" ] || rm "$state/$id.json"; done ;;
  kill)
    shift
    for id; do rm "$state/$id.json"; done ;;
  *) exit 64 ;;
esac
`;

/** Of every container's first process, as this client gives it. */
export const STUB_PID = 4711;

export interface StubContainer {
  readonly name: string;
  readonly env?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
}

export class StubDocker {
  readonly #folder: string;

  /** In a folder of its own; the same folder again is the same stub, with what it knew. */
  constructor(folder: string, name: 'docker' | 'podman' = 'docker') {
    this.#folder = folder;
    mkdirSync(join(folder, 'state'), { recursive: true });
    if (!existsSync(join(folder, name))) writeFileSync(join(folder, name), SCRIPT, { mode: 0o755 });
  }

  /** Only this client is found: the folder first, then where the usual tools are. */
  get path(): string {
    return [this.#folder, process.env['PATH'] ?? ''].join(delimiter);
  }

  /** Returns the container's id. */
  start({ name, env, labels }: StubContainer): string {
    const id = Buffer.from(name.padEnd(32, '.')).toString('hex').slice(0, 64);
    const inspected = {
      Id: id,
      Name: `/${name}`,
      State: { Pid: STUB_PID, StartedAt: '2026-01-02T03:04:05.123456789Z', Running: true },
      Config: { Image: 'postgres:16', Env: env ?? null, Labels: labels ?? null },
    };
    writeFileSync(this.#file(`${id}.json`), `${JSON.stringify(inspected)}\n`);
    return id;
  }

  /** TERM does not end its containers: only `kill` does. */
  beStubborn(): void {
    writeFileSync(this.#file('stubborn'), '');
  }

  get running(): string[] {
    return readdirSync(join(this.#folder, 'state'))
      .filter((name) => name.endsWith('.json'))
      .map((name) => name.slice(0, -'.json'.length))
      .sort();
  }

  /** Every command line it was given. */
  get calls(): string[] {
    const file = this.#file('calls');
    return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
  }

  /** Its environment, at each call. */
  get environments(): string {
    const file = this.#file('environments');
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  }

  #file(name: string): string {
    return join(this.#folder, 'state', name);
  }
}
