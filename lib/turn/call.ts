/**
 * One tool call of a turn: intent on disk before the effect, the end after it (invariant 2).
 *
 * `openCall` keeps the exact arguments and the before and after bytes of the paths the call names, then appends
 * `invocation.proposed` and `invocation.started`; only then may the effect begin. A call whose effect nobody can tell
 * beforehand (a shell command) gets a checkpoint before and after instead. Killed in between, the call is in doubt: recovery
 * says so and never guesses.
 */
import { digest } from '../canonical.js';
import type { DraftOf, EventDraft, EventOf, FileMode, Image, Kept, Recorded, Touched } from '../event.js';
import { conflict } from '../files/apply.js';
import { takeCheckpoint } from '../files/checkpoint.js';
import { recordConflict, refuseConflicting, withConflict } from '../files/conflict.js';
import { fileOnly, look, type Sight } from '../files/revision.js';
import { sameImage } from '../files/verdict.js';
import { filePath, refuseDetour } from '../git/tree-path.js';
import { freshId } from '../host.js';
import { hasUnknownEffect, pathsOf } from '../recovery/touched.js';
import { cut } from '../ledger/subject.js';
import { argsText, exactBytes } from '../decisions/fingerprint.js';
import { refuseNameless } from './call-shape.js';
import { recordObserved, type TurnContext } from './context.js';

export interface IntendedPath {
  /** Relative to the work tree, `/`-separated. */
  readonly path: string;
  /** The whole content there will be, null for a deletion, 'unknown' when it cannot be told. For a link: its target. */
  readonly expected: Uint8Array | null | 'unknown';
  /** Default: the mode that is there, else 100644. */
  readonly mode?: FileMode;
  /**
   * What the caller read (null: no file); default: what the turn has read of it. When it is no longer there the call is refused
   * with 'conflict' before anything runs, and both sides are recorded.
   */
  readonly revision?: Image;
}

export interface Call {
  readonly tool: string;
  /** Kept byte for byte: a string as it is, anything else as JSON (undefined as null); what JSON cannot say is refused with 'usage'. */
  readonly args: unknown;
  /** Default: the work tree. */
  readonly cwd?: string;
  /** One line for people, cut at 200 characters. Default: the arguments. */
  readonly summary?: string;
  /** The paths it will write. Absent with `mutates`: unknown, and a checkpoint is taken before and after. */
  readonly paths?: readonly IntendedPath[];
  /** Whether it may change the work tree. Default: true when `paths` is absent or not empty. */
  readonly mutates?: boolean;
  /** The host's own call id: the same call reported twice is one event. */
  readonly key?: string;
}

export interface CallEnd {
  readonly state: 'finished' | 'failed' | 'denied';
  readonly summary?: string;
  /** What a replay returns in place of running it again. */
  readonly result?: Uint8Array | null;
  readonly exit?: number | null;
  readonly settled?: 'accepted' | 'retried' | 'found' | null;
}

export interface ProposedCall {
  readonly invocation: string;
  readonly index: number;
  readonly draft: EventDraft;
  readonly args: Kept;
  readonly unknownEffect: boolean;
  /** The paths it named, with what it will write. */
  readonly touched: readonly Touched[];
}

type Left = NonNullable<EventOf<'invocation.finished'>['left']>[number];

const MOST_INLINE_PATHS = 64;

/** As `proposing`, and all of it is kept when this resolves. */
export async function proposeCall(
  context: TurnContext,
  call: Call,
  at: { index: number; invocation?: string },
): Promise<ProposedCall> {
  const { proposed, kept } = await proposing(context, call, at);
  await kept;
  return proposed;
}

/**
 * Keeps what must be known before the effect, and gives the draft of `invocation.proposed`, to be appended after `kept`; appends nothing but
 * `conflict.detected`. Errors: 'conflict', 'conflict-open', 'path-refused', 'path-outside', 'usage' for what names no tool, or
 * has arguments that cannot be kept as they are.
 */
