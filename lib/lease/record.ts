/**
 * The lease record: what stands in `refs/durable/leases/<lease>`, and the only door through which it changes.
 *
 * A record is a commit without parent over the empty tree; its message is a subject for people and one line of
 * canonical JSON. The ref moves by compare-and-swap only and is never deleted: a release writes a free record that
 * keeps the epoch (PROTOCOL.md 3). States and what holds in each:
 *
 *   (no ref)   never held; the next epoch is 1
 *   held       `holder`, `acquisition`, `epoch` name who; every other field is about that holding
 *   free       `epoch` is the last one given out; the other fields are the last holding's, for people and for recovery
 *
 * Guarantees: each write carries a fresh nonce, so an object id never comes back and "still the id I read" means "did
 * not move since" (PROTOCOL.md 1). Crash points: before the ref's move nothing happened (an unreachable object stays);
 * after it the new record counts, and the superseded object may stay as litter until `git gc`.
 * Caveat: times in a record are the holder's wall clock, for people; nothing is decided by them (PROTOCOL.md 36).
 */
import * as v from 'valibot';
import { canonicalJson } from '../canonical.js';
import { DurableError, hasCode, isDurableError } from '../errors.js';
import { SCHEMAS } from '../event.js';
import { count } from '../event-shapes.js';
import { freshId } from '../host.js';
import { commitBody, parseCommit, treeBody, type GitObject } from '../git/objects-format.js';
import type { Storage } from '../git/storage.js';
import { allCommits } from '../ledger/torn.js';

export const LEASE_PREFIX = 'refs/durable/leases/';
const RECORD_VERSION = 1;

const text = v.string();
const time = v.pipe(v.string(), v.isoTimestamp());
const turnOfTask = v.strictObject({ task: text, turn: text });

const holder = SCHEMAS['turn.started'].entries.holder;
/** SHA-256 of the environment marker of the holder's processes. */
const markerHash = v.nullable(text);
/** The keeper, once it runs: a taker that may end the holder ends it too. */
const keeper = v.nullable(v.strictObject({ pid: count, start: text }));

/** A turn that is over, and what it is known to have left running (lib/lease/left.ts). */
const leftTurn = v.strictObject({
  task: text,
  turn: text,
  markerHash,
  host: text,
  boot: text,
  pidNamespace: text,
  processes: v.array(SCHEMAS['process.started'].entries.process),
  /** A later turn's start has recorded what became of them. */
  isReconciled: v.boolean(),
});

const RECORD = v.strictObject({
  v: v.literal(RECORD_VERSION),
  lease: text,
  state: v.picklist(['held', 'free']),
  /** 'turn': an agent's turn; 'operation': one explicit manual action. */
  kind: v.picklist(['turn', 'operation']),
  holder,
  task: v.nullable(text),
  turn: v.nullable(text),
  turnKey: v.nullable(text),
  objective: text,
  /** Fencing token: one more than the record it replaced. */
  epoch: v.pipe(count, v.minValue(1)),
  /** Fresh at each acquisition; with the holder it is the token (PROTOCOL.md, Names). */
  acquisition: text,
  /** Fresh in each record. */
  nonce: text,
  ttlMs: v.pipe(count, v.minValue(1)),
  acquiredAt: time,
  renewedAt: time,
  /** The agent's own session ids: a hook of another session never appends under this lease. */
  sessions: v.array(text),
  markerHash,
  workTree: text,
  keeper,
  /** The turn whose holder was taken over; it stays here until the ledger says that it was recovered. */
  recovering: v.nullable(turnOfTask),
  /** Holdings that were taken over and not let go of in good order since, newest first: a taker ends what is left of all. */
  older: v.array(v.strictObject({ holder, markerHash, keeper, renewedAt: v.optional(time) })),
  /** Turns of this work tree before this holding, newest first, as far as something of them may still run. */
  left: v.optional(v.array(leftTurn), []),
});

export type LeaseRecord = v.InferOutput<typeof RECORD>;
export type LeftTurn = LeaseRecord['left'][number];

/** What an append or a work-tree write is checked against: the very acquisition, not only its holder. */
export interface LeaseToken {
  readonly lease: string;
  readonly ref: string;
  readonly runtime: string;
  readonly epoch: number;
  readonly acquisition: string;
}

