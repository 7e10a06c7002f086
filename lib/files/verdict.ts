/**
 * The verdict of one path after a crash: from what was there before, what was intended, and what is there now.
 *
 * Pure but for `read`, which gives the bytes of an image. The states (the first rule that fits decides):
 *
 * | state     | what is there now |
 * | --------- | ----------------- |
 * | untouched | the image from before |
 * | written   | the intended image, whole (a deletion that was intended and is done is written too) |
 * | partial   | an in-place rewriting cut short: a prefix of the intended bytes, the empty one included, alone or followed by the old bytes at their own offset; or the bytes of one image under the mode of the other |
 * | changed   | anything else, where a tool's effect could not be told beforehand |
 * | deleted   | nothing, although neither image is nothing |
 * | foreign   | bytes that nobody in the turn intended |
 *
 * Several intents on one path make a chain of steps, in the order they were recorded. Only what was acknowledged
 * (a finished call, a committed transaction) is known to have happened, so with *k* the last acknowledged step:
 *
 * - the image of step *k* or of any later step is *written*, and that image is the `expected` of the verdict; the last
 *   one is what a roll forward aims at, an earlier one means that the steps after it left the path alone;
 * - the image from before the first step is *untouched*, even when step *k* was acknowledged: the path is as the turn found it
 *   (a power cut can take back what a tool wrote and did not flush);
 * - a step after *k*, or *k* itself, can be *partial*, over its own before-image (of *k* itself: the before-image as a whole
 *   too, since an acknowledged write of which nothing is there is not done);
 * - an older image is *foreign*: the turn had gone past it, so somebody else has put it back.
 *
 * Caveat: bytes of someone else that happen to be such a prefix (an emptied file, say) are called partial; nothing in
 * them tells the difference. Every repair keeps what it replaces, so either reading can be undone.
 */
import type { FileState, Image } from '../event.js';

/** What is at a path: an image, nothing (null), a folder, or something git has no image for (socket, device). */
export type Found = Image | 'directory' | 'special';

export type Expected = Image | 'unknown';

/** One recorded intent on one path. */
export interface Step {
  readonly before: Image;
  readonly expected: Expected;
  /** It is on record that the step is done. */
  readonly acknowledged: boolean;
}

/** Bytes of a blob (for the image found now: from the disk); undefined when they were purged. */
export type ReadBytes = (oid: string) => Promise<Uint8Array | undefined>;

export interface Verdict {
  readonly state: FileState;
  /** As the turn found the path: where a roll back goes. */
  readonly before: Image;
  /** The image the verdict was judged by. */
  readonly expected: Expected;
  /** The last intended image: where a roll forward goes. */
  readonly target: Expected;
}

/** The verdict of one intent. */
export async function verdict(
  step: { readonly before: Image; readonly expected: Expected },
  now: Found,
  read: ReadBytes,
): Promise<FileState> {
  return (await verdictOfChain([{ ...step, acknowledged: false }], now, read)).state;
}

/** The verdict of all intents on one path, oldest first; at least one. */
export async function verdictOfChain(steps: readonly Step[], now: Found, read: ReadBytes): Promise<Verdict> {
  const [first] = steps;
  const last = steps.at(-1);
  if (first === undefined || last === undefined) throw new RangeError('a verdict needs at least one intent');
  const live = steps.slice(Math.max(0, lastAcknowledged(steps)));
  const judged = (state: FileState, expected: Expected): Verdict => ({
    state,
    before: first.before,
    expected,
    target: last.expected,
  });

  if (matches(now, first.before)) return judged('untouched', last.expected);
  const whole = intended(live).find((image) => matches(now, image));
  if (whole !== undefined) return judged('written', whole);
  for (const step of live.toReversed()) {
    if (await cutShort(step, now, read)) return judged('partial', step.expected);
  }
  if (live.some((step) => step.expected === 'unknown')) return judged('changed', last.expected);
  return judged(now === null ? 'deleted' : 'foreign', last.expected);
}

export function sameImage(a: Image, b: Image): boolean {
  return a === null || b === null ? a === b : a.oid === b.oid && a.mode === b.mode;
}

/** Whether a path holds an image; a folder holds no file, so it is as good as nothing. */
export function matches(now: Found, image: Expected): boolean {
  if (image === 'unknown' || now === 'special') return false;
  return sameImage(now === 'directory' ? null : now, image);
}

/**
 * Whether `now` is what rewriting `before` with `expected` in place leaves when it is cut short at any byte: truncated
 * first (to nothing or to the new length), never truncated, or not yet truncated at the end. `before` null: a new file.
 */
export function isCutShort(before: Uint8Array | null, expected: Uint8Array, now: Uint8Array): boolean {
  const head = commonPrefix(now, expected);
  if (head === now.length) return true;
  if (before === null) return false;
  if (now.length !== before.length && !(now.length === expected.length && now.length < before.length))
    return false;
  return Buffer.compare(now.subarray(head), before.subarray(head, now.length)) === 0;
}

function lastAcknowledged(steps: readonly Step[]): number {
  return steps.findLastIndex((step) => step.acknowledged);
}

/** Images that the live steps vouch for, newest first: what each intends, and what each later one had seen. */
function intended(live: readonly Step[]): Image[] {
  const images: Image[] = [];
  for (const [index, step] of [...live.entries()].toReversed()) {
    if (step.expected !== 'unknown') images.push(step.expected);
    if (index > 0) images.push(step.before);
  }
  return images;
}

async function cutShort(step: Step, now: Found, read: ReadBytes): Promise<boolean> {
  const { before, expected } = step;
  if (now === null || typeof now === 'string' || now.mode === '120000') return false;
  if (expected === null || expected === 'unknown' || expected.mode === '120000') return false;
  const old = before === null || before.mode === '120000' ? null : before;
  if (now.mode !== expected.mode && now.mode !== old?.mode) return false;
  if (now.oid === expected.oid || now.oid === old?.oid) return true;
  const [nowBytes, expectedBytes] = [await read(now.oid), await read(expected.oid)];
  if (nowBytes === undefined || expectedBytes === undefined) return false;
  const oldBytes = old === null ? null : ((await read(old.oid)) ?? null);
  return isCutShort(oldBytes, expectedBytes, nowBytes);
}

function commonPrefix(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  let same = 0;
  for (let step = 1 << 16; step >= 1; step = step >> 4) {
    while (same + step <= length && equalRange(a, b, { from: same, to: same + step })) same += step;
  }
  return same;
}

function equalRange(a: Uint8Array, b: Uint8Array, range: { from: number; to: number }): boolean {
  return Buffer.compare(a.subarray(range.from, range.to), b.subarray(range.from, range.to)) === 0;
}