export async function proposing(
  context: TurnContext,
  call: Call,
  at: { index: number; invocation?: string },
): Promise<{ readonly proposed: ProposedCall; readonly kept: Promise<unknown> }> {
  refuseNameless(call);
  const args = exactBytes('arguments', argsText(call.args));
  await recordObserved(context);
  const mutates = call.mutates ?? call.paths?.length !== 0;
  const unknownEffect = mutates && call.paths === undefined;
  const { touched, contents } = await captureTouched(context, call.paths ?? []);
  const { kept, done } = context.ledger.contents.keeping([args, ...contents]);
  const [keptArgs] = kept;
  if (keptArgs === undefined) throw new RangeError('contents kept nothing of the arguments');
  const invocation = at.invocation ?? freshId(context.storage.host);
  // A checkpoint moves the same ref.
  if (unknownEffect) await done;
  const checkpoint = unknownEffect ? await snapshot(context, `before ${call.tool}`, 'before-tool') : null;
  const paths = await inlineOrKept(context, touched);
  const draft: EventDraft = {
    type: 'invocation.proposed',
    turn: context.turn,
    key: call.key ?? `${context.turn}:${invocation}`,
    invocation,
    index: at.index,
    tool: call.tool,
    summary: cut(call.summary ?? args.toString('utf8'), 200),
    cwd: call.cwd ?? context.storage.layout.workTree,
    argsDigest: digest(args),
    args: keptArgs,
    mutates,
    ...paths,
    checkpoint,
  };
  const proposed = { invocation, index: at.index, draft, args: keptArgs, unknownEffect, touched };
  return { proposed, kept: done };
}

export function startedDraft(context: TurnContext, invocation: string, approval: string | null): EventDraft {
  return { type: 'invocation.started', turn: context.turn, invocation, approval, process: null };
}

/** Records the end of a call. With an unknown effect a checkpoint holds what it left. */
export async function endCall(
  context: TurnContext,
  call: Pick<ProposedCall, 'invocation' | 'unknownEffect'> & Partial<Pick<ProposedCall, 'touched'>>,
  end: CallEnd & { durationMs: number | null },
): Promise<Recorded> {
  await recordObserved(context);
  const checkpoint =
    call.unknownEffect && end.state !== 'denied'
      ? await snapshot(context, 'after a tool', 'after-tool')
      : null;
  const { left, contents } = leftOf(context, end.state === 'denied' ? [] : (call.touched ?? []));
  const result = end.result ?? null;
  const { kept, done } = context.ledger.contents.keeping(result === null ? contents : [result, ...contents]);
  const said = { ...end, checkpoint, result: result === null ? null : (kept[0] ?? null) };
  const finished = finishedDraft(context, call.invocation, said);
  const draft = left.length === 0 ? finished : { ...finished, left };
  const [recorded] = await context.append(() => [draft], done);
  if (recorded === undefined) throw new RangeError('the ledger recorded nothing of one draft');
  noteWritten(context, call.touched ?? [], end.state);
  return recorded;
}

/** By the host's call id, once, however often it is reported. False when no such call is on record. Errors: those of `endCall`. */
export async function endReported(
  context: TurnContext,
  key: string,
  end: CallEnd & { readonly durationMs: number | null },
): Promise<boolean> {
  const { turn } = await context.ledger.state();
  const call = turn?.invocations.find((one) => one.key === key);
  if (call === undefined) return false;
  if (call.finished !== null) return true;
  const touched = await pathsOf(context, call);
  await endCall(context, { invocation: call.id, unknownEffect: hasUnknownEffect(call), touched }, end);
  return true;
}

/** What is there now of the paths whose content nobody could tell beforehand: what recovery holds later changes to. */
function leftOf(
  context: TurnContext,
  touched: readonly Touched[],
): { readonly left: Left[]; readonly contents: readonly Uint8Array[] } {
  const left: Left[] = [];
  const contents: Uint8Array[] = [];
  for (const { path, expected } of touched) {
    if (expected !== 'unknown') continue;
    const { found, bytes } = look(context.storage, path);
    if (typeof found === 'string' || (found !== null && bytes === null)) continue;
    if (bytes !== null) contents.push(bytes);
    left.push({ path, image: found });
  }
  return { left, contents };
}

/** What a call said it would write it has written when it ended well; when it failed, only where that is found. */
function noteWritten(context: TurnContext, touched: readonly Touched[], state: CallEnd['state']): void {
  const { storage, reads } = context;
  for (const { path, expected } of touched) {
    if (expected === 'unknown') {
      reads.wroteUnknown(storage, [path]);
      continue;
    }
    const { found } = look(storage, path);
    const isThere = typeof found !== 'string' && found?.oid === expected?.oid;
    // With the mode that it has: what is said beforehand is the content.
    if (isThere) reads.wrote([[path, found]]);
    else if (state === 'finished') reads.wrote([[path, expected]]);
  }
}

