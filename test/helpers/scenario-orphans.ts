/**
 * What a turn leaves running: found by the next turn's start, ended by `orphans --stop`, each recorded once. Killed anywhere, the
 * next one ends what is left, and nothing is said twice or forgotten.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { noFaults, type Faults } from '../../lib/git/fault.js';
import type { Host } from '../../lib/host.js';
import { acquire } from '../../lib/lease/acquire.js';
import { Held } from '../../lib/lease/hold.js';
import { reconcileLeft } from '../../lib/orphans/reconcile.js';
import { openRepository, type Repository } from '../../lib/repository.js';
import { afterwards } from './aftermath.js';
import { asUser } from './as-user.js';
import { Judge, type JudgedEvent } from './ledger-judge.js';
import { stateOf, until } from './processes.js';
import type { After, Run, Scenario } from './scenarios.js';
import { STUB_PID, StubDocker } from './stub-docker.js';

const TASK = 'left';
const REQUEST = {
  kind: 'operation',
  task: null,
  turn: null,
  turnKey: null,
  objective: 'reconcile',
  agent: 'workload',
} as const;
/** In the git dir, so that the folder is whole without it. */
const stub = (dir: string): StubDocker => new StubDocker(join(dir, '.git', 'stub'));
const withStub = (host: Host, dir: string): Host => ({ ...host, env: { ...host.env, PATH: stub(dir).path } });

export const orphans: Scenario = {
  prepare: ({ dir }) => {
    stub(dir);
    return Promise.resolve();
  },

  // Processes are in no folder: a disk that is rebuilt from a recording does not have them.
  only: /./,

  every: /./,

  run: async ({ dir, host, say }: Run) => {
    const quiet = await openRepository(dir, withStub({ ...host, faults: unkilled(host) }, dir));
    const repository = await openRepository(dir, withStub(host, dir));
    say('begin orphans');
    const first = await quiet.startTurn({ objective: 'leave', task: TASK, key: 'first', keeper: false });
    const env = { ...host.env, ...first.environment() };
    const left = ['60', '61', '62'].map((seconds) => sleeping(seconds, env));
    say(`ack left ${left.join(' ')}`);
    await first.finish({ outcome: 'completed', summary: 'left something' });
    say('ack finished');
    asUser(() => stub(dir).start({ name: 'db', env: [`DURABLE_MARKER=${env['DURABLE_MARKER'] ?? ''}`] }));
    const [ended = 0] = left;
    process.kill(ended, 'SIGKILL');
    await until('it has ended', () => ['', 'Z'].includes(stateOf(ended)));
    await reconciling(quiet, repository);
    say('ack reconciled');
    await pass(quiet, 'second');
    const { stopped } = await repository.stopOrphans();
    say(`ack stopped ${stopped.map(({ pid }) => String(pid)).join(' ')}`);
    await pass(quiet, 'third');
    await repository.close();
    await quiet.close();
    say('end orphans');
  },

  examine: async ({ dir, env, host, said }: After) => {
    const judge = new Judge(dir, env);
    const findings = judge.fsck().map((line) => `fsck: ${line}`);
    const repository = await openRepository(dir, withStub(host, dir));
    const { interrupted } = await repository.recoveryReport();
    if (interrupted.length > 0) await repository.recover({ action: 'keep' });
    const { remaining } = await repository.stopOrphans();
    if (remaining.length > 0) findings.push(`${String(remaining.length)} orphans did not end`);
    if ((await repository.orphans()).orphans.length > 0) findings.push('orphans are found after --stop');
    const alive = (pidsIn(said, 'ack left') ?? []).filter((pid) => !['', 'Z'].includes(stateOf(pid)));
    if (said.includes('ack finished') && alive.length > 0)
      findings.push(`processes ${alive.join(', ')} of the turn still run`);
    for (const pid of alive) process.kill(pid, 'SIGKILL');
    if (stub(dir).running.length > 0) findings.push('the container still runs');
    findings.push(...(await afterwards(repository, judge)));
    findings.push(...accountOf(judge.tasks().includes(TASK) ? judge.ledger(TASK).events : [], said));
    await repository.close();
    return findings;
  },
};

/** What leads there is never killed; under strace it shows its points all the same. */
const unkilled = ({ faults }: Host): Faults =>
  process.env['DURABLE_FAULTS'] === 'trace' ? faults : noFaults;

/** The step of a turn's start that reconciles, and nothing of that start beside it; the holding is let go of again. */
async function reconciling(quiet: Repository, repository: Repository): Promise<void> {
  const by = { agent: 'workload', workspace: null };
  const held = await acquire(quiet.storage, REQUEST);
  await reconcileLeft(repository.storage, await Held.attach(repository.storage, held.token), by);
  await held.release();
}

/** The next turn of the task, whose start reconciles. */
async function pass(repository: Repository, key: string): Promise<void> {
  const turn = await repository.startTurn({ objective: 'go on', task: TASK, key, keeper: false });
  await turn.finish({ outcome: 'completed', summary: key });
}

function sleeping(seconds: string, env: Readonly<Record<string, string | undefined>>): number {
  const child = spawn('sleep', [seconds], { detached: true, stdio: 'ignore', env: { ...env } });
  child.unref();
  return child.pid ?? 0;
}

const pidsIn = (said: readonly string[], what: string): number[] | undefined =>
  said
    .find((line) => line.startsWith(what))
    ?.slice(what.length)
    .trim()
    .split(' ')
    .map(Number);

interface Reconciled {
  readonly process: { readonly pid: number; readonly start: string };
  readonly outcome: string;
}

/** Each process that the turn's end names, and each that was seen later, ended exactly once, and is said to run at most once. */
function accountOf(events: readonly JudgedEvent[], said: readonly string[]): string[] {
  const findings: string[] = [];
  const reconciled = events
    .filter(({ type }) => type === 'process.reconciled')
    .map(({ fields }) => fields as unknown as Reconciled);
  const survivors = events.flatMap(({ type, fields }) =>
    type === 'turn.finished' ? (fields['survivors'] as Reconciled['process'][]) : [],
  );
  const all = new Set(
    [...survivors, ...reconciled.map(({ process }) => process)].map(
      ({ start, pid }) => `${String(pid)} ${start}`,
    ),
  );
  for (const one of all) {
    const outcomes = reconciled
      .filter(({ process }) => `${String(process.pid)} ${process.start}` === one)
      .map(({ outcome }) => outcome);
    if (!/^(left-running )?(gone|stopped)$/.test(outcomes.join(' ')))
      findings.push(`process ${one} is recorded as [${outcomes.join(', ')}]`);
  }
  if (said.includes('ack finished') && ![...all].some((one) => one.startsWith(`${String(STUB_PID)} `)))
    findings.push('that there was a container is not recorded');
  const stopped = pidsIn(said, 'ack stopped') ?? [];
  for (const pid of stopped)
    if (!reconciled.some(({ process, outcome }) => process.pid === pid && outcome === 'stopped'))
      findings.push(`that ${String(pid)} was stopped is not recorded`);
  return findings;
}
