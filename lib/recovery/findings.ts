/**
 * What is found on disk of a turn: each touched path with its verdict, each call with its state.
 *
 * Reads the turn's events, the objects they name and the touched paths, nothing else: the cost depends on the turn. The
 * one exception is a call of unknown effect without an end, for which the work tree is compared with the checkpoint taken
 * before it (effects.ts). A path that differs from the scene of the turn's death is foreign there.
 *
 * State of a call (PROTOCOL.md 22, 23): with an end, as it ended · started and without an end: in doubt · proposed only:
 * not started, but in doubt when its effect is found, since some hosts give no moment between a person's yes and the run. A
 * request for approval that still stands open in the ledger proves that it was not started.
 */
import type { Image, InvocationState } from '../event.js';
import type { LeftOut } from '../files/diff.js';
import { look, type Sight } from '../files/revision.js';
import {
  matches,
  verdict,
  verdictOfChain,
  type Expected,
  type Found,
  type ReadBytes,
  type Verdict,
} from '../files/verdict.js';
import { readWhole } from '../git/objects.js';
import type { InvocationFold, TaskState } from '../ledger/state.js';
import { displacedBy, displacementAt, type Displacement } from './displaced.js';
import type { Loss, ReportedFile } from './document.js';
import { effectsOf, type Circumstances, type Effects } from './effects.js';
import { Losses, meeting } from './losses.js';
import type { Aftermath } from './scene.js';
import {
  baselineOf,
  byPath,
  hasOpenEffect,
  intentsOf,
  pathsOf,
  type Intent,
  type RecoveryContext,
  type TouchedPath,
  type Traces,
} from './touched.js';

export interface FileFinding {
  readonly touched: TouchedPath;
  readonly verdict: Verdict;
  readonly sight: Sight;
  /** It holds what a killed repair put there, and `left` is the verdict of what the turn had left. */
  readonly displaced: Displacement | null;
  readonly left: Verdict;
}

export interface CallFinding {
  readonly call: InvocationFold;
  readonly state: InvocationState;
}

export interface Findings {
  readonly turn: Pick<Traces, 'id'>;
  /** Sorted by path. */
  readonly files: readonly FileFinding[];
  /** In the order they were proposed. */
  readonly calls: readonly CallFinding[];
  /** Folders that the turn's transactions made. */
  readonly folders: ReadonlySet<string>;
  /** What the snapshots around calls of unknown effect did not look into; a path may be there twice. */
  readonly leftOut: readonly LeftOut[];
  /** What could not be read, so that files may be missing here. */
  readonly lost: readonly Loss[];
}

/** Whether a roll forward would move a path: of what a shell command writes nobody knows where it was going. */
export function rollsForward({ files }: Pick<Findings, 'files'>): boolean {
  return files.some(
    ({ left, sight }) =>
      left.target !== 'unknown' && left.state !== 'foreign' && !matches(sight.found, left.target),
  );
}

