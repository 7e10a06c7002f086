/** What a workload does, by scenario; see workload.ts for what it says. */
import type { Host } from '../../lib/host.js';
import { lease } from './scenario-lease.js';
import { store } from './scenario-store.js';

export interface Run {
  readonly dir: string;
  readonly host: Host;
  readonly say: (line: string) => void;
}

export interface Scenario {
  readonly prepare: (run: Run) => Promise<void>;
  readonly run: (run: Run) => Promise<void>;
  /**
   * Holds the folder to what was said and then does what a user does next, without any help: each finding is a broken
   * promise, in words. `host` is of another boot when the power was lost.
   */
  readonly examine: (after: After) => Promise<string[]>;
}

export interface After {
  readonly dir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly host: Host;
  readonly said: readonly string[];
}

export const SCENARIOS: Readonly<Record<string, Scenario>> = { store, lease };
