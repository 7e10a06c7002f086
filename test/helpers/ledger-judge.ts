/**
 * Reads ledgers, leases and checkpoints with git and SHA-256 alone: the judge of what the product says of itself.
 */
import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { treeDigest, type Leaf } from './tree-state.js';

export interface JudgedEvent {
  readonly commit: string;
  readonly seq: number;
  readonly type: string;
  readonly key: string | null;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface JudgedLedger {
  readonly task: string;
  readonly events: readonly JudgedEvent[];
  /** Broken rules of the format, in words; empty when the chain is whole. */
  readonly faults: readonly string[];
}

const TASKS = 'refs/durable/tasks/';

export class Judge {
  readonly #dir: string;
  readonly #env: Readonly<Record<string, string>>;

  constructor(dir: string, env: Readonly<Record<string, string>>) {
    this.#dir = dir;
    this.#env = env;
  }

  /** What `git fsck` finds wrong; dangling objects are not wrong. */
  fsck(): string[] {
    const { stdout, stderr, status } = this.#git([
      'fsck',
      '--full',
      '--strict',
      '--no-dangling',
      '--no-progress',
    ]);
    const lines = `${stdout.toString()}\n${stderr}`.split('\n').filter((line) => line.trim() !== '');
    return status === 0
      ? lines.filter((line) => !line.startsWith('notice:'))
      : [...lines, `exit ${String(status)}`];
  }

  /** Whether a ref is at a commit or past it, all of it readable. */
  holds(ref: string, commit: string): boolean {
    return this.#git(['merge-base', '--is-ancestor', commit, ref]).status === 0;
  }

  isReachable(oid: string, ref: string): boolean {
    return this.#lines(['rev-list', '--objects', ref, '--']).some((line) => line.startsWith(oid));
  }

  /** Whether a commit is reachable from the contents of some task. */
  isKept(commit: string): boolean {
    return this.#lines(['for-each-ref', '--contains', commit, 'refs/durable/checkpoints/']).length > 0;
  }

  tasks(): string[] {
    return this.#lines(['for-each-ref', '--format=%(refname)', TASKS]).map((ref) => ref.slice(TASKS.length));
  }

  ledger(task: string): JudgedLedger {
    const commits = this.#lines(['rev-list', '--reverse', '--first-parent', TASKS + task, '--']);
    const bodies = this.#contents(commits);
    let chain = sha256(task);
    const faults: string[] = [];
    const events = commits.map((commit, index): JudgedEvent => {
      const lines = (bodies[index] ?? '').split('\n');
      const json = lines.find((line) => line.startsWith('{')) ?? '{}';
      const fields = JSON.parse(json) as Record<string, unknown>;
      chain = sha256(`${chain}\n${json}`);
      if (fields['seq'] !== index + 1)
        faults.push(`${commit} has seq ${String(fields['seq'])}, not ${String(index + 1)}`);
      if (!lines.includes(`Durable-Seq: ${String(index + 1)}`))
        faults.push(`${commit} has another Durable-Seq`);
      if (!lines.includes(`Durable-Chain: sha256:${chain}`)) faults.push(`${commit} breaks the chain`);
      return {
        commit,
        seq: index + 1,
        type: String(fields['type']),
        key: typeof fields['key'] === 'string' ? fields['key'] : null,
        fields,
      };
    });
    return { task, events, faults };
  }

  /** Records of all leases, newest of each ref. */
  leases(): Record<string, unknown>[] {
    const refs = this.#lines(['for-each-ref', '--format=%(objectname)', 'refs/durable/leases/']);
    return this.#contents(refs).map(
      (body) =>
        JSON.parse((body ?? '').split('\n').find((line) => line.startsWith('{')) ?? '{}') as Record<
          string,
          unknown
        >,
    );
  }

  /** Digest of the work tree that a checkpoint holds; undefined when an object of it cannot be read. */
  checkpoint(commit: string): string | undefined {
    const listed = this.#git(['ls-tree', '-r', '-z', `${commit}:worktree`]);
    if (listed.status !== 0) return undefined;
    const rows = listed.stdout
      .toString()
      .split('\0')
      .filter((row) => row !== '');
    const oids = rows.map((row) => row.slice(12, row.indexOf('\t')));
    const contents = this.#contents(oids);
    const tree = new Map<string, Leaf>();
    for (const [index, row] of rows.entries()) {
      const content = contents[index];
      if (content === undefined) return undefined;
      tree.set(row.slice(row.indexOf('\t') + 1), { content, mode: row.slice(0, 6) as Leaf['mode'] });
    }
    return treeDigest(tree);
  }

  /** Objects that cannot be read, of those asked for. */
  missing(oids: readonly string[]): string[] {
    const contents = this.#contents(oids);
    return oids.filter((_, index) => contents[index] === undefined);
  }

  #contents(oids: readonly string[]): (string | undefined)[] {
    if (oids.length === 0) return [];
    const { stdout } = this.#git(['cat-file', '--batch'], oids.join('\n') + '\n');
    const contents: (string | undefined)[] = [];
    for (let at = 0; at < stdout.length;) {
      const end = stdout.indexOf(10, at);
      const size = /^[0-9a-f]+ \w+ (\d+)$/.exec(stdout.subarray(at, end).toString())?.[1];
      contents.push(
        size === undefined ? undefined : stdout.subarray(end + 1, end + 1 + Number(size)).toString(),
      );
      at = end + 1 + (size === undefined ? 0 : Number(size) + 1);
    }
    return contents;
  }

  #lines(args: readonly string[]): string[] {
    return this.#git(args)
      .stdout.toString()
      .split('\n')
      .filter((line) => line !== '');
  }

  #git(args: readonly string[], input?: string): { stdout: Buffer; stderr: string; status: number | null } {
    const ran = spawnSync('git', args, {
      cwd: this.#dir,
      env: this.#env,
      maxBuffer: 1 << 30,
      ...(input === undefined ? {} : { input }),
    });
    return { stdout: ran.stdout, stderr: ran.stderr.toString(), status: ran.status };
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
