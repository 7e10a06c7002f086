/**
 * `op -- GIT ARGS`: one git command of a person's under an operation lease, so that no turn starts while it runs; refused (4)
 * under another's turn. Git waits at a gate until the lease names its process as the holder, so the lease is held while git, or
 * what it started, runs, whatever becomes of this program. `--beside` runs it under that turn all the same: through the turn's shim, so that nothing that the
 * turn staged is lost or taken into a commit, and recorded with its process. Inside a turn it is the turn's own git.
 */
import { shimEnvironment } from '../../lib/fence/shim.js';
import type { Storage } from '../../lib/git/storage.js';
import { leaseOf, readLease } from '../../lib/lease/record.js';
import { MARKER } from '../../lib/lease/processes.js';
import { stageDir } from '../../lib/lease/staging.js';
import { ownWorkspace } from '../../lib/lease/take.js';
import { workspaceId } from '../../lib/lease/workspace.js';
import { freshMarker } from '../../lib/turn/marker.js';
import { ownTurn, recordManualGit, underOperation } from '../../lib/turn/operation.js';
import { usage } from '../arguments.js';
import { withStorage } from '../open.js';
import { commandLine, signalCode } from '../run/command.js';
import { startAtGate, type Gated } from '../run/gate.js';
import { howToName, onlyNamed } from '../run/only-named.js';
import { Signals } from '../run/signals.js';
import type { VerbContext } from '../verb.js';

export async function run(context: VerbContext): Promise<number> {
  const given = context.command ?? [];
  const words = given[0] === 'git' ? given.slice(1) : given;
  if (words.length === 0) throw usage("'op' takes git's arguments after '--': git durable op -- add -p");
  if (context.output.json) throw usage("'op' leaves standard output to git; leave --json out");
  return withStorage(context, async (storage) => {
    const turn = await ownTurn(storage);
    if (turn !== null) return (await runGit(context, words, turn.environment())).code;
    const beside = context.arguments.flag('beside') ? await openTurn(storage) : null;
    if (beside !== null) return runBeside(context, storage, words, beside);
    return runHolding(context, storage, words);
  });
}

async function runHolding(context: VerbContext, storage: Storage, words: readonly string[]): Promise<number> {
  const objective = commandLine(['git', ...words]).slice(0, 200);
  const marker = freshMarker(storage, ownWorkspace(storage));
  return atGate(context, words, { [MARKER]: marker }, async ({ gated, ran }) => {
    const { pid } = gated;
    const holderProcess = { pid, start: storage.identity.startOf(pid) ?? '' };
    const what = { objective, task: null, holderProcess, keeper: storage.identity.self(), marker };
    return underOperation(storage, what, async () => record(storage, null, await ran()));
  });
}

async function runBeside(
  context: VerbContext,
  storage: Storage,
  given: readonly string[],
  beside: OpenTurn,
): Promise<number> {
  const { words, isCommit } = await onlyNamed(storage, given);
  const code = await record(storage, beside, await runGit(context, words, beside.env));
  if (isCommit && REFUSED.includes(code)) context.output.note(await howToName(storage));
  return code;
}

/** How git ends that did not like its arguments, or could not go on. */
const REFUSED = [128, 129];

interface OpenTurn {
  readonly task: string;
  readonly turn: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The turn that holds the work tree; null when none does. */
async function openTurn(storage: Storage): Promise<OpenTurn | null> {
  const workspace = workspaceId(storage, { create: false });
  const current = workspace === null ? null : await readLease(storage, leaseOf(workspace));
  if (current?.record.state !== 'held') return null;
  const { task, turn, epoch, holder } = current.record;
  if (task === null || turn === null || storage.identity.judge(holder).verdict === 'dead') return null;
  const shim = shimEnvironment(storage, { turn, stageDir: stageDir(storage, epoch) });
  return { task, turn, env: { ...shim, DURABLE_BYPASS: turn } };
}

interface RanGit {
  readonly code: number;
  readonly pid: number;
  readonly command: string;
}

const runGit = (
  context: VerbContext,
  words: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<RanGit> => atGate(context, words, env, ({ ran }) => ran());

interface AtGate {
  readonly gated: Gated;
  /** Lets git begin, and resolves when it has ended. */
  readonly ran: () => Promise<RanGit>;
}

/** When `body` fails before it lets git begin, git never does. */
async function atGate<T>(
  context: VerbContext,
  words: readonly string[],
  env: Readonly<Record<string, string>>,
  body: (at: AtGate) => Promise<T>,
): Promise<T> {
  const signals = new Signals(context.host.pid);
  try {
    const command = ['git', ...words];
    const gated = await startAtGate(command, { cwd: context.dir, env: { ...context.host.env, ...env } });
    signals.passTo(gated);
    const ran = async (): Promise<RanGit> => {
      gated.open();
      const { code, signal } = await gated.ended;
      return {
        code: signal === null ? (code ?? 1) : signalCode(signal),
        pid: gated.pid,
        command: commandLine(command),
      };
    };
    try {
      return await body({ gated, ran });
    } finally {
      gated.dismiss();
    }
  } finally {
    signals.close();
  }
}

async function record(storage: Storage, beside: OpenTurn | null, ran: RanGit): Promise<number> {
  const { code, pid, command } = ran;
  const where = beside === null ? 'by hand' : 'by hand, beside the turn';
  const what = `'${command}' ${where}, exit ${String(code)}`;
  await recordManualGit(storage, { what, process: { pid, start: '', command } }, beside);
  return code;
}
