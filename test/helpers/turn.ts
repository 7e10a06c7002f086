/**
 * A repository with a task, a held lease and an open turn, for tests of what comes after.
 */
import type { ExecutionContext } from 'ava';
import type { DraftOf, EventDraft } from '../../lib/event.js';
import { systemHost, type Host } from '../../lib/host.js';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { acquire } from '../../lib/lease/acquire.js';
import type { Held } from '../../lib/lease/hold.js';
import type { AppendBy } from '../../lib/ledger/plan.js';
import { openTask, type Ledger } from '../../lib/ledger/ledger.js';
import { scratch, type Scratch, type ScratchOptions } from './scratch.js';

export interface Bench {
  readonly scratch: Scratch;
  readonly storage: Storage;
  readonly ledger: Ledger;
}

export interface TurnBench extends Bench {
  readonly held: Held;
  readonly turn: string;
  /** Appends under the lease. */
  readonly by: AppendBy;
  readonly append: (...drafts: EventDraft[]) => ReturnType<Ledger['append']>;
}

type Context = Pick<ExecutionContext, 'teardown'>;

/** Appends of no lease: what a person or an observer does. */
export const anyone: AppendBy = { lease: null, agent: 'test', workspace: null };

export async function openRepository(
  t: Context,
  scratched: Scratch,
  host: Partial<Host> = {},
): Promise<Storage> {
  const storage = await openStorage(scratched.dir, { ...systemHost(), env: scratched.env, ...host });
  t.teardown(() => storage.close());
  return storage;
}

export async function newTask(t: Context, options: ScratchOptions = {}): Promise<Bench> {
  const made = scratch(t, options);
  // Power cuts have a suite of their own; without fsync these tests take a fraction of the time.
  if (options.repository !== false) made.git('config', 'durable.fsync', 'false');
  const storage = await openRepository(t, made);
  const ledger = await openTask(storage, { objective: 'Rename the parser', agent: 'test', workspace: null });
  return { scratch: made, storage, ledger };
}

export async function openTurn(t: Context, options: ScratchOptions = {}): Promise<TurnBench> {
  const bench = await newTask(t, options);
  const { storage, ledger } = bench;
  const held = await acquire(storage, leaseRequest(ledger.task, 'turn-1'));
  const by: AppendBy = { lease: held.token, agent: 'test', workspace: null };
  await ledger.append(() => [startOf('turn-1', held)], by);
  return { ...bench, held, turn: 'turn-1', by, append: (...drafts) => ledger.append(() => drafts, by) };
}

export function leaseRequest(task: string, turn: string) {
  return { kind: 'turn', task, turn, turnKey: null, objective: 'Rename the parser', agent: 'test' } as const;
}

const OID = '1'.repeat(40);
const SHA = '2'.repeat(64);

export function startOf(turn: string, held: Held, more: Partial<DraftOf<'turn.started'>> = {}): EventDraft {
  return {
    type: 'turn.started',
    turn,
    objective: 'Rename the parser',
    holder: held.record.holder,
    session: null,
    baseline: {
      head: OID,
      branch: 'refs/heads/main',
      index: SHA,
      operation: null,
      submodules: [],
      status: { oid: OID, digest: SHA, bytes: 0 },
    },
    instructions: [],
    checkpoint: null,
    readOnly: false,
    ...more,
  };
}

export function steering(text: string, key?: string): EventDraft {
  return { type: 'steering.received', text, content: null, ...(key === undefined ? {} : { key }) };
}

export function proposal(invocation: string, index: number): EventDraft {
  return {
    type: 'invocation.proposed',
    invocation,
    index,
    tool: 'Edit',
    summary: 'lib/parse.ts',
    cwd: '',
    argsDigest: SHA,
    args: null,
    mutates: true,
    paths: [],
    pathList: null,
    checkpoint: null,
    key: `call-${invocation}`,
  };
}

export function request(approval: string, invocation: string | null = null): EventDraft {
  return {
    type: 'approval.requested',
    approval,
    invocation,
    tool: 'Bash',
    summary: 'npm publish',
    args: { oid: OID, digest: SHA, bytes: 12 },
    command: null,
    cwd: '',
    fingerprint: SHA,
    checkpoint: null,
    expiresAt: null,
    invalidOnChange: false,
  };
}

export function answer(
  approval: string,
  decision: DraftOf<'approval.resolved'>['decision'],
  by = 'person',
): EventDraft {
  return { type: 'approval.resolved', approval, decision, by, feedback: null, feedbackSummary: '' };
}

export function observed(what: string): EventDraft {
  return { type: 'git.observed', what, ref: null, before: null, after: null, process: null };
}

export function finish(): EventDraft {
  return {
    type: 'turn.finished',
    outcome: 'completed',
    summary: 'done',
    result: null,
    claim: null,
    exit: 0,
    checkpoint: null,
    survivors: [],
  };
}
