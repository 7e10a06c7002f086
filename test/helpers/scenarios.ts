/** What a workload does, by scenario; see workload.ts for what it says. */
import type { Host } from '../../lib/host.js';
import { append } from './scenario-append.js';
import { checkpoint } from './scenario-checkpoint.js';
import { conflicts } from './scenario-conflicts.js';
import { decisions } from './scenario-decisions.js';
import { elsewhere } from './scenario-elsewhere.js';
import { housekeeping } from './scenario-housekeeping.js';
import { inbox } from './scenario-inbox.js';
import { installing } from './scenario-install.js';
import { lease } from './scenario-lease.js';
import { orphans } from './scenario-orphans.js';
import { recovery } from './scenario-recovery.js';
import { restore } from './scenario-restore.js';
import { rewinding } from './scenario-rewind.js';
import { serving } from './scenario-serving.js';
import { store } from './scenario-store.js';
import { transaction } from './scenario-transaction.js';
import { turn } from './scenario-turn.js';

export interface Place {
  readonly dir: string;
  readonly host: Host;
}

export interface Run extends Place {
  readonly say: (line: string) => void;
  /** Runs the scenario's `part` in a process of its own, to its end, under a fault plan. */
  readonly part: (faults: string) => void;
}

export interface Scenario {
  readonly prepare: (place: Place) => Promise<void>;
  readonly part?: (place: Place) => Promise<void>;
  /** A folder beside the repository's that belongs to it. */
  readonly aside?: (dir: string) => string;
  /** The fault points it is about; the others are reached by other scenarios. */
  readonly only?: RegExp;
  /**
   * Points at each of whose hits since `begin` it is killed; at any other point once. Of ref moves those after are enough: before
   * the next one the disk is the same.
   */
  readonly every?: RegExp;
  readonly run: (run: Run) => Promise<void>;
  /**
   * Holds the folder to what was said and then does what a user does next, without any help: each finding is a broken
   * promise, in words. `host` is of another boot when the power was lost.
   */
  readonly examine: (after: After) => Promise<string[]>;
}

export interface After extends Place {
  readonly env: Readonly<Record<string, string>>;
  readonly said: readonly string[];
}

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  store,
  append,
  lease,
  transaction,
  checkpoint,
  restore,
  recovery,
  housekeeping,
  elsewhere,
  turn,
  decisions,
  conflicts,
  rewinding,
  orphans,
  inbox,
  installing,
  serving,
};

/** Those whose whole effect is in one folder and one process, so that a disk can be rebuilt from their recording. */
export const RECORDED = Object.keys(SCENARIOS).filter((name) => SCENARIOS[name]?.only === undefined);
