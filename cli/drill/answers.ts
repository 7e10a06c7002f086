/**
 * What the product answers when a fresh process asks it: the real program, its exit code, its JSON document.
 *
 * The documents are decoded by what CLI.md promises and by nothing of the library; a field more is no fault.
 */
import { spawn } from 'node:child_process';
import * as v from 'valibot';
import type { ScratchRepository } from './scratch.js';

const nullableText = v.nullable(v.string());

const approval = v.object({
  id: v.string(),
  tool: v.string(),
  args: v.unknown(),
  fingerprint: v.string(),
  requestedAt: v.string(),
});

const orphan = v.object({ pid: v.number(), command: v.string(), startedAt: nullableText });

const interrupted = v.object({
  turn: v.string(),
  task: v.string(),
  objective: v.string(),
  agent: v.string(),
  startedAt: v.string(),
  lastEventAt: v.string(),
  detectedBy: v.string(),
  invocations: v.array(
    v.object({ id: v.string(), tool: v.string(), state: v.string(), summary: v.string() }),
  ),
  files: v.array(
    v.object({
      path: v.string(),
      state: v.string(),
      before: nullableText,
      expected: nullableText,
      now: nullableText,
    }),
  ),
  approvals: v.array(approval),
  orphans: v.array(orphan),
  gitStatusMatches: v.boolean(),
  drift: v.array(v.string()),
});

const recover = v.object({ interrupted: v.array(interrupted) });

const status = v.object({
  interrupted: v.array(v.object({ id: v.string(), task: v.string() })),
  approvals: v.number(),
  conflicts: v.number(),
  orphans: v.number(),
});

const approvals = v.object({
  pending: v.array(v.object({ ...approval.entries, task: v.string(), turn: v.string(), cwd: v.string() })),
});

const conflicts = v.object({
  open: v.array(v.object({ id: v.string(), path: v.string(), state: v.string() })),
});

const side = v.object({ text: nullableText });

const compared = v.object({ id: v.string(), base: side, theirs: side, mine: side, now: side });

const answered = v.object({ id: v.string(), decision: v.string() });

/** The turn's first event, as `log` shows it: what the turn stands on. */
const started = v.object({
  turn: v.string(),
  instructions: v.array(v.object({ path: v.string(), digest: v.string() })),
});

const repaired = v.object({
  turn: v.string(),
  action: v.string(),
  restored: v.array(v.string()),
  removed: v.array(v.string()),
  checkpoint: v.string(),
});

const orphans = v.array(
  v.object({
    pid: v.number(),
    startedAt: nullableText,
    command: v.string(),
    turn: v.string(),
    kind: v.picklist(['process', 'container']),
    id: v.string(),
  }),
);

const verified = v.object({ ok: v.boolean(), findings: v.array(v.unknown()) });

export type Interrupted = v.InferOutput<typeof interrupted>;
export type ReportedFile = Interrupted['files'][number];
export type Compared = v.InferOutput<typeof compared>;
export type Orphans = v.InferOutput<typeof orphans>;
export type Repaired = v.InferOutput<typeof repaired>;

export interface Answered<T> {
  readonly code: number | null;
  /** What was said to people beside the document. */
  readonly stderr: string;
  readonly document: T;
}

/** Everything asked of a fresh process each, before any repair. */
export interface Answers {
  readonly recover: Answered<v.InferOutput<typeof recover>>;
  readonly status: Answered<v.InferOutput<typeof status>>;
  readonly approvals: Answered<v.InferOutput<typeof approvals>>;
  readonly started: Answered<v.InferOutput<typeof started>>;
  readonly conflicts: Answered<v.InferOutput<typeof conflicts>>;
  /** The comparison of each open conflict. */
  readonly compared: readonly Answered<Compared>[];
}

export class Product {
  readonly #program: string;
  readonly #repository: ScratchRepository;

  /** `program`: the built `cli/main.js`. */
  constructor(program: string, repository: ScratchRepository) {
    this.#program = program;
    this.#repository = repository;
  }

  async answers(): Promise<Answers> {
    const open = await this.conflicts();
    const sides: Answered<Compared>[] = [];
    for (const { id } of open.document.open)
      sides.push(await this.#ask(compared, ['conflicts', id, '--json']));
    return {
      recover: await this.#ask(recover, ['recover', '--json']),
      status: await this.#ask(status, ['status', '--json']),
      approvals: await this.approvals(),
      started: await this.#ask(started, ['log', '--type', 'turn.started', '--json']),
      conflicts: open,
      compared: sides,
    };
  }

  approvals(): Promise<Answers['approvals']> {
    return this.#ask(approvals, ['approvals', '--json']);
  }

  conflicts(): Promise<Answers['conflicts']> {
    return this.#ask(conflicts, ['conflicts', '--json']);
  }

  /** As a person answers; a rejection with this text. */
  answer(id: string, feedback: string | null): Promise<Answered<v.InferOutput<typeof answered>>> {
    const words = feedback === null ? ['approve', id] : ['reject', id, '--feedback', feedback];
    return this.#ask(answered, [...words, '--json']);
  }

  recover(): Promise<Answered<v.InferOutput<typeof recover>>> {
    return this.#ask(recover, ['recover', '--json']);
  }

  orphans(): Promise<Answered<Orphans>> {
    return this.#ask(orphans, ['orphans', '--json']);
  }

  stopOrphans(): Promise<Answered<Orphans>> {
    return this.#ask(orphans, ['orphans', '--stop', '--json']);
  }

  repair(action: 'roll-back' | 'roll-forward'): Promise<Answered<Repaired>> {
    return this.#ask(repaired, ['recover', `--${action}`, '--json']);
  }

  verify(): Promise<Answered<v.InferOutput<typeof verified>>> {
    return this.#ask(verified, ['verify', '--json']);
  }

  async #ask<S extends v.GenericSchema>(
    schema: S,
    args: readonly string[],
  ): Promise<Answered<v.InferOutput<S>>> {
    const { code, stdout, stderr } = await this.#run(args);
    const named = `git-durable ${args.join(' ')} (exit ${String(code)})`;
    let document: unknown;
    try {
      document = JSON.parse(stdout);
    } catch (error) {
      throw new Error(`${named} printed no JSON: ${stdout.slice(0, 200)} ${stderr.slice(0, 1000)}`, {
        cause: error,
      });
    }
    const parsed = v.safeParse(schema, document);
    if (parsed.success) return { code, stderr, document: parsed.output };
    throw new Error(
      `${named}: ${v.flatten(parsed.issues).root?.join('; ') ?? JSON.stringify(v.flatten(parsed.issues).nested)}`,
    );
  }

  #run(args: readonly string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const child = spawn(process.execPath, [this.#program, '-C', this.#repository.dir, ...args], {
      cwd: this.#repository.top,
      env: this.#repository.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
    return new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code) => {
        resolve({
          code,
          stdout: Buffer.concat(out).toString('utf8'),
          stderr: Buffer.concat(err).toString('utf8'),
        });
      });
    });
  }
}
