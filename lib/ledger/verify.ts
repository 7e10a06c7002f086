/** Placeholder of verify's shapes; the rules follow in the next commit. */
import type { Storage } from '../git/storage.js';

export interface Finding {
  readonly task: string;
  /** Number of the event, null when the ledger as a whole is meant. */
  readonly seq: number | null;
  readonly code: string;
  readonly detail: string;
}

export interface Verification {
  readonly ok: boolean;
  readonly events: number;
  /** Commit the ledger's ref is at. */
  readonly head: string | null;
  /** Chain value of the newest event. */
  readonly chain: string | null;
  readonly findings: readonly Finding[];
}

export interface VerifyOf {
  readonly task: string;
  readonly ref: string;
}

export function verifyLedger(storage: Storage, of: VerifyOf): Promise<Verification> {
  const head = storage.refs.read(of.ref);
  return Promise.resolve({ ok: true, events: 0, head, chain: null, findings: [] });
}
