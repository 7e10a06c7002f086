/**
 * Which paths a turn touched, and with what intents, from its events alone.
 *
 * Sources, put in one order by the place of their event in the ledger: the manifests of the turn's transactions (not of
 * an earlier repair, and not of one that was rolled back), the paths its calls named, and for a call whose effect could not be
 * told beforehand the difference between its checkpoints before and after. Where such a call has no end there is no
 * checkpoint after: `openEffects` names it, and lib/recovery/findings.ts compares the work tree with the one before.
 * A call that was denied, or that only waits for an answer, has no intent.
 */
import * as v from 'valibot';
import { DurableError } from '../errors.js';
import { SCHEMAS, type Kept, type Touched } from '../event.js';
import type { Storage } from '../git/storage.js';
import type { Ledger } from '../ledger/ledger.js';
import type { InvocationFold, TransactionState, TurnState } from '../ledger/state.js';
import { compareCheckpoints, inSight, type LeftOut } from '../files/diff.js';
import type { Manifest } from '../files/manifest.js';
import { manifestOf } from '../files/settle.js';
import type { Step } from '../files/verdict.js';
import { meeting, type Losses } from './losses.js';

export interface RecoveryContext {
  readonly storage: Storage;
  readonly ledger: Ledger;
  /** Takes up what cannot be read any more; without it that is an error. */
  readonly losses?: Losses;
}

/** What of a turn its touched paths are told from; a restore outside turns has it too. */
export type Traces = Pick<TurnState, 'id' | 'invocations' | 'transactions' | 'recovered'>;

export interface TouchedPath {
  readonly path: string;
  /** Oldest first, at least one. */
  readonly steps: readonly Step[];
  /** Permission bits of the file as the turn found it, where a manifest says so. */
  readonly permissions: number | null;
  /** A transaction touched it first, so the folders made for it are on record. */
  readonly isListed: boolean;
}

export interface Intent {
  readonly path: string;
  readonly seq: number;
  readonly step: Step;
  readonly permissions: number | null;
  readonly isListed: boolean;
}

/** `leftOut`: what the checkpoints around a finished call of unknown effect did not look into. */
export interface Intents {
  readonly intents: Intent[];
  readonly folders: ReadonlySet<string>;
  readonly leftOut: LeftOut[];
}

/** Intents of the turn's transactions and of those of its calls that `counts` lets in. */
export async function intentsOf(
  context: RecoveryContext,
  turn: Traces,
  counts: (call: InvocationFold) => boolean,
): Promise<Intents> {
  const intents: Intent[] = [];
  const leftOut: LeftOut[] = [];
  const folders = new Set<string>();
  for (const transaction of turn.transactions) {
    if (!isIntent(transaction)) continue;
    const manifest = await manifestIn(context, transaction);
    if (manifest === null) continue;
    for (const folder of manifest.folders) folders.add(folder);
    intents.push(...transactionIntents(transaction, manifest));
  }
  for (const call of turn.invocations) {
    if (call.state === 'denied' || !counts(call)) continue;
    intents.push(...callIntents(call, await pathsOf(context, call)));
    if (!hasUnknownEffect(call)) continue;
    const between = await betweenCheckpoints(context, call);
    intents.push(...between.intents);
    leftOut.push(...between.leftOut);
  }
  return { intents, folders, leftOut };
}

/** One entry a path, its intents in the order of the ledger. */
export function byPath(intents: readonly Intent[]): Map<string, TouchedPath> {
  const paths = new Map<string, TouchedPath>();
  for (const { path, step, permissions, isListed } of intents.toSorted((a, b) => a.seq - b.seq)) {
    const earlier = paths.get(path);
    const first = earlier ?? { path, steps: [], permissions, isListed };
    paths.set(path, { ...first, steps: [...first.steps, step] });
  }
  return paths;
}

