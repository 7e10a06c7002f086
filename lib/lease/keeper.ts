/**
 * The keeper: a process beside the agent, one a turn, that renews the lease and sees the agent die.
 *
 * Each look (every 400 ms), in this order:
 *   1. the repository is gone, or the lease is not this holding's any more: end
 *   2. the agent is dead: record `turn.interrupted`, with what still runs of the turn, if the turn is open; snapshot the
 *      work tree as it was left (lib/recovery/scene.ts); remove the dead turn's index.lock; end, and leave the lease as it is:
 *      taking over always goes through recovery
 *   3. a third of the TTL has passed since the last record: renew by compare-and-swap, keep `gc.pid`
 *   4. in a turn of an agent's hooks nothing was recorded for `durable.idle`, and no call is under way: the turn is abandoned
 *   5. what somebody took away of the fence is put back (lib/fence/watch.ts)
 * After sleep a renewal is the same swap, and a `git.observed` says how late it came (PROTOCOL.md 36): a local lease is
 * not ended by a clock.
 *
 * Beside its looks the keeper of a turn that an agent's hooks started takes the steps that they bring (lib/agents/serve.ts).
 *
 * A look that fails (a locked ref, a full disk) is tried again at the next one, for as long as the agent lives; after the
 * agent's death for one TTL. Nothing that the keeper does is needed for safety: killed at any point it leaves a lease
 * whose holder is judged by pid and start time, a turn that recovery finds open, and locks that name a dead owner.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { hasCode } from '../errors.js';
import { healFences } from '../fence/heal.js';
import { watchFence } from '../fence/watch.js';
import { Ledger } from '../ledger/ledger.js';
import { keepScene } from '../recovery/scene.js';
import type { Storage } from '../git/storage.js';
import { foreignMarkers } from './foreign.js';
import type { KeeperParameters } from './keeper-start.js';
import { dropMaintenance, holdMaintenance } from './maintenance.js';
import { recordedProcesses } from './older.js';
import { abandonIdle, headOf } from '../turn/idle.js';
import { statOf } from '../git/tree-path.js';
import { findProcesses, type ProcessIdentity } from './processes.js';
import { isToken, readLease, type LeaseRecord } from './record.js';
import { renewLease } from './renew.js';
import { workspaceId } from './workspace.js';

/** Why a keeper ended. */
export type KeeperEnd = 'stopped' | 'gone' | 'over' | 'interrupted' | 'gave-up';

const LOOK_MS = 400;

/** An event is a record, not a listing: `recover` finds them all again. */
const SURVIVORS = 100;

/** Keeps until there is nothing to keep, or `stop` is aborted. Throws nothing: a look that fails is tried again. */
export async function keep(
  storage: Storage,
  parameters: KeeperParameters,
  stop: AbortSignal,
): Promise<KeeperEnd> {
  const keeper = new Keeper(storage, parameters);
  for (;;) {
    const end = await keeper.look();
    if (end !== null) return end;
    if (stop.aborted) return 'stopped';
    await pause(LOOK_MS, undefined, { signal: stop }).catch(() => undefined);
  }
}

class Keeper {
  readonly #storage: Storage;
  readonly #parameters: KeeperParameters;
  #seen: string | null = null;
  #renewed: Instant;
  #died: Instant | null = null;
  #moved: { readonly head: string | null; readonly at: Instant } | null = null;

  constructor(storage: Storage, parameters: KeeperParameters) {
    this.#storage = storage;
    this.#parameters = parameters;
    this.#renewed = this.#instant();
  }

