/**
 * What is found on disk of a turn: each touched path with its verdict, each call with its state.
 *
 * Reads the turn's events, the objects they name and the touched paths, nothing else: the cost depends on the turn. The
 * one exception is a call of unknown effect without an end, for which the work tree is compared with the checkpoint taken
 * before it.
 *
 * State of a call (PROTOCOL.md 22, 23): with an end, as it ended · started and without an end: in doubt · proposed only:
 * not started, but in doubt when its effect is found, since some hosts give no moment between a person's yes and the run. A
 * request for approval that still stands open in the ledger proves that it was not started.
 */
import type { InvocationState } from '../event.js';
import { diffCheckpoints, type Difference } from '../files/diff.js';
import { look, type Sight } from '../files/revision.js';
import { verdict, verdictOfChain, type ReadBytes, type Verdict } from '../files/verdict.js';
import type { InvocationFold, TaskState, TurnState } from '../ledger/state.js';
import {
  byPath,
  hasOpenEffect,
  intentsOf,
  pathsOf,
  type Intent,
  type RecoveryContext,
  type TouchedPath,
} from './touched.js';

export interface FileFinding {
  readonly touched: TouchedPath;
  readonly verdict: Verdict;
  readonly sight: Sight;
}

export interface CallFinding {
  readonly call: InvocationFold;
  readonly state: InvocationState;
}

export interface Findings {
  readonly turn: TurnState;
  /** Sorted by path. */
  readonly files: readonly FileFinding[];
  /** In the order they were proposed. */
  readonly calls: readonly CallFinding[];
  /** Folders that the turn's transactions made. */
  readonly folders: ReadonlySet<string>;
}

/** Errors: 'object-missing' when what the turn kept was purged, 'permission-denied', 'io-failed'. */
export async function findingsOf(
  context: RecoveryContext,
  state: TaskState,
  turn: TurnState,
): Promise<Findings> {
  const calls: CallFinding[] = [];
  for (const call of turn.invocations) calls.push({ call, state: await callState(context, state, call) });
  const begun = new Set(calls.filter(({ state: one }) => one !== 'not-started').map(({ call }) => call.id));
  const { intents, folders } = await intentsOf(context, turn, (call) => begun.has(call.id));
  for (const call of turn.invocations) {
    if (begun.has(call.id) && hasOpenEffect(call))
      intents.push(...(await openEffects(context, call, intents)));
  }
  const files: FileFinding[] = [];
  const paths = [...byPath(intents).values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  for (const touched of paths) files.push(await fileFinding(context, touched));
  return { turn, files, calls, folders };
}

async function fileFinding({ storage }: RecoveryContext, touched: TouchedPath): Promise<FileFinding> {
  const sight = look(storage, touched.path);
  const found = await verdictOfChain(touched.steps, sight.found, bytesFrom(storage, sight));
  return { touched, verdict: found, sight };
}

/** The bytes of what was just looked at come from that look, all others from the objects. */
function bytesFrom(storage: RecoveryContext['storage'], { found, bytes }: Sight): ReadBytes {
  const seen = found !== null && typeof found === 'object' ? found.oid : null;
  return async (oid) => (oid === seen && bytes !== null ? bytes : (await storage.objects.read(oid))?.body);
}

async function callState(
  context: RecoveryContext,
  state: TaskState,
  call: InvocationFold,
): Promise<InvocationState> {
  if (call.state === 'started') return 'in-doubt';
  if (call.state !== 'proposed') return call.state;
  if (waitsForAnswer(state, call) || !call.mutates) return 'not-started';
  return (await hasEffect(context, call)) ? 'in-doubt' : 'not-started';
}

function waitsForAnswer(state: TaskState, call: InvocationFold): boolean {
  return [...state.approvals.values()].some(({ requested }) => requested.event.invocation === call.id);
}

async function hasEffect(context: RecoveryContext, call: InvocationFold): Promise<boolean> {
  const { storage } = context;
  if (hasOpenEffect(call)) return (await differences(context, call)).length > 0;
  for (const { path, before, expected } of await pathsOf(context, call)) {
    const sight = look(storage, path);
    const found = await verdict({ before, expected }, sight.found, bytesFrom(storage, sight));
    if (found === 'written' || found === 'partial' || found === 'changed') return true;
  }
  return false;
}

/** What a call of unknown effect may have changed: what differs from before it and no later intent explains. */
async function openEffects(
  context: RecoveryContext,
  call: InvocationFold,
  known: readonly Intent[],
): Promise<Intent[]> {
  const later = new Set(known.filter(({ seq }) => seq > call.seq).map(({ path }) => path));
  const effects: Intent[] = [];
  for (const { path, before } of await differences(context, call)) {
    // What the checkpoint left out has no image to go back to.
    if (later.has(path) || before === 'unknown') continue;
    const step = { before, expected: 'unknown', acknowledged: false } as const;
    effects.push({ path, seq: call.seq, step, permissions: null, isListed: false });
  }
  return effects;
}

async function differences(
  { storage }: RecoveryContext,
  call: InvocationFold,
): Promise<readonly Difference[]> {
  return call.checkpoint === null ? [] : diffCheckpoints(storage, call.checkpoint);
}
