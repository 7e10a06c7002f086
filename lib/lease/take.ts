/**
 * The swap that gives a lease to its next holder, and what has to be done before that holder may act (PROTOCOL.md 11).
 */
import { digest } from '../canonical.js';
import type { Storage } from '../git/storage.js';
import { freshId } from '../host.js';
import { Held, type TakenOver } from './hold.js';
import { leftTurns } from './left.js';
import { holdMaintenance } from './maintenance.js';
import { settleOlder, type Settled } from './older.js';
import { isFinished, openTurnOf } from './open-turn.js';
import type { ProcessIdentity } from './processes.js';
import { isToken, readLease, swapLease, tokenOf, type CurrentLease, type LeaseRecord } from './record.js';
import { renewLease } from './renew.js';
import { makeStage } from './staging.js';
import { workspaceId } from './workspace.js';

export interface LeaseRequest {
  readonly kind: 'turn' | 'operation';
  readonly task: string | null;
  readonly turn: string | null;
  readonly turnKey: string | null;
  readonly objective: string;
  readonly agent: string;
  readonly sessions?: readonly string[];
  /** Whose death frees the lease; this process when absent. */
  readonly holderProcess?: ProcessIdentity;
  /** The secret in the environment of the holder's processes (`DURABLE_MARKER`); only its hash is kept. */
  readonly marker?: string;
  /** Who waits for `holderProcess` and lets go when it has ended, where that is another one. */
  readonly keeper?: ProcessIdentity;
}

export interface Take {
  readonly lease: string;
  /** The record that was judged; the swap is against this very one. */
  readonly current: CurrentLease | null;
  readonly request: LeaseRequest;
  /** How the holder's death is known; null where the lease was free. */
  readonly proof: string | null;
  /** What was done to get that proof. */
  readonly settled: Settled;
}

/** The id of this work tree, made if there is none. */
export function ownWorkspace(storage: Storage): string {
  const id = workspaceId(storage, { create: true });
  if (id === null) throw new TypeError('a workspace that is made has an id');
  return id;
}

/**
 * The holding, or null when the record moved meanwhile. When a step after the swap fails, the lease is handed back: free
 * again, or naming the dead holder under the new epoch, so that the next one finds what this one found.
 */
export async function takeFrom(storage: Storage, take: Take): Promise<Held | null> {
  const record = await draftRecord(storage, take);
  try {
    const outcome = await swapLease(storage, take.current?.oid ?? null, record);
    if (!outcome.moved) return null;
    const replaced = take.proof === null ? null : (take.current?.record ?? null);
    // A turn that was finished left its background processes alive on purpose, as after a release.
    const isDone = replaced !== null && (await isFinished(storage, replaced));
    const settled = await settleOlder(storage, record.epoch, isDone ? null : replaced);
    makeStage(storage, record.epoch);
    if (record.kind === 'turn') holdMaintenance(storage, record.holder);
    return new Held(storage, record, takenOver(take, replaced, settled));
  } catch (error) {
    await handBack(storage, take, record);
    throw error;
  }
}

async function draftRecord(storage: Storage, take: Take): Promise<LeaseRecord> {
  const { lease, current, request } = take;
  const { host, identity, settings, layout } = storage;
  const here = identity.here();
  const now = host.now().toISOString();
  const open = current === null ? null : await openTurnOf(storage, current.record);
  return {
    v: 1,
    lease,
    state: 'held',
    kind: request.kind,
    holder: {
      runtime: freshId(host),
      agent: request.agent,
      host: here.hostId,
      hostname: here.hostname,
      boot: here.bootId,
      pidNamespace: here.pidNamespace,
      ...(request.holderProcess ?? identity.self()),
    },
    task: request.task,
    turn: request.turn,
    turnKey: request.turnKey,
    objective: request.objective.slice(0, OBJECTIVE_CHARACTERS).toWellFormed(),
    epoch: (current?.record.epoch ?? 0) + 1,
    acquisition: freshId(host),
    nonce: '',
    ttlMs: Math.max(SHORTEST_TTL_MS, settings.ttlMs),
    acquiredAt: now,
    renewedAt: now,
    sessions: [...(request.sessions ?? [])],
    markerHash: request.marker === undefined ? null : digest(request.marker),
    workTree: layout.workTree,
    keeper: request.keeper ?? null,
    recovering: open === null ? null : { task: open.task, turn: open.turn },
    older: olderHoldings(take),
    left: current === null ? [] : await leftTurns(storage, current.record),
  };
}

/** What a taker that dies before it has settled them leaves to the next one (PROTOCOL.md 11); none after a free record. */
function olderHoldings({ current, proof }: Take): LeaseRecord['older'] {
  if (current === null || proof === null) return [];
  const { holder, markerHash, keeper, renewedAt, older } = current.record;
  return [{ holder, markerHash, keeper, renewedAt }, ...older].slice(0, OLDER_HOLDINGS);
}

const OLDER_HOLDINGS = 16;
const OBJECTIVE_CHARACTERS = 200;
/** A keeper looks a few times a second: a shorter TTL could not be kept. */
const SHORTEST_TTL_MS = 1000;

function takenOver(take: Take, replaced: LeaseRecord | null, settled: Settled): TakenOver | null {
  if (replaced === null || take.proof === null) return null;
  const foreign = new Map([...take.settled.foreign, ...settled.foreign].map((one) => [one.pid, one]));
  return {
    epoch: replaced.epoch,
    proof: take.proof,
    record: replaced,
    ended: [...take.settled.ended, ...settled.ended],
    foreign: [...foreign.values()],
  };
}

/** Best effort: when it fails too, the lease names this process, whose end is proof enough for the next one. */
async function handBack(storage: Storage, take: Take, record: LeaseRecord): Promise<void> {
  try {
    const current = await readLease(storage, take.lease);
    if (current === null || !isToken(current.record, tokenOf(record))) return;
    const before = take.current?.record;
    if (before?.state !== 'held') await renewLease(storage, tokenOf(record), { state: 'free' });
    else
      await swapLease(storage, current.oid, {
        ...before,
        epoch: record.epoch,
        acquisition: record.acquisition,
      });
  } catch {
    // The first error is the one to tell.
    return;
  }
}
