/**
 * `index.lock`, held while a turn is open: what refuses every git that stages, and libgit2, JGit and IDEs too.
 *
 * Calling order: `raiseFence` before the lease is claimed · `showState` once it is · the turn · its end is recorded and the lease
 * let go · `lowerFence`. The lock is `link(ticket, index.lock)` (PROTOCOL.md 25), and the ticket's owner is the turn's holder: an
 * agent may outlive the process that started its turn. Whoever finds it dead removes the lock (`healFences`): the
 * keeper, every verb, every start. A lock that is not ours is git's: waited for, reported, never removed.
 *
 * Crash points: the ticket's file, the pid file or the state file without the lock: litter, swept with the dead owner's
 * ticket, or replaced by the next turn · the lock without a lease: its owner is dead and any verb takes it away.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { DurableError } from '../errors.js';
import type { Storage } from '../git/storage.js';
import { readTicket } from '../git/tickets.js';
import { demandFree } from '../lease/acquire.js';
import type { ProcessIdentity } from '../lease/processes.js';
import { healFences } from './heal.js';
import { disarmHooks } from './hooks.js';
import { endObserving } from './observer.js';
import { emptyOwnGit } from './own-git.js';
import { indexLock, pidFile } from './place.js';
import { fenceOf, hideState, holderSentence, readState, stateFile } from './state.js';

export interface FencedTurn {
  readonly turn: string;
  readonly task: string | null;
  readonly agent: string;
  readonly objective: string;
  readonly holder: ProcessIdentity;
  /** Whether its own git has the shim. Without one the lock would refuse the agent's git as well as any other (FENCE.md, section 0, 4). */
  readonly hasShim: boolean;
}

const POLL_MS = 20;

/**
 * Takes the lock, where `durable.fence` is `strict` and the turn's own git has the shim; waits `durable.lockWait` for a git that holds it. Errors: those of `acquire`
 * while another turn or operation has it, 'index-locked', the disk's.
 */
export async function raiseFence(
  storage: Storage,
  fenced: FencedTurn,
  refuse: (storage: Storage) => Promise<void> = demandFree,
): Promise<void> {
  if (fenceOf(storage, fenced) !== 'strict') return;
  const { host, layout, settings } = storage;
  const until = host.monotonicMs() + settings.lockWaitMs;
  while (!take(storage, fenced)) {
    if (healFences(storage).includes(indexLock(layout.gitDir))) continue;
    // Another turn has it, or is about to: its lease tells who it is.
    await refuse(storage);
    if (host.monotonicMs() >= until) throw locked(storage, indexLock(layout.gitDir));
    await pause(POLL_MS);
  }
  namePid(storage, fenced);
}

/** Takes a lock again that is gone during the turn; true when it was. A git that is quicker has it until it is done. */
export function takeAgain(storage: Storage, fenced: Omit<FencedTurn, 'hasShim'>): boolean {
  const state = readState(stateFile(storage.layout));
  if (state?.turn !== fenced.turn || state.mode !== 'strict') return false;
  const isGone = readTicket(indexLock(storage.layout.gitDir)) === null;
  if (!isGone || !take(storage, fenced)) return false;
  namePid(storage, fenced);
  return true;
}

function namePid({ disk, layout }: Storage, { holder }: Pick<FencedTurn, 'holder'>): void {
  disk.unlink('fence.pid', pidFile(layout.gitDir));
  const named = Buffer.from(`pid ${String(holder.pid)}\n`, 'utf8');
  disk.createPassing('fence.pid', pidFile(layout.gitDir), named, 0o644);
}

/** Gives the lock back if it is this turn's, with all that goes with it. Idempotent. Errors: the disk's. */
export function lowerFence(storage: Storage, turn: string): void {
  const { disk, layout } = storage;
  hideState(storage, turn);
  emptyOwnGit(storage, turn);
  disarmHooks(storage);
  endObserving(storage);
  const owner = readTicket(indexLock(layout.gitDir));
  if (owner === null || owner === 'foreign' || owner.turn !== turn) return;
  disk.unlink('fence.lower', pidFile(layout.gitDir));
  disk.unlink('fence.lower', indexLock(layout.gitDir));
}

/** A lock of ours that no holder of this work tree gives back: copied with the repository. Its turn over, `healFences` takes it. */
export function lockLeft({ layout }: Storage): string[] {
  const owner = readTicket(indexLock(layout.gitDir));
  return owner === null || owner === 'foreign' ? [] : [indexLock(layout.gitDir)];
}

function take(storage: Storage, fenced: Omit<FencedTurn, 'hasShim'>): boolean {
  const { disk, layout, tickets } = storage;
  const ticket = tickets.issueFor(fenced.holder, { text: lockText(storage, fenced), turn: fenced.turn });
  try {
    return disk.link('fence.lock', ticket, indexLock(layout.gitDir)) === 'done';
  } finally {
    disk.unlink('ticket.drop', ticket);
  }
}

function lockText(
  storage: Storage,
  { turn, task, agent, objective, holder }: Omit<FencedTurn, 'hasShim'>,
): string {
  const { hostname } = storage.identity.here();
  const acquiredAt = storage.host.now().toISOString();
  const who = holderSentence({ holder: { agent, hostname, pid: holder.pid }, task, objective, acquiredAt });
  const own = 'in a work tree of your own: git durable run --worktree -- CMD';
  return `${who}, turn ${turn}; what it does: git durable status; beside it all the same, and recorded: git durable op --beside -- GIT ARGS; ${own}`;
}

function locked(storage: Storage, path: string): DurableError {
  const owner = readTicket(path);
  // Its owner lives and has no lease here, or that would have been the refusal.
  const name =
    owner === null || owner === 'foreign'
      ? 'a git process'
      : `process ${String(owner.pid)}, whose turn ${owner.turn ?? ''} is no turn of this work tree: the lock was copied with the repository,`;
  return new DurableError('index-locked', { path, owner: name, waitedMs: storage.settings.lockWaitMs });
}
