/**
 * A lease that is held: what its holder may do with it until it lets go.
 *
 * Calling order: `acquire` or `takeOver` give a `Held` · `startKeeper` for a turn · appends pass `token`, work-tree writes go
 * through `stage` · `assert` before any other effect · `release` once the end is recorded. Another process of the same
 * turn (a hook, `ask`) gets its own by `Held.attach`.
 *
 * Guarantees: a lost lease stops closed: every method throws 'lease-lost' and nothing takes it again (invariant 4).
 * Crash points of a release: own stage revoked, record still held: the next one finds a dead holder whose turn is
 * closed, and takes over at once · record free, `gc.pid` still there: it names a dead pid, which git ignores.
 */
import type { ProcessRecord } from '../event.js';
import type { Storage } from '../git/storage.js';
import { dropMaintenance, holdMaintenance } from './maintenance.js';
import { startKeeperProcess, type KeeperProcess } from './keeper-start.js';
import type { ProcessIdentity } from './processes.js';
import {
  readLease,
  tokenOf,
  tokenOid,
  type CurrentLease,
  type LeaseRecord,
  type LeaseToken,
} from './record.js';
import { renewLease, type Renewal } from './renew.js';
import { revokeStage, Stage, sweepRevoked } from './staging.js';
import { DurableError, hasCode, isDurableError } from '../errors.js';

/** How an older holding was ended: for `lease.acquired` and `turn.recovered`. */
export interface TakenOver {
  readonly epoch: number;
  /** How the holder's death was known. */
  readonly proof: string;
  readonly record: LeaseRecord;
  /** Processes of the older epoch that this takeover ended. */
  readonly ended: readonly ProcessRecord[];
  /** Who holds a turn of another repository that was begun inside the older one: left alone. */
  readonly foreign: readonly ProcessRecord[];
}

export class Held {
  readonly token: LeaseToken;
  readonly stage: Stage;
  readonly takenOver: TakenOver | null;
  readonly #storage: Storage;
  #record: LeaseRecord;
  #keeper: KeeperProcess | null = null;

  constructor(storage: Storage, record: LeaseRecord, takenOver: TakenOver | null = null) {
    this.#storage = storage;
    this.#record = record;
    this.token = tokenOf(record);
    this.stage = new Stage(storage, this.token);
    this.takenOver = takenOver;
  }

  /** The holding that a token names, in another process of the same turn. Errors: 'lease-lost'. */
  static async attach(storage: Storage, token: LeaseToken): Promise<Held> {
    await tokenOid(storage, token);
    const current = await readLease(storage, token.lease);
    if (current === null)
      throw new DurableError('lease-lost', { lease: token.lease, detail: 'its ref is gone' });
    return new Held(storage, current.record);
  }

  /** The newest record that this object knows of. */
  get record(): LeaseRecord {
    return this.#record;
  }

  get stageDir(): string {
    return this.stage.dir;
  }

  /** Errors: 'lease-lost' when the lease is not this holding's any more. */
  async assert(): Promise<void> {
    await tokenOid(this.#storage, this.token);
  }

  /** Renews, and changes what is given. Errors: 'lease-lost', 'ref-locked', the disk's. */
  async renew(changes: Renewal = {}): Promise<CurrentLease> {
    const renewed = await renewLease(this.#storage, this.token, changes);
    this.#record = renewed.record;
    if (this.#record.kind === 'turn') holdMaintenance(this.#storage, this.#record.holder);
    return renewed;
  }

  /**
   * Starts the keeper of this turn: it renews, and records the turn as interrupted when `agent` dies. It ends by itself
   * after the release, or within half a second of losing the lease. Resolves when the process was started.
   */
  async startKeeper(agent: ProcessIdentity, { endsIdle = false } = {}): Promise<void> {
    this.#keeper = await startKeeperProcess(this.#storage, this.token, { agent, endsIdle });
  }

  /**
   * Lets go: own stage revoked first (PROTOCOL.md 28), the keeper ended (a paused one may sit on the lease's lock), then a
   * free record that keeps the epoch. Idempotent. Errors: 'lease-lost' when another holds it by now, 'ref-locked', the disk's.
   */
  async release(): Promise<void> {
    revokeStage(this.#storage, this.token.epoch);
    await this.#keeper?.end();
    this.#keeper = null;
    if (!(await this.#isReleased())) {
      const { record } = await renewLease(this.#storage, this.token, { state: 'free', keeper: null });
      this.#record = record;
    }
    dropMaintenance(this.#storage, this.#record.holder.pid);
    sweepRevoked(this.#storage, this.token.epoch);
  }

  /** Release after a failure, which is the one to tell: that letting go failed as well is not said. */
  async letGo(): Promise<void> {
    try {
      await this.release();
    } catch (error) {
      if (!isDurableError(error)) throw error;
    }
  }

  async #isReleased(): Promise<boolean> {
    try {
      await this.assert();
      return false;
    } catch (error) {
      const current = await readLease(this.#storage, this.token.lease);
      const isOwn = current?.record.acquisition === this.token.acquisition;
      if (hasCode(error, 'lease-lost') && isOwn && current.record.state === 'free') return true;
      throw error;
    }
  }
}
