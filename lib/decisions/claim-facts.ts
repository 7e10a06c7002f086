/**
 * What is known of a turn for judging its claim: what changed between its checkpoints, what its calls wrote and ran.
 *
 * Reads only. What cannot be read any more (a checkpoint that was pruned, arguments that were purged) makes the facts weaker, which
 * the judge knows (`isWhole`), and never wrong.
 */
import { hasCode, isLoss } from '../errors.js';
import { readCheckpoint, type Scope } from '../files/checkpoint-read.js';
import { diffCheckpoints, leftOutOf, type Difference } from '../files/diff.js';
import { encodePath, splitPaths } from '../git/path.js';
import type { Storage } from '../git/storage.js';
import type { Ledger } from '../ledger/ledger.js';
import type { InvocationFold, TurnState } from '../ledger/state.js';
import { byPath, hasUnknownEffect, intentsOf } from '../recovery/touched.js';
import { sameImage } from '../files/verdict.js';
import { lineOf, type RecordedCommand } from './claim-commands.js';
import type { TurnFacts } from './claim-verdict.js';
import type { TurnRecord } from './claim-turn.js';

/** The first and the last look at the tree. */
export interface TurnTrees {
  readonly baseline: string | null;
  readonly after: string | null;
  /** Null where one of them is not there. */
  readonly differences: readonly Difference[] | null;
  /** What one of them leaves out. */
  readonly scopes: readonly Pick<Scope, 'skipped' | 'absent'>[];
}

export async function treesOf(storage: Storage, { turn }: TurnRecord): Promise<TurnTrees> {
  const baseline = turn.started.event.checkpoint;
  const after = turn.finished?.event.checkpoint ?? null;
  const scopes = [];
  for (const one of [baseline, after]) {
    const scope = one === null ? null : await kept(async () => (await readCheckpoint(storage, one)).scope);
    if (scope === null) return { baseline, after, differences: null, scopes: [] };
    scopes.push(scope);
  }
  const differences = await kept(() => diffCheckpoints(storage, baseline ?? '', after ?? ''));
  return { baseline, after, differences, scopes };
}

/** Null when what is read was pruned. */
async function kept<T>(read: () => Promise<T>): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    if (isLoss(error) || hasCode(error, 'git-failed')) return null;
    throw error;
  }
}

export interface Wanted {
  readonly trees: TurnTrees;
  readonly commands: readonly RecordedCommand[];
  /** Paths of the claim that neither checkpoint holds: those of them that are ignored are left out, not missing. */
  readonly absent: readonly string[];
}

export async function factsOf(
  storage: Storage,
  record: TurnRecord,
  { trees, commands, absent }: Wanted,
): Promise<TurnFacts> {
  const { turn, ledger } = record;
  const intents = await intentsOf({ storage, ledger }, turn, () => true);
  const named = byPath(intents.intents);
  const isWhole = trees.differences !== null;
  const ignored = new Set(await ignoredOf(storage, absent));
  const leftOut = trees.scopes.map((scope) => leftOutOf(scope));
  const unknown = new Set((trees.differences ?? []).filter(isUnknown).map(({ path }) => path));
  return {
    changed: isWhole ? changedIn(trees.differences) : changedByCalls(named),
    isWhole,
    earlier: await earlierOf(storage, record),
    isLeftOut: (path) => ignored.has(path) || unknown.has(path) || leftOut.some((one) => one(path)),
    byCalls: turn.invocations.some(hasUnknownEffect) ? null : new Set(named.keys()),
    commands,
    hasCalls: hasCalls(turn),
  };
}

const isUnknown = ({ before, after }: Difference): boolean => before === 'unknown' || after === 'unknown';

const changedIn = (differences: readonly Difference[] | null): Set<string> =>
  new Set((differences ?? []).filter((one) => !isUnknown(one)).map(({ path }) => path));

function changedByCalls(named: ReturnType<typeof byPath>): Set<string> {
  const changed = new Set<string>();
  for (const [path, { steps }] of named) {
    const [first, last] = [steps[0], steps.at(-1)];
    if (first === undefined || last === undefined) continue;
    if (last.expected === 'unknown' || !sameImage(first.before, last.expected)) changed.add(path);
  }
  return changed;
}

async function ignoredOf(storage: Storage, paths: readonly string[]): Promise<string[]> {
  if (paths.length === 0) return [];
  const input = encodePath(paths.map((path) => `${path}\0`).join(''));
  const asked = await storage.git.run(['check-ignore', '-z', '--stdin'], { input });
  return asked.code === 0 ? splitPaths(asked.stdout) : [];
}

/** What earlier turns of the task changed, from its first checkpoint that is still there to this turn's own. */
async function earlierOf(storage: Storage, { ledger, turn }: TurnRecord): Promise<Set<string>> {
  const own = turn.started.event.checkpoint;
  if (own === null || turn.started.event.previousTurn === null) return new Set();
  let first: string | null = null;
  for await (const { event } of ledger.turnStarts())
    if (event.seq < turn.started.event.seq) first = event.checkpoint;
  const oldest = first;
  if (oldest === null) return new Set();
  return changedIn(await kept(() => diffCheckpoints(storage, oldest, own)));
}

const MOST_COMMANDS = 5000;

/** What the turn's calls ran, oldest first; the newest 5,000. */
export async function commandsOf({ ledger, turn }: TurnRecord): Promise<RecordedCommand[]> {
  const commands: RecordedCommand[] = [];
  for (const call of turn.invocations.slice(-MOST_COMMANDS)) {
    const { id, state, finished } = call;
    const args = await argumentsOf(ledger, call);
    commands.push({
      invocation: id,
      line: lineOf(call.tool, args),
      state,
      exit: finished?.event.exit ?? null,
    });
  }
  return commands;
}

async function argumentsOf(ledger: Ledger, { args }: InvocationFold): Promise<string> {
  const bytes = args === null ? null : await kept(() => ledger.contents.read(args));
  return bytes === null ? '' : bytes.toString('utf8');
}

/** Under `run` one call stands for the whole agent; agents with hooks, and harnesses, record each of theirs. */
function hasCalls({ invocations, started }: TurnState): boolean {
  const isOneForAll = invocations.some(({ tool, index }) => tool === 'run' && index === 0);
  return !isOneForAll && (invocations.length > 0 || started.event.session !== null);
}