export interface CurrentLease {
  readonly oid: string;
  readonly record: LeaseRecord;
}

export const leaseOf = (workspace: string): string => `ws-${workspace}`;
export const leaseRef = (lease: string): string => `${LEASE_PREFIX}${lease}`;

/**
 * The record that stands now, or null when the lease was never held.
 * Errors: 'object-missing' when the ref points at nothing, 'object-damaged' when at something else, 'version-unsupported', the
 * disk's.
 */
export async function readLease(storage: Storage, lease: string): Promise<CurrentLease | null> {
  const ref = leaseRef(lease);
  for (;;) {
    const oid = storage.refs.read(ref);
    if (oid === null) return null;
    const known = decoded(storage).get(oid);
    if (known !== undefined) return { oid, record: known };
    const object = await storage.objects.read(oid);
    if (object !== undefined) return { oid, record: remember(storage, oid, recordAt(ref, oid, object)) };
    // A renewal drops the record it superseded: gone and moved on is normal, gone and still named is damage.
    if (storage.refs.read(ref) === oid) throw new DurableError('object-missing', { oid, needed: ref });
  }
}

/**
 * As `readLease`, for who only looks: where the ref is damaged, or at something else, the newest record of this lease that is here.
 * Nothing is decided by compare-and-swap against it. Errors: the disk's.
 */
export async function seenLease(storage: Storage, lease: string): Promise<CurrentLease | null> {
  try {
    return await readLease(storage, lease);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return newestRecord(storage, lease);
  }
}

/** Whether the ref of the lease has to be mended. */
export function isDamage(error: unknown): boolean {
  return (
    hasCode(error, 'ref-damaged') || hasCode(error, 'object-missing') || hasCode(error, 'object-damaged')
  );
}

/**
 * The record with the highest epoch, and of these the last renewed, among all objects: superseded ones are removed, so there
 * is rarely more than one. Null when none is here.
 */
export async function newestRecord(storage: Storage, lease: string): Promise<CurrentLease | null> {
  let newest: CurrentLease | null = null;
  for (const oid of await allCommits(storage)) {
    const record = await recordIn(storage, lease, oid);
    if (record === null) continue;
    const then = newest?.record;
    const isNewer =
      then === undefined ||
      record.epoch > then.epoch ||
      (record.epoch === then.epoch && record.renewedAt > then.renewedAt);
    if (isNewer) newest = { oid, record };
  }
  return newest;
}

async function recordIn(storage: Storage, lease: string, oid: string): Promise<LeaseRecord | null> {
  try {
    const object = await storage.objects.read(oid);
    return object === undefined ? null : ownRecord(lease, oid, object);
  } catch (error) {
    if (isDurableError(error)) return null;
    throw error;
  }
}

/** Names the ref, which is what has to be mended. */
function recordAt(ref: string, oid: string, object: GitObject): LeaseRecord {
  try {
    return ownRecord(ref.slice(LEASE_PREFIX.length), oid, object);
  } catch (error) {
    if (!hasCode(error, 'object-damaged')) throw error;
    const detail = `'${ref}' is at it, and it is no record of that lease: ${error.fields.detail}`;
    throw new DurableError('object-damaged', { oid, detail }, error);
  }
}

function ownRecord(lease: string, oid: string, object: GitObject): LeaseRecord {
  const record = decodeRecord(oid, object);
  if (record.lease === lease) return record;
  throw new DurableError('object-damaged', {
    oid,
    detail: `a record of lease ${record.lease}, not of ${lease}`,
  });
}

/**
 * Object id of the current record, if it is still this token's: what an append verifies inside its ref transaction.
 * Errors: 'lease-lost' for anything else; it is never taken again silently (PROTOCOL.md 6).
 */
export async function tokenOid(storage: Storage, token: LeaseToken): Promise<string> {
  const current = await readLease(storage, token.lease);
  if (current !== null && isToken(current.record, token)) return current.oid;
  throw new DurableError('lease-lost', { lease: token.lease, detail: lostDetail(current, token) });
}

