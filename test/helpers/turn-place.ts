/** A turn under its lease, made by hand: what the tests of files and recovery stand on. */
import { randomBytes } from 'node:crypto';
import { lstatSync, readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Image, Recorded, Touched } from '../../lib/event.js';
import type { TransactionContext } from '../../lib/files/transaction.js';
import type { Storage } from '../../lib/git/storage.js';
import { acquire } from '../../lib/lease/acquire.js';
import { workspaceId } from '../../lib/lease/workspace.js';
import { openTask } from '../../lib/ledger/ledger.js';
import { STATUS_ARGS } from '../../lib/turn/grounding.js';

export interface TurnPlace extends TransactionContext {
  readonly turn: string;
}

export interface TurnOptions {
  readonly task?: string;
  readonly turn?: string;
  readonly objective?: string;
  readonly marker?: string;
  readonly checkpoint?: string;
  /** The turn's holder is a process that has ended. */
  readonly dead?: boolean;
}

/** A process that was, and is not any more. */
export function endedProcess(): { pid: number; start: string } {
  return { pid: spawnSync('true').pid, start: '1' };
}

export async function openTurn(storage: Storage, options: TurnOptions = {}): Promise<TurnPlace> {
  const { task = 'task', turn = 'turn', objective = 'change some files' } = options;
  const held = await acquire(storage, {
    kind: 'turn',
    task,
    turn,
    turnKey: null,
    objective,
    agent: 'tester',
    ...(options.marker === undefined ? {} : { marker: options.marker }),
    ...(options.dead === true ? { holderProcess: endedProcess() } : {}),
  });
  const workspace = workspaceId(storage, { create: true });
  const ledger = await openTask(storage, { task, objective, agent: 'tester', workspace });
  const [status] = await ledger.contents.keep([await storage.git.output(STATUS_ARGS)]);
  if (status === undefined) throw new Error('contents kept nothing');
  const head = await storage.git.run(['rev-parse', '--verify', '--quiet', 'HEAD']);
  await ledger.append(
    () => [
      {
        type: 'turn.started',
        turn,
        key: turn,
        objective,
        holder: held.record.holder,
        session: null,
        baseline: {
          head: head.code === 0 ? head.stdout.toString('utf8').trim() : null,
          branch: null,
          index: null,
          operation: null,
          submodules: [],
          status,
        },
        instructions: [],
        checkpoint: options.checkpoint ?? null,
        readOnly: false,
      },
    ],
    { lease: held.token, agent: 'tester', workspace },
  );
  return { storage, ledger, held, agent: 'tester', workspace, turn };
}

/** A path a call says it will write: text, null for a deletion, 'unknown'. */
export interface Says {
  readonly path: string;
  readonly expected: Buffer | null | 'unknown';
}

export interface CallOptions {
  readonly tool?: string;
  readonly paths?: readonly Says[];
  readonly checkpoint?: string;
  readonly started?: boolean;
}

/** Records a call as a harness does: bytes kept, proposed, started. Returns its id. */
export async function beginCall(place: TurnPlace, options: CallOptions): Promise<string> {
  const { storage, ledger, held, agent, workspace, turn } = place;
  const invocation = randomBytes(8).toString('hex');
  const touched: Touched[] = [];
  const bytes: Buffer[] = [Buffer.from('{}')];
  for (const { path, expected } of options.paths ?? []) {
    const before = imageOnDisk(join(storage.layout.workTree, path));
    if (before !== null) bytes.push(before.bytes);
    if (Buffer.isBuffer(expected)) bytes.push(expected);
    touched.push({
      path,
      before: before === null ? null : before.image(storage),
      expected: Buffer.isBuffer(expected)
        ? { oid: storage.objects.hash('blob', expected), mode: before?.mode ?? '100644' }
        : expected,
    });
  }
  const [args] = await ledger.contents.keep(bytes);
  await ledger.append(
    () => [
      {
        type: 'invocation.proposed',
        turn,
        key: invocation,
        invocation,
        index: 0,
        tool: options.tool ?? 'Edit',
        summary: 'a call',
        cwd: '.',
        argsDigest: createHash('sha256').update('{}').digest('hex'),
        args: args ?? null,
        mutates: true,
        paths: touched,
        pathList: null,
        checkpoint: options.checkpoint ?? null,
      },
      ...(options.started === false
        ? []
        : [{ type: 'invocation.started' as const, turn, invocation, approval: null, process: null }]),
    ],
    { lease: held.token, agent, workspace },
  );
  return invocation;
}

export async function endCall(
  place: TurnPlace,
  invocation: string,
  checkpoint: string | null = null,
): Promise<void> {
  const { ledger, held, agent, workspace, turn } = place;
  await ledger.append(
    () => [
      {
        type: 'invocation.finished',
        turn,
        invocation,
        state: 'finished',
        summary: 'done',
        exit: 0,
        resultDigest: null,
        result: null,
        checkpoint,
        durationMs: 1,
        settled: null,
      },
    ],
    { lease: held.token, agent, workspace },
  );
}

export async function eventTypes(place: Pick<TurnPlace, 'ledger'>): Promise<string[]> {
  return (await allEvents(place)).map(({ event }) => event.type);
}

export async function allEvents({ ledger }: Pick<TurnPlace, 'ledger'>): Promise<Recorded[]> {
  const events: Recorded[] = [];
  for await (const recorded of ledger.forwards()) events.push(recorded);
  return events;
}

interface OnDisk {
  readonly bytes: Buffer;
  readonly mode: '100644' | '100755' | '120000';
  readonly image: (storage: Storage) => NonNullable<Image>;
}

function imageOnDisk(file: string): OnDisk | null {
  const stat = lstatSync(file, { throwIfNoEntry: false });
  if (stat === undefined) return null;
  const bytes = stat.isSymbolicLink() ? readlinkSync(file, { encoding: 'buffer' }) : readFileSync(file);
  const mode = stat.isSymbolicLink() ? '120000' : (stat.mode & 0o100) === 0 ? '100644' : '100755';
  return { bytes, mode, image: (storage) => ({ oid: storage.objects.hash('blob', bytes), mode }) };
}

/**
 * The whole work tree, judged by our own walk: each file's SHA-256, permission bits and kind, each link's target, each
 * folder. Two equal walks are two equal trees.
 */
export function walk(dir: string, prefix = ''): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(join(dir, prefix)).sort()) {
    const path = prefix === '' ? name : `${prefix}/${name}`;
    if (path === '.git') continue;
    const stat = lstatSync(join(dir, path));
    const bits = (stat.mode & 0o777).toString(8);
    if (stat.isSymbolicLink()) found[path] = `link ${readlinkSync(join(dir, path))}`;
    else if (stat.isDirectory()) Object.assign(found, { [path]: 'folder' }, walk(dir, path));
    else {
      const digest = createHash('sha256')
        .update(readFileSync(join(dir, path)))
        .digest('hex');
      found[path] = `file ${bits} ${digest}`;
    }
  }
  return found;
}
