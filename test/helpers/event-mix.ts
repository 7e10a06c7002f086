/**
 * A realistic mix of events, for tests and benchmarks: turns of a coding agent as its hooks record them.
 *
 * One turn is 48 events: lease.acquired, turn.started, 12 calls (proposed, started, finished; a third of them edits,
 * a third shell commands), 4 usage records, 1 approval with its answer and use, 1 checkpoint, 1 steering, and
 * turn.finished. Ids, digests and object ids are random, as they are in a ledger; texts repeat as people's do.
 */
import { createHash } from 'node:crypto';
import type { EventDraft } from '../../lib/event.js';

export interface MixOptions {
  readonly seed: number;
  readonly lease: string;
  readonly runtime: string;
}

export function mixedTurn(n: number, options: MixOptions): EventDraft[] {
  const random = seeded(`${String(options.seed)} ${String(n)}`);
  const turn = random.id();
  const drafts: EventDraft[] = [acquired(options, random), started(turn, n, options, random)];
  for (let call = 0; call < 12; call += 1) {
    drafts.push(...invocation(call, random, call === 7));
    if (call % 3 === 0) drafts.push(usage(random));
  }
  drafts.push(
    {
      type: 'steering.received',
      text: 'Please keep the old name as an alias',
      content: null,
      key: random.id(),
    },
    {
      type: 'checkpoint.taken',
      checkpoint: random.oid(),
      tree: random.oid(),
      message: '',
      files: 412,
      changed: 9,
      skipped: 0,
      skippedList: [],
      reason: 'turn-end',
    },
    {
      type: 'turn.finished',
      outcome: 'completed',
      summary: 'Renamed the symbol in all files and ran the tests',
      result: null,
      claim: null,
      exit: 0,
      checkpoint: random.oid(),
      survivors: [],
    },
  );
  return drafts;
}

function invocation(index: number, random: Random, asks: boolean): EventDraft[] {
  const id = random.id();
  const approval = asks ? random.id() : null;
  const shell = index % 3 === 1;
  const edit = index % 3 === 0;
  const file = `lib/module-${String(random.below(40))}/part-${String(random.below(9))}.ts`;
  const summary = shell ? `npm test -- --filter module-${String(random.below(40))}` : file;
  const tool = shell ? 'Bash' : edit ? 'Edit' : 'Read';
  const image = () => ({ oid: random.oid(), mode: '100644' as const });
  const kept = () => ({ oid: random.oid(), digest: random.digest(), bytes: random.below(4000) });
  const proposed: EventDraft = {
    type: 'invocation.proposed',
    invocation: id,
    index,
    tool,
    summary,
    cwd: '',
    argsDigest: random.digest(),
    args: edit || shell ? kept() : null,
    mutates: edit || shell,
    paths: edit ? [{ path: file, before: image(), expected: image() }] : [],
    pathList: null,
    checkpoint: null,
    key: `toolu_${random.id()}`,
  };
  const begins: EventDraft = { type: 'invocation.started', invocation: id, approval, process: null };
  const ends: EventDraft = {
    type: 'invocation.finished',
    invocation: id,
    state: 'finished',
    summary: shell ? '34 passed, 0 failed' : 'done',
    exit: shell ? 0 : null,
    resultDigest: random.digest(),
    result: shell ? kept() : null,
    checkpoint: null,
    durationMs: random.below(9000),
    settled: null,
  };
  return [proposed, ...(approval === null ? [] : asked(approval, id, random)), begins, ends];
}

function asked(approval: string, invocation: string, random: Random): EventDraft[] {
  return [
    {
      type: 'approval.requested',
      approval,
      invocation,
      tool: 'Bash',
      summary: 'npm test',
      args: { oid: random.oid(), digest: random.digest(), bytes: 80 },
      command: null,
      cwd: '',
      fingerprint: random.digest(),
      checkpoint: null,
      expiresAt: null,
      invalidOnChange: false,
    },
    {
      type: 'approval.resolved',
      approval,
      decision: 'approved',
      by: 'person',
      feedback: null,
      feedbackSummary: '',
    },
    { type: 'approval.consumed', approval, invocation, use: 'run' },
  ];
}

function usage(random: Random): EventDraft {
  return {
    type: 'usage.recorded',
    invocation: null,
    model: 'a-model-1',
    inputTokens: random.below(90_000),
    outputTokens: random.below(3000),
    cacheTokens: random.below(60_000),
    costUsd: null,
    wallMs: random.below(20_000),
    key: `msg_${random.id()}`,
  };
}

function acquired(options: MixOptions, random: Random): EventDraft {
  return { type: 'lease.acquired', holder: holder(options, random), ttlMs: 30_000, takenOver: null };
}

function started(turn: string, n: number, options: MixOptions, random: Random): EventDraft {
  return {
    type: 'turn.started',
    turn,
    key: `prompt-${String(n)}-${random.id()}`,
    objective: 'Rename the parser everywhere and keep the tests green',
    holder: holder(options, random),
    session: random.id(),
    baseline: {
      head: random.oid(),
      branch: 'refs/heads/main',
      index: random.digest(),
      operation: null,
      submodules: [],
      status: { oid: random.oid(), digest: random.digest(), bytes: 120 },
    },
    instructions: ['AGENTS.md', 'CLAUDE.md'].map((path) => ({ path, digest: random.digest() })),
    checkpoint: random.oid(),
    readOnly: false,
  };
}

function holder(options: MixOptions, random: Random) {
  return {
    runtime: options.runtime,
    agent: 'scripted',
    host: random.id(),
    hostname: 'machine',
    boot: random.id(),
    pidNamespace: 'pid:[4026531836]',
    pid: 4711,
    start: '123456',
  };
}

interface Random {
  readonly id: () => string;
  readonly oid: () => string;
  readonly digest: () => string;
  readonly below: (limit: number) => number;
}

/** Reproducible: SHA-256 of a seed and a counter. */
function seeded(seed: string): Random {
  let counter = 0;
  const digest = (): string => {
    counter += 1;
    return createHash('sha256')
      .update(`${seed} ${String(counter)}`)
      .digest('hex');
  };
  return {
    digest,
    oid: () => digest().slice(0, 40),
    id: () => digest().slice(0, 26),
    below: (limit) => Number.parseInt(digest().slice(0, 8), 16) % limit,
  };
}
