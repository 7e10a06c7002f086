/**
 * Deciding a conflict, by a person from outside or by a harness in its own turn.
 *
 * 'use-latest' writes nothing: what is at the path stays, and the path is free again; it needs no lease. 'keep-mine' puts what
 * was to come in place of whatever is there, under the work tree's lease (the turn's own, or an operation's, so that it is
 * refused under another's turn): a checkpoint of now, then `conflict.resolved` and `transaction.prepared` in one ref move,
 * then the rename. Killed before that move, the conflict is open as before; killed after it, it is interrupted work: `recover`
 * names it, rolled forward it is decided, rolled back it is open again.
 */
import { DurableError } from '../errors.js';
import type { EventOf } from '../event.js';
import {
  findUnsettled,
  holdsMine,
  refuseSettled,
  resolvedDraft,
  settleConflict,
  type ListedConflict,
} from '../decisions/conflict.js';
import { takeCheckpoint } from '../files/checkpoint.js';
import type { Move } from '../files/manifest.js';
import { look } from '../files/revision.js';
import { applyEntries, type TransactionContext } from '../files/transaction.js';
import type { Storage } from '../git/storage.js';
import { below } from '../git/walk.js';
import { ownWorkspace } from '../lease/take.js';
import { Ledger } from '../ledger/ledger.js';
import type { TurnContext } from './context.js';
import { underOperation } from './operation.js';

export interface ConflictAnswer {
  readonly choice: EventOf<'conflict.resolved'>['choice'];
  /** Who decides, for the ledger. */
  readonly by: string;
}

export interface ResolvedConflict {
  readonly task: string;
  readonly conflict: string;
  readonly path: string;
  readonly choice: ConflictAnswer['choice'];
  /** Paths that were written, and removed to make room. */
  readonly restored: readonly string[];
  readonly removed: readonly string[];
  /** The work tree just before: restoring it undoes the writing. Null when nothing was written. */
  readonly checkpoint: string | null;
}

/**
 * By the conflict's id or a prefix. Errors: 'not-found', 'ambiguous', 'conflict-settled', 'usage' ('keep-mine' where nobody knows
 * what was to come, or in another work tree), 'path-refused' (what is there cannot give way), 'lease-held', 'recovery-needed'.
 */
export async function resolveConflict(
  storage: Storage,
  id: string,
  answer: ConflictAnswer,
): Promise<ResolvedConflict> {
  const listed = await findUnsettled(storage, id);
  if (isAppendOnly(storage, listed, answer)) return appended(storage, listed, answer);
  const { task } = listed;
  const objective = `keep mine at ${listed.conflict.detected.event.path}`;
  return underOperation(storage, { task, objective }, (held) => {
    const ledger = Ledger.open(storage, task);
    const workspace = ownWorkspace(storage);
    return keepMine({ storage, ledger, held, agent: 'person', workspace, turn: null }, listed, answer);
  });
}

/** The same inside a turn, under its own lease. */
export async function resolveInTurn(
  context: TurnContext,
  id: string,
  answer: ConflictAnswer & { readonly invocation?: string | undefined },
): Promise<ResolvedConflict> {
  const { storage, turn } = context;
  const listed = await findUnsettled(storage, id);
  if (isAppendOnly(storage, listed, answer)) return appended(storage, listed, answer);
  const isOwn = listed.task === context.ledger.task;
  const ledger = isOwn ? context.ledger : Ledger.open(storage, listed.task);
  const own = isOwn ? answer : { by: answer.by };
  const done = await keepMine({ ...context, ledger, turn: isOwn ? turn : null }, listed, own);
  const { mine } = listed.conflict.detected.event;
  if (mine !== 'unknown') context.reads.wrote([[done.path, mine]]);
  return done;
}

/** Refused first: what cannot be done is told before a lease is asked for. */
function isAppendOnly(storage: Storage, { conflict }: ListedConflict, { choice }: ConflictAnswer): boolean {
  const { mine, workspace, path } = conflict.detected.event;
  if (choice === 'use-latest') return true;
  if (mine === 'unknown')
    throw new DurableError('usage', {
      detail: `nobody knows what was to come at '${path}': only --use-latest can be chosen`,
    });
  if (workspace !== ownWorkspace(storage))
    throw new DurableError('usage', {
      detail: "the conflict is of another work tree; decide it there, with 'git durable -C DIR resolve'",
    });
  return holdsMine(storage, conflict);
}

async function appended(
  storage: Storage,
  listed: ListedConflict,
  answer: ConflictAnswer,
): Promise<ResolvedConflict> {
  await settleConflict(storage, listed, answer);
  return outcome(listed, answer.choice, { restored: [], removed: [], checkpoint: null });
}

async function keepMine(
  context: TransactionContext,
  listed: ListedConflict,
  { by, invocation }: { readonly by: string; readonly invocation?: string | undefined },
): Promise<ResolvedConflict> {
  const { storage, ledger, agent, workspace, turn } = context;
  const { conflict } = listed;
  refuseSettled(await ledger.state(), conflict.id);
  const moves = movesTo(storage, conflict.detected.event);
  const { checkpoint } = await takeCheckpoint(storage, ledger, {
    message: `before keeping mine of conflict ${conflict.id}`,
    reason: 'before-restore',
    paths: moves.map(({ path }) => path),
    turn,
    by: { agent, workspace },
  });
  await applyEntries(context, moves, {
    purpose: 'restore',
    isKept: false,
    prune: 'emptied',
    ...(invocation === undefined ? {} : { invocation }),
    alongside: (state, transaction) => {
      refuseSettled(state, conflict.id);
      return [resolvedDraft(conflict, 'keep-mine', { by, transaction })];
    },
  });
  const pathsOf = (of: (move: Move) => boolean): string[] => moves.filter(of).map(({ path }) => path);
  return outcome(listed, 'keep-mine', {
    restored: pathsOf(({ to }) => to !== null),
    removed: pathsOf(({ to }) => to === null),
    checkpoint,
  });
}

/** From what is there now, whatever that is, to what was to come. A folder gives way with all that the checkpoint can hold. */
function movesTo(storage: Storage, { path, mine }: EventOf<'conflict.detected'>): Move[] {
  const to = mine === 'unknown' ? null : mine;
  const { found } = look(storage, path);
  if (found === 'special') throw new DurableError('path-refused', { path, why: SPECIAL });
  if (found !== 'directory') return [{ path, from: found, to }];
  const { files, nested, unreadable } = below(storage.layout.workTree, path);
  if (nested.length + unreadable.length > 0) {
    const why = nested.length > 0 ? 'a repository is in the folder there' : 'the folder there cannot be read';
    throw new DurableError('path-refused', { path, why });
  }
  const removals = files.map((file): Move => {
    const inside = look(storage, file).found;
    if (inside === null || typeof inside === 'string')
      throw new DurableError('path-refused', { path: file, why: 'it is not a regular file' });
    return { path: file, from: inside, to: null };
  });
  return [...removals, { path, from: null, to }];
}

const SPECIAL =
  'a pipe, a socket or a device is there, which no checkpoint holds: remove it, and decide then';

function outcome(
  { task, conflict }: ListedConflict,
  choice: ConflictAnswer['choice'],
  written: Pick<ResolvedConflict, 'restored' | 'removed' | 'checkpoint'>,
): ResolvedConflict {
  return { task, conflict: conflict.id, path: conflict.detected.event.path, choice, ...written };
}
