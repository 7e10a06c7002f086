/**
 * What must be true, from the independent record and the drill's own reading of the disk.
 *
 * Calling order: `foldRecord` turns the lines into acts; `storiesOf` gives each path what was there before, what each act
 * intended and what is there now; `verdictOf` says what a report must say of it. Nothing here knows the product.
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

export type Intended = Leaf | undefined | 'unknown';

/** One act's intention for one path; undefined stands for no file. */
export interface Step {
  readonly act: ActRecord;
  readonly before: Leaf | undefined;
  readonly expected: Intended;
}

/** One path that the turn was about, and what the acts, in their order, were to do to it. */
export interface Story {
  readonly path: string;
  /** As the turn found it. */
  readonly before: Leaf | undefined;
  readonly steps: readonly Step[];
  readonly now: Leaf | undefined;
}

export interface Trees {
  /** As the turn found it. */
  readonly before: Tree;
  /** After the kill, before anything was planted. */
  readonly killed: Tree;
  /** As the product finds it. */
  readonly now: Tree;
}

export function storiesOf(acts: readonly ActRecord[], trees: Trees): Story[] {
  const stories = new Map<string, Story>();
  for (const act of acts) {
    for (const intention of act.paths) {
      const { path } = intention;
      const before = trees.before.get(path);
      const story = stories.get(path) ?? { path, before, steps: [], now: trees.now.get(path) };
      stories.set(path, { ...story, steps: [...story.steps, stepOf(act, intention, story)] });
    }
  }
  return [...stories.values()];
}

function stepOf(act: ActRecord, intention: Intention, story: Story): Step {
  const last = story.steps.at(-1);
  const before = last === undefined || last.expected === 'unknown' ? story.before : last.expected;
  if ((before?.sha256 ?? null) !== intention.before)
    throw new Error(`the agent found other bytes in '${story.path}' than the drill knows of`);
  return { act, before, expected: expectedLeaf(intention) };
}

/**
 * Acts that the product must know of. One that was only announced may be unknown (killed while the product was being told),
 * unless a byte of its paths has changed: no effect without its intent (design, invariant 2).
 */
export function mustBeKnown(
  stories: readonly Story[],
  acts: readonly ActRecord[],
  killed: Tree,
): Set<number> {
  const known = acts.filter((act) => act.reached.has('entered') || act.reached.has('after'));
  const effects = stories.flatMap((story) =>
    story.steps.filter(
      (step) => step === story.steps.at(-1) && !sameLeaf(step.before, killed.get(story.path)),
    ),
  );
  return new Set([...known, ...effects.map((step) => step.act)].map((act) => act.at));
}

export interface Verdict {
  readonly state: FileVerdict;
  /** The intended image the verdict goes by. */
  readonly expected: Intended;
  /** Where a roll forward goes. */
  readonly target: Intended;
}

/** The verdict on a path, by the steps that are known; undefined when none is. */
export function verdictOf(story: Story, known: ReadonlySet<number>): Verdict | undefined {
  const steps = story.steps.filter((step) => known.has(step.act.at));
  const last = steps.at(-1);
  if (last === undefined) return undefined;
  const target = last.expected;
  if (sameLeaf(story.now, story.before)) return { state: 'untouched', expected: target, target };
  // What an acknowledged act has replaced does not come back by itself.
  const settled = steps.findLastIndex((step) => step.act.reached.has('after'));
  const live = steps.slice(Math.max(settled, 0)).reverse();
  const whole = live.find((step) => step.expected !== 'unknown' && sameLeaf(story.now, step.expected));
  if (whole !== undefined) return { state: 'written', expected: whole.expected, target };
  const cut = live.find((step) => classify(step.before, step.expected, story.now) === 'partial');
  if (cut !== undefined) return { state: 'partial', expected: cut.expected, target };
  return { state: classify(story.before, target, story.now), expected: target, target };
}

function expectedLeaf(intention: Intention): Intended {
  if (intention.after === 'unknown') return 'unknown';
  if (intention.after === null || intention.bytes === null) return undefined;
  const expected = leaf(intention.mode, Buffer.from(intention.bytes, 'base64'));
  if (expected.sha256 !== intention.after) throw new Error(`the record of '${intention.path}' is damaged`);
  return expected;
}

/** The state of one path, by CLI.md's words. */
export function classify(before: Leaf | undefined, expected: Intended, now: Leaf | undefined): FileVerdict {
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

const NO_CALLS: readonly string[] = ['turn', 'background', 'conflict', 'transaction', 'delete', 'mixed'];

/** Whether the product records the act as an invocation. */
export function isCall(act: ActRecord): boolean {
  return !NO_CALLS.includes(act.kind);
}

/** States the act's invocation may be in, 'absent' where the product may not know it. */
export function invocationStates(act: ActRecord): readonly string[] {
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