export function isToken(record: LeaseRecord, token: LeaseToken): boolean {
  return (
    record.state === 'held' &&
    record.epoch === token.epoch &&
    record.acquisition === token.acquisition &&
    record.holder.runtime === token.runtime
  );
}

export function tokenOf(record: LeaseRecord): LeaseToken {
  return {
    lease: record.lease,
    ref: leaseRef(record.lease),
    runtime: record.holder.runtime,
    epoch: record.epoch,
    acquisition: record.acquisition,
  };
}

export type SwapOutcome = { readonly moved: true; readonly oid: string } | { readonly moved: false };

/**
 * Writes the record and moves the lease's ref from exactly `from` to it. A swap that lost leaves no object behind.
 * Errors: 'ref-locked', 'out-of-space', 'io-failed': whether the ref moved is then told by reading it.
 */
export async function swapLease(
  storage: Storage,
  from: string | null,
  record: LeaseRecord,
): Promise<SwapOutcome> {
  const fresh = { ...record, nonce: freshId(storage.host) };
  const oid = await storage.objects.write('commit', await recordCommit(storage, from, fresh));
  const outcome = await storage.refs.update({ move: { ref: leaseRef(record.lease), from, to: oid } });
  if (!outcome.moved) {
    storage.objects.drop(oid);
    return { moved: false };
  }
  remember(storage, oid, fresh);
  return { moved: true, oid };
}

async function recordCommit(storage: Storage, from: string | null, record: LeaseRecord): Promise<Buffer> {
  const tree = treeBody([]);
  const emptyTree = storage.objects.hash('tree', tree);
  // The record that is replaced keeps the empty tree reachable; only the first one has to write it.
  if (from === null) await storage.objects.write('tree', tree);
  return commitBody({
    tree: emptyTree,
    parents: [],
    message: `${subject(record)}\n\n${canonicalJson(record)}\n`,
    at: storage.host.now(),
  });
}

function subject(record: LeaseRecord): string {
  const epoch = `epoch ${String(record.epoch)}`;
  if (record.state === 'free') return `lease free: ${epoch}`;
  return `lease held: ${record.holder.agent}, ${record.kind} ${record.turn ?? '-'}, ${epoch}`.slice(0, 200);
}

function decodeRecord(oid: string, { type, body }: GitObject): LeaseRecord {
  if (type !== 'commit')
    throw new DurableError('object-damaged', { oid, detail: `a ${type}, not a lease record` });
  const line = parseCommit(body).message.trimEnd().split('\n').at(-1) ?? '';
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new DurableError('object-damaged', { oid, detail: 'its last line is not JSON' }, error);
  }
  const version = v.safeParse(v.looseObject({ v: count }), value);
  if (version.success && version.output.v > RECORD_VERSION)
    throw new DurableError('version-unsupported', {
      found: version.output.v,
      supported: RECORD_VERSION,
      where: `lease record ${oid}`,
    });
  const result = v.safeParse(RECORD, value);
  if (result.success) return result.output;
  throw new DurableError('object-damaged', {
    oid,
    detail: `not a lease record: ${v.summarize(result.issues)}`,
  });
}

/** Records are immutable, so a decoded one may be kept by its id: an append asks for the same one again and again. */
const caches = new WeakMap<Storage, Map<string, LeaseRecord>>();
const CACHED_RECORDS = 16;

function decoded(storage: Storage): Map<string, LeaseRecord> {
  const cache = caches.get(storage) ?? new Map<string, LeaseRecord>();
  caches.set(storage, cache);
  return cache;
}

function remember(storage: Storage, oid: string, record: LeaseRecord): LeaseRecord {
  const cache = decoded(storage);
  cache.set(oid, record);
  const [oldest] = cache.keys();
  if (cache.size > CACHED_RECORDS && oldest !== undefined) cache.delete(oldest);
  return record;
}

function lostDetail(current: CurrentLease | null, token: LeaseToken): string {
  if (current === null) return 'its ref is gone';
  const { record } = current;
  if (record.state === 'free') return `epoch ${String(token.epoch)} was given up`;
  return `epoch ${String(record.epoch)} is held by ${record.holder.agent} (pid ${String(record.holder.pid)})`;
}
