/**
 * What must be true, from the independent record and the drill's own reading of the disk.
 *
 * Calling order: `foldRecord` turns the lines into acts; `whatHappened` pairs each path an act was about with what was
 * there before, what was intended and what is there now. Nothing here knows the product.
 */
import type { Intention, Line, Phase } from './record.js';
import { leaf, sameLeaf, type Leaf, type Tree } from './tree.js';

export interface ActRecord {
  readonly at: number;
  readonly kind: string;
  readonly detail: string;
  readonly reached: ReadonlySet<Phase>;
  readonly paths: readonly Intention[];
  readonly facts: NonNullable<Line['facts']>;
}

/** Acts in the order they were begun. */
export function foldRecord(lines: readonly Line[]): ActRecord[] {
  const acts = new Map<number, ActRecord>();
  for (const line of lines) {
    const known = acts.get(line.act);
    acts.set(line.act, {
      at: line.act,
      kind: line.kind,
      detail: line.detail,
      reached: new Set([...(known?.reached ?? []), line.phase]),
      paths: line.paths ?? known?.paths ?? [],
      facts: { ...known?.facts, ...line.facts },
    });
  }
  return [...acts.values()];
}

export type FileVerdict = 'untouched' | 'written' | 'partial' | 'foreign' | 'deleted' | 'changed';

/** One path that an act was about. */
export interface TouchedPath {
  readonly path: string;
  readonly act: ActRecord;
  readonly before: Leaf | undefined;
  /** Undefined: no file is intended. */
  readonly expected: Leaf | undefined | 'unknown';
  readonly now: Leaf | undefined;
  readonly state: FileVerdict;
  /** False where the product may never have been told: killed while it was being told, and no byte has changed. */
  readonly mustBeKnown: boolean;
}

export interface Trees {
  /** As the turn found it. */
  readonly before: Tree;
  /** After the kill, before anything was planted. */
  readonly killed: Tree;
  /** As the product finds it. */
  readonly now: Tree;
}

export function whatHappened(acts: readonly ActRecord[], trees: Trees): TouchedPath[] {
  return acts.flatMap((act) => act.paths.map((intention) => touched(act, intention, trees)));
}

function touched(act: ActRecord, intention: Intention, trees: Trees): TouchedPath {
  const { path } = intention;
  const before = trees.before.get(path);
  const now = trees.now.get(path);
  if ((before?.sha256 ?? null) !== intention.before)
    throw new Error(`the agent found other bytes in '${path}' than the drill had put there`);
  const expected = expectedLeaf(intention);
  const told = act.reached.has('entered') || act.reached.has('after');
  const effect = act.paths.some(
    (each) => !sameLeaf(trees.before.get(each.path), trees.killed.get(each.path)),
  );
  return {
    path,
    act,
    before,
    expected,
    now,
    state: classify(before, expected, now),
    mustBeKnown: told || effect,
  };
}

function expectedLeaf(intention: Intention): Leaf | undefined | 'unknown' {
  if (intention.after === 'unknown') return 'unknown';
  if (intention.after === null || intention.bytes === null) return undefined;
  const expected = leaf(intention.mode, Buffer.from(intention.bytes, 'base64'));
  if (expected.sha256 !== intention.after) throw new Error(`the record of '${intention.path}' is damaged`);
  return expected;
}

/** The state of one path, by CLI.md's words. */
export function classify(
  before: Leaf | undefined,
  expected: Leaf | undefined | 'unknown',
  now: Leaf | undefined,
): FileVerdict {
  if (sameLeaf(now, before)) return 'untouched';
  if (expected === 'unknown') return 'changed';
  if (sameLeaf(now, expected)) return 'written';
  if (now === undefined) return 'deleted';
  return expected !== undefined && cutShort(before, expected, now) ? 'partial' : 'foreign';
}

/** A rewriting in place that stopped: the new bytes up to somewhere, then nothing or the old bytes at their own places. */
function cutShort(before: Leaf | undefined, expected: Leaf, now: Leaf): boolean {
  if (now.mode !== expected.mode && now.mode !== before?.mode) return false;
  for (let cut = 0; cut <= now.bytes.length; cut += 1) {
    if (cut > 0 && now.bytes[cut - 1] !== expected.bytes[cut - 1]) return false;
    if (cut === now.bytes.length) return true;
    if (before !== undefined && now.bytes.subarray(cut).equals(before.bytes.subarray(cut))) return true;
  }
  return false;
}

/** States an invocation may be in, 'absent' where the product may not know it; undefined for an act that is none. */
export function invocationStates(act: ActRecord): readonly string[] | undefined {
  if (['turn', 'background', 'transaction', 'delete'].includes(act.kind)) return undefined;
  const asked = act.reached.has('after');
  if (act.kind === 'approval') return asked ? ['not-started'] : ['absent', 'not-started'];
  if (act.kind === 'denied') return asked ? ['denied'] : ['absent', 'not-started', 'denied'];
  const end = act.kind === 'failed' ? 'failed' : 'finished';
  if (asked) return [end];
  if (act.reached.has('wrote') || (act.kind === 'failed' && act.reached.has('entered')))
    return ['in-doubt', end];
  if (act.reached.has('entered')) return ['in-doubt'];
  return ['absent', 'not-started', 'in-doubt'];
}
