/**
 * Being refused a lease: the errors that name its holder, and the whole record behind each.
 */
import { DurableError, type HolderSummary } from '../errors.js';
import { challengeMs } from './challenge.js';
import type { Storage } from '../git/storage.js';
import type { OpenTurn } from './open-turn.js';
import type { LeaseRecord } from './record.js';

export function summaryOf({ host }: Storage, record: LeaseRecord): HolderSummary {
  return {
    agent: record.holder.agent,
    host: record.holder.hostname,
    pid: record.holder.pid,
    task: record.task,
    turn: record.turn,
    objective: record.objective,
    since: record.acquiredAt,
    ageMs: host.now().getTime() - Date.parse(record.acquiredAt),
  };
}

export const heldBy = (storage: Storage, record: LeaseRecord, why: string): DurableError =>
  withRecord(new DurableError('lease-held', { ...named(storage, record), why }), record);

/** With the time that a challenger has to wait, in milliseconds. */
export const unprovenBy = (storage: Storage, record: LeaseRecord, why: string): DurableError =>
  withRecord(
    new DurableError('lease-unproven', { ...named(storage, record), why, waitMs: challengeMs(record.ttlMs) }),
    record,
  );

export const interruptedBy = (record: LeaseRecord, open: OpenTurn): DurableError =>
  withRecord(new DurableError('recovery-needed', { ...open }), record);

/** The record that made `acquire` or `takeOver` refuse: its turnKey tells whether the same turn has a winner already. */
export function recordBehind(error: unknown): LeaseRecord | null {
  return typeof error === 'object' && error !== null ? (records.get(error) ?? null) : null;
}

const records = new WeakMap<object, LeaseRecord>();

function withRecord<E extends DurableError>(error: E, record: LeaseRecord): E {
  records.set(error, record);
  return error;
}

const named = (storage: Storage, record: LeaseRecord): { lease: string; holder: HolderSummary } => ({
  lease: record.lease,
  holder: summaryOf(storage, record),
});
