/**
 * The documents of recovery that other programs read: `recover --json` before a repair and after one.
 *
 * Field names and values are a contract (the README's section on documents); object ids are hex, times ISO 8601 UTC.
 */
import type { FileState, InvocationState, ProcessRecord } from '../event.js';
import type { ExactJson } from '../exact-json.js';
import type { LeftOut } from '../files/diff.js';
import type { Orphan } from '../orphans/orphan.js';

export interface RecoverReport {
  /** Empty: nothing was interrupted. Oldest turn first. */
  readonly interrupted: readonly InterruptedTurn[];
  /** Who holds a turn of another repository that was begun inside one of these: no repair ends that. */
  readonly foreign: readonly ProcessRecord[];
}

export interface InterruptedTurn {
  readonly turn: string;
  readonly task: string;
  readonly objective: string;
  readonly agent: string;
  readonly startedAt: string;
  readonly lastEventAt: string;
  /** 'keeper' or 'library' where an event says so, 'recover' where this report found the holder dead. */
  readonly detectedBy: 'keeper' | 'recover' | 'library';
  readonly invocations: readonly ReportedInvocation[];
  readonly files: readonly ReportedFile[];
  /** The folder to repair it from; null: the one that was asked. */
  readonly workTree: string | null;
  /** Where it was begun, when this is a copy of that work tree, or that one, moved ('' where nobody knows): then a repair has to name it. */
  readonly origin: string | null;
  /** A roll forward would change something. */
  readonly rollsForward: boolean;
  /** Pending ones, oldest first. */
  readonly approvals: readonly ReportedApproval[];
  readonly orphans: readonly Orphan[];
  /** Calls of unknown effect, and nobody could snapshot the tree when the turn had died: what changed may be a person's. */
  readonly isSceneMissing: boolean;
  readonly gitStatusMatches: boolean;
  /** Paths, sorted, on which `git status` and this report do not agree. */
  readonly drift: readonly string[];
  /** Paths that no repair touches since no checkpoint tells anything of them, sorted: 100 at most. */
  readonly uncovered: readonly Uncovered[];
  /** Of all of them. */
  readonly uncoveredCount: number;
  /** What of the turn's record cannot be read any more: the files are named without it, and it can only be kept as it is. */
  readonly lost: readonly Loss[];
}

export interface Loss {
  /** What it is, in words. */
  readonly what: string;
  /** The object that is gone, or has other bytes. */
  readonly oid: string;
  readonly state: 'missing' | 'damaged';
}

export interface Uncovered {
  /** A folder means all below it. */
  readonly path: string;
  readonly why: LeftOut['why'] | 'ignored';
}

export interface ReportedInvocation {
  readonly id: string;
  readonly tool: string;
  readonly state: InvocationState;
  readonly summary: string;
}

export interface ReportedFile {
  readonly path: string;
  readonly state: FileState;
  readonly before: string | null;
  /** null both for "no file" and for "not known": the state 'changed' tells them apart. */
  readonly expected: string | null;
  readonly now: string | null;
  /** The folder above it that is a link now, so that the path is not in the work tree; not in the JSON document. */
  readonly beyond: string | null;
}

export interface ReportedApproval {
  readonly id: string;
  readonly tool: string;
  /** The exact arguments of the request, a plain string where they are no JSON; null when their bytes were purged. */
  readonly args: ExactJson | string | null;
  readonly fingerprint: string;
  readonly requestedAt: string;
}

export type RepairAction = 'keep' | 'roll-back' | 'roll-forward';

export interface RepairResult {
  readonly turn: string;
  readonly action: RepairAction;
  /** Paths whose bytes were put back or brought forward, sorted. */
  readonly restored: readonly string[];
  readonly removed: readonly string[];
  /** Paths of the turn left alone, sorted. */
  readonly kept: readonly KeptPath[];
  readonly uncovered: readonly Uncovered[];
  readonly uncoveredCount: number;
  /** The tree just before the repair: restoring it undoes the repair. */
  readonly checkpoint: string | null;
  /** Who holds a turn of another repository that was begun inside this one: left alone, with all that it started. */
  readonly foreign: readonly ProcessRecord[];
}

export interface KeptPath {
  readonly path: string;
  /**
   * 'foreign': somebody else changed it since · 'in-the-way': a folder, or a file of another kind, is where it is to go ·
   * 'bytes-missing': what is to be put there is not in the repository any more · 'not-held': what is there now is not in the
   * checkpoint of the repair, so that nothing could undo it.
   */
  readonly why: 'foreign' | 'in-the-way' | 'bytes-missing' | 'not-held';
}