/** Null where it is lost. */
export function manifestIn(
  context: RecoveryContext,
  transaction: TransactionState,
): Promise<Manifest | null> {
  const what = `the list of paths of transaction ${transaction.id}`;
  return meeting(context.losses, { what, otherwise: null }, () => manifestOf(context, transaction));
}

/** The paths a call named, inline or in its list. */
export function pathsOf(context: RecoveryContext, call: InvocationFold): Promise<readonly Touched[]> {
  const { pathList } = call;
  if (pathList === null) return Promise.resolve(call.paths);
  const lost = { what: `the list of paths of call ${call.id} (${call.tool})`, otherwise: [] };
  return meeting(context.losses, lost, () => pathsIn(context, pathList));
}

async function pathsIn({ ledger }: RecoveryContext, pathList: Kept): Promise<readonly Touched[]> {
  const text = (await ledger.contents.read(pathList)).toString('utf8');
  const list = v.safeParse(
    v.pipe(v.string(), v.parseJson(), SCHEMAS['invocation.proposed'].entries.paths),
    text,
  );
  if (list.success) return list.output;
  const detail = `its list of paths: ${list.issues[0].message}`;
  throw new DurableError('event-invalid', { commit: null, detail });
}

/** The call may have changed any path: it named none, and a snapshot was taken before it. */
export function hasUnknownEffect(call: InvocationFold): boolean {
  return call.mutates && call.checkpoint !== null;
}

/** As above, and nobody took a snapshot after it: only the work tree can tell. */
export function hasOpenEffect(call: InvocationFold): boolean {
  return hasUnknownEffect(call) && call.state !== 'denied' && call.finished?.event.checkpoint == null;
}

function isIntent({ prepared, state }: TransactionState): boolean {
  return prepared.event.purpose !== 'repair' && state !== 'rolled-back';
}

function transactionIntents({ prepared, state }: TransactionState, { entries }: Manifest): Intent[] {
  return entries.map(({ path, before, after, permissions }) => ({
    path,
    seq: prepared.event.seq,
    step: { before, expected: after, acknowledged: state === 'committed' },
    permissions,
    isListed: true,
  }));
}

function callIntents(call: InvocationFold, paths: readonly Touched[]): Intent[] {
  const left = new Map(call.finished?.event.left?.map(({ path, image }) => [path, image]));
  // What nobody could tell beforehand was looked at just after the call.
  return paths.map(({ path, before, expected }) => ({
    path,
    seq: call.seq,
    step: {
      before,
      expected: expected === 'unknown' ? (left.get(path) ?? (left.has(path) ? null : expected)) : expected,
      acknowledged: call.state === 'finished',
    },
    permissions: null,
    isListed: false,
  }));
}

function betweenCheckpoints(
  context: RecoveryContext,
  call: InvocationFold,
): Promise<Pick<Intents, 'intents' | 'leftOut'>> {
  const lost = { what: baselineOf(call), otherwise: { intents: [], leftOut: [] } };
  return meeting(context.losses, lost, () => comparedAround(context, call));
}

/** What tells which files a call that named none has changed, and what they were. */
export const baselineOf = ({ id, tool }: InvocationFold): string =>
  `the baseline of call ${id} (${tool}), or the checkpoint after it`;

async function comparedAround(
  { storage }: RecoveryContext,
  call: InvocationFold,
): Promise<Pick<Intents, 'intents' | 'leftOut'>> {
  const [before, after] = [call.checkpoint, call.finished?.event.checkpoint ?? null];
  if (before === null || after === null || before === after) return { intents: [], leftOut: [] };
  const intents: Intent[] = [];
  const compared = await compareCheckpoints(storage, before, after);
  for (const difference of inSight(compared)) {
    if (difference.before === 'unknown') continue;
    const step = { before: difference.before, expected: difference.after, acknowledged: true };
    intents.push({ path: difference.path, seq: call.seq, step, permissions: null, isListed: false });
  }
  return { intents, leftOut: [...compared.leftOut] };
}
