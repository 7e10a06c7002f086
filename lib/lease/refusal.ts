/**
 * Being refused a lease: the errors that name its holder, and the whole record behind each.
 */
import { DurableError, type HolderSummary } from '../errors.js';
import { challengeMs } from './challenge.js';
import type { OpenTurn } from './open-turn.js';
import type { LeaseRecord } from './record.js';

export function summaryOf(record: LeaseRecord): HolderSummary {
  return {
    agent: record.holder.agent,
    host: record.holder.hostname,
    pid: record.holder.pid,
    task: record.task,
    turn: record.turn,
    objective: record.objective,
    since: record.acquiredAt,
  };
}

export const heldBy = (record: LeaseRecord, why: string): DurableError =>
  withRecord(new DurableError('lease-held', { ...named(record), why }), record);

/** With the time that a challenger has to wait, in milliseconds. */
export const unprovenBy = (record: LeaseRecord, why: string): DurableError =>
  withRecord(
    new DurableError('lease-unproven', { ...named(record), why, waitMs: challengeMs(record.ttlMs) }),
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

const named = (record: LeaseRecord): { lease: string; holder: HolderSummary } => ({
  lease: record.lease,
  holder: summaryOf(record),
});