/** Errors: 'permission-denied', 'io-failed'. */
export async function findingsOf(
  { storage, ledger }: Omit<RecoveryContext, 'losses'>,
  of: { readonly state: TaskState; readonly turn: Traces; readonly aftermath: Aftermath },
): Promise<Findings> {
  const { state, turn, aftermath } = of;
  const losses = new Losses();
  const context = { storage, ledger, losses };
  const circumstances = { ...aftermath, displaced: await displacedBy(context, turn) };
  const calls: CallFinding[] = [];
  for (const call of turn.invocations)
    calls.push({ call, state: await callState({ context, state, circumstances }, call) });
  const begun = new Set(calls.filter(({ state: one }) => one !== 'not-started').map(({ call }) => call.id));
  const { intents, folders, leftOut } = await intentsOf(context, turn, (call) => begun.has(call.id));
  const late = new Set<string>();
  for (const call of turn.invocations) {
    if (!begun.has(call.id) || !hasOpenEffect(call)) continue;
    const effects = await effectsIn({ context, state, circumstances }, call);
    if (effects === null) continue;
    intents.push(...openIntents(call, effects.changed, intents));
    for (const path of effects.late) late.add(path);
    leftOut.push(...effects.leftOut);
  }
  const files: FileFinding[] = [];
  const paths = [...byPath(intents).values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  for (const touched of paths)
    files.push(await fileFinding(context, touched, { late, displaced: circumstances.displaced }));
  return { turn, files, calls, folders, leftOut, lost: losses.all };
}

export function reportedFile({ touched, verdict, sight }: FileFinding): ReportedFile {
  return {
    path: touched.path,
    state: verdict.state,
    before: verdict.before?.oid ?? null,
    expected: oidOf(verdict.expected),
    now: oidOf(sight.found),
    beyond: sight.beyond,
  };
}

function oidOf(image: Expected | Found): string | null {
  return image === null || typeof image === 'string' ? null : image.oid;
}

async function fileFinding(
  { storage }: RecoveryContext,
  touched: TouchedPath,
  at: { readonly late: ReadonlySet<string>; readonly displaced: Circumstances['displaced'] },
): Promise<FileFinding> {
  const { path, steps } = touched;
  const sight = look(storage, path);
  const read = bytesFrom(storage, sight);
  const found = await verdictOfChain(steps, sight.found, read);
  const isLate = at.late.has(path) && (found.state === 'changed' || found.state === 'deleted');
  const now: Verdict = isLate ? { ...found, state: 'foreign' } : found;
  const displaced = displacementAt(at.displaced, path, sight.found) ?? null;
  const left = displaced === null ? now : await verdictOfChain(steps, displaced.original, read);
  return { touched, verdict: now, sight, displaced, left };
}

/** The bytes of what was just looked at come from that look, all others from the objects. */
function bytesFrom(storage: RecoveryContext['storage'], { found, bytes }: Sight): ReadBytes {
  const seen = found !== null && typeof found === 'object' ? found.oid : null;
  return async (oid) =>
    oid === seen && bytes !== null ? bytes : (await readWhole(storage.objects, oid))?.body;
}

interface Asked {
  readonly context: RecoveryContext;
  readonly state: TaskState;
  readonly circumstances: Circumstances;
}

async function callState(asked: Asked, call: InvocationFold): Promise<InvocationState> {
  if (call.state === 'started') return 'in-doubt';
  if (call.state !== 'proposed') return call.state;
  if (waitsForAnswer(asked.state, call) || !call.mutates) return 'not-started';
  return (await hasEffect(asked, call)) ? 'in-doubt' : 'not-started';
}

function waitsForAnswer(state: TaskState, call: InvocationFold): boolean {
  return [...state.approvals.values()].some(({ requested }) => requested.event.invocation === call.id);
}

async function hasEffect(asked: Asked, call: InvocationFold): Promise<boolean> {
  const { context } = asked;
  const { storage } = context;
  if (hasOpenEffect(call)) {
    const effects = await effectsIn(asked, call);
    return effects === null || [...effects.changed.keys()].some((path) => !effects.late.has(path));
  }
  for (const { path, before, expected } of await pathsOf(context, call)) {
    const sight = look(storage, path);
    const found = await verdict({ before, expected }, sight.found, bytesFrom(storage, sight));
    if (found === 'written' || found === 'partial' || found === 'changed') return true;
  }
  return false;
}

/** Null where what the files were before it is lost, or the scene after it: then it may have changed any. */
function effectsIn({ context, circumstances }: Asked, call: InvocationFold): Promise<Effects | null> {
  const { checkpoint } = call;
  if (checkpoint === null) return Promise.resolve(null);
  return meeting(context.losses, { what: baselineOf(call), otherwise: null }, () =>
    effectsOf(context, checkpoint, circumstances),
  );
}

/** Of what a call of unknown effect may have changed, all that no later intent explains. */
function openIntents(
  call: InvocationFold,
  changed: ReadonlyMap<string, Image>,
  known: readonly Intent[],
): Intent[] {
  const later = new Set(known.filter(({ seq }) => seq > call.seq).map(({ path }) => path));
  return [...changed]
    .filter(([path]) => !later.has(path))
    .map(([path, before]) => {
      const step = { before, expected: 'unknown', acknowledged: false } as const;
      return { path, seq: call.seq, step, permissions: null, isListed: false };
    });
}