function finishedDraft(
  context: TurnContext,
  invocation: string,
  end: Omit<CallEnd, 'result'> & {
    readonly durationMs: number | null;
    readonly checkpoint: string | null;
    readonly result: Kept | null;
  },
): DraftOf<'invocation.finished'> {
  return {
    type: 'invocation.finished',
    turn: context.turn,
    invocation,
    state: end.state,
    summary: cut(end.summary ?? '', 200),
    exit: end.exit ?? null,
    resultDigest: end.result?.digest ?? null,
    result: end.result,
    checkpoint: end.checkpoint,
    durationMs: end.durationMs,
    settled: end.settled ?? null,
  };
}

/** The end of a call that was refused: it never ran, and the reason is its result. */
export async function deniedDraft(
  context: TurnContext,
  invocation: string,
  reason: string,
): Promise<EventDraft> {
  const [result = null] = await context.ledger.contents.keep([Buffer.from(reason, 'utf8')]);
  return finishedDraft(context, invocation, {
    state: 'denied',
    summary: reason,
    result,
    durationMs: null,
    checkpoint: null,
  });
}

export async function snapshot(
  context: TurnContext,
  message: string,
  reason: 'before-tool' | 'after-tool',
): Promise<string> {
  const taken = await takeCheckpoint(context.storage, context.ledger, {
    message,
    reason,
    turn: context.turn,
    by: { agent: context.agent, workspace: context.workspace },
  });
  return taken.checkpoint;
}

/** Reads each path as it is now; the bytes of both images go among the contents, or no rollback could bring them back. */
async function captureTouched(
  context: TurnContext,
  intended: readonly IntendedPath[],
): Promise<{ touched: Touched[]; contents: Uint8Array[] }> {
  const paths = intended.map((one) => ({ ...one, path: filePath(one.path) }));
  await refuseConflicting(
    context,
    paths.map(({ path }) => path),
  );
  const touched: Touched[] = [];
  const contents: Uint8Array[] = [];
  for (const one of paths) {
    refuseDetour(context.storage.layout, one.path);
    const sight = look(context.storage, one.path);
    await refuseChanged(context, one, sight);
    const { bytes } = sight;
    const found = fileOnly(one.path, sight.found);
    if (bytes !== null) contents.push(bytes);
    const expected = expectedImage(context, one, found);
    if (one.expected instanceof Uint8Array) contents.push(one.expected);
    touched.push({ path: one.path, before: found, expected });
  }
  return { touched, contents };
}

function expectedImage(context: TurnContext, intended: IntendedPath, before: Image): Touched['expected'] {
  if (intended.expected === 'unknown') return 'unknown';
  if (intended.expected === null) return null;
  return {
    oid: context.storage.objects.hash('blob', intended.expected),
    mode: intended.mode ?? before?.mode ?? '100644',
  };
}

async function refuseChanged(context: TurnContext, intended: IntendedPath, sight: Sight): Promise<void> {
  const { path, expected } = intended;
  const read = intended.revision === undefined ? context.reads.revision(path) : intended.revision;
  const { found, bytes } = sight;
  const isAsRead = read === undefined || (typeof found !== 'string' && sameImage(found, read));
  // No call means to write through a pipe, a socket or a device: whoever put it there has changed what the call was made for.
  if (isAsRead && found !== 'special') return;
  const to = expectedImage(context, intended, read ?? null);
  const isMineUnknown = to === 'unknown';
  const blobs = new Map<string, Uint8Array>();
  if (expected instanceof Uint8Array && to !== null && !isMineUnknown) blobs.set(to.oid, expected);
  const clash = {
    move: { path, from: read ?? null, to: isMineUnknown ? null : to },
    found,
    bytes,
    blobs,
    late: false,
  };
  const { bytesOf } = context.reads;
  const id = await recordConflict(context, { clash, bytesOf, isMineUnknown, why: 'changed-since-read' });
  throw withConflict(conflict(clash), id);
}

async function inlineOrKept(
  context: TurnContext,
  touched: Touched[],
): Promise<{ paths: Touched[]; pathList: Kept | null }> {
  if (touched.length <= MOST_INLINE_PATHS) return { paths: touched, pathList: null };
  const [pathList] = await context.ledger.contents.keep([Buffer.from(JSON.stringify(touched), 'utf8')]);
  return { paths: [], pathList: pathList ?? null };
}