  async look(): Promise<KeeperEnd | null> {
    try {
      return await this.#step();
    } catch (error) {
      if (hasCode(error, 'lease-lost')) return 'over';
      if (this.#isGone()) return 'gone';
      const ttlMs = this.#storage.settings.ttlMs;
      return this.#died !== null && this.#since(this.#died) > ttlMs ? 'gave-up' : null;
    }
  }

  async #step(): Promise<KeeperEnd | null> {
    const { token, agent } = this.#parameters;
    if (this.#isGone()) return 'gone';
    const current = await readLease(this.#storage, token.lease);
    if (current === null || !isToken(current.record, token)) return 'over';
    if (this.#isDead(agent)) return this.#interrupt(current.record);
    const isNew = this.#seen === null;
    // Somebody else of this turn renewed (its sessions changed): that counts as one.
    if (!isNew && current.oid !== this.#seen) this.#renewed = this.#instant();
    this.#seen = current.oid;
    if (isNew || this.#since(this.#renewed) >= current.record.ttlMs / 3) await this.#renew(current.record);
    if (await this.#abandoned(current.record)) return 'over';
    for (const what of await watchFence(this.#storage, current.record, token))
      await this.#observe(current.record, what);
    return null;
  }

  async #renew(record: LeaseRecord): Promise<void> {
    const lateMs = this.#since(this.#renewed);
    const renewed = await renewLease(this.#storage, this.#parameters.token, {
      keeper: this.#storage.identity.self(),
    });
    this.#seen = renewed.oid;
    this.#renewed = this.#instant();
    holdMaintenance(this.#storage, record.holder);
    if (lateMs <= record.ttlMs) return;
    const seconds = String(Math.round(lateMs / 1000));
    await this.#observe(
      record,
      `the lease was renewed ${seconds} s after the last time (the machine slept, or the keeper was stopped)`,
    );
  }

  /** Ends a turn in which nothing happens any more. */
  async #abandoned({ task }: LeaseRecord): Promise<boolean> {
    const { endsIdle, token } = this.#parameters;
    const { idleMs } = this.#storage.settings;
    if (!endsIdle || task === null || idleMs === 0) return false;
    const head = headOf(this.#storage, task);
    if (this.#moved?.head !== head) this.#moved = { head, at: this.#instant() };
    // Of a machine that slept nobody can say that the agent had time to do anything.
    if (this.#storage.host.monotonicMs() - this.#moved.at.monotonic < idleMs) return false;
    const isOver = await abandonIdle(this.#storage, token, idleMs);
    this.#moved = { head, at: this.#instant() };
    return isOver;
  }

  async #observe(record: LeaseRecord, what: string): Promise<void> {
    if (record.task === null) return;
    await Ledger.open(this.#storage, record.task).append(
      () => [
        {
          type: 'git.observed',
          turn: record.turn,
          what,
          ref: null,
          before: null,
          after: null,
          process: null,
        },
      ],
      { lease: null, agent: record.holder.agent, workspace: this.#workspace() },
    );
  }

  async #interrupt(record: LeaseRecord): Promise<KeeperEnd> {
    this.#died ??= this.#instant();
    const { task, turn } = record;
    try {
      if (task !== null && turn !== null) {
        await this.#recordDeath(task, turn, record);
        await keepScene(this.#storage, task, turn);
      }
    } finally {
      // After the scene, which a person's git would change; but a full disk must not keep that git away.
      dropMaintenance(this.#storage, record.holder.pid);
      healFences(this.#storage);
    }
    return 'interrupted';
  }

  async #recordDeath(task: string, turn: string, record: LeaseRecord): Promise<void> {
    const { token, agent } = this.#parameters;
    const recorded = [record.holder, agent, ...(await recordedProcesses(this.#storage, record))];
    const survivors = findProcesses({
      markerHash: record.markerHash,
      recorded,
      holders: [record.holder, agent],
      caller: this.#storage.host.pid,
      isForeign: foreignMarkers(this.#storage),
    }).slice(0, SURVIVORS);
    await Ledger.open(this.#storage, task).append(
      (state) =>
        state.turn?.id === turn && state.turn.state === 'open'
          ? [
              {
                type: 'turn.interrupted',
                turn,
                detectedBy: 'keeper',
                reason: `the agent's process ${String(agent.pid)} ended`,
                survivors,
              },
            ]
          : [],
      { lease: token, agent: record.holder.agent, workspace: this.#workspace() },
    );
  }

  /** Proven, not merely unseen: a process table that cannot be read for a moment ends no turn (PROTOCOL.md 2). */
  #isDead({ pid, start }: ProcessIdentity): boolean {
    const { hostId: host, bootId: boot, pidNamespace } = this.#storage.identity.here();
    return this.#storage.identity.judge({ host, boot, pidNamespace, pid, start }).verdict === 'dead';
  }

  #isGone(): boolean {
    try {
      return statOf(this.#storage.layout.gitDir) === null;
    } catch {
      // Not to be looked at for now is not gone.
      return false;
    }
  }

  #workspace(): string | null {
    return workspaceId(this.#storage, { create: false });
  }

  #instant(): Instant {
    return { monotonic: this.#storage.host.monotonicMs(), uptime: this.#storage.host.uptimeMs() };
  }

  /** A holder counts by the greatest of its clocks (PROTOCOL.md 36): monotonic stands still in suspend. Milliseconds. */
  #since(from: Instant): number {
    const now = this.#instant();
    return Math.max(now.monotonic - from.monotonic, now.uptime - from.uptime);
  }
}

interface Instant {
  readonly monotonic: number;
  readonly uptime: number;
}
