/** What a repair leaves alone and a comparison leaves out, in sentences: for `recover`, `run --recover`, `orphans` and `diff`. */
import type { ProcessRecord } from '../lib/event.js';
import type { InterruptedTurn, KeptPath, RepairResult, Uncovered } from '../lib/recovery/document.js';
import { displayPath } from '../lib/git/path.js';
import { clean, type Output } from './output.js';

const KEPT: Readonly<Record<KeptPath['why'], string>> = {
  foreign: 'somebody else, or a process that the turn left running, changed it since',
  'in-the-way': 'something of another kind stands where it is to go',
  'bytes-missing': "its contents are not in the repository any more; look: 'git durable verify'",
  'not-held': 'the checkpoint of this repair does not hold what is there, so that nothing could undo it',
};

/** One line a path, on standard error, and one for what no checkpoint holds. */
export function noteLeftAlone(output: Output, done: RepairResult): void {
  for (const { path, why } of done.kept) output.note(`kept '${displayPath(path)}': ${KEPT[why]}`);
  noteForeign(output, done.foreign);
  if (done.uncoveredCount > 0) output.note(`in no checkpoint, so left as found: ${named(done)}`);
}

/** One line a turn of another repository, on standard error. */
export function noteForeign(output: Output, foreign: readonly ProcessRecord[]): void {
  for (const { pid, command } of foreign)
    output.note(
      `process ${String(pid)} (${clean(command)}) holds a turn of another repository; it is left alone, with all that it started`,
    );
}

/** One line on standard error for what one of two checkpoints has left out. */
export function noteNotCompared(output: Output, leftOut: readonly Uncovered[]): void {
  const listed = { uncovered: leftOut, uncoveredCount: leftOut.length };
  if (leftOut.length > 0) output.note(`not compared, since it was left out: ${named(listed)}`);
}

/** Rows of a table. */
export function uncoveredRows(turn: Listed): string[][] {
  const rows = shown(turn).map(({ path, why }) => [why, displayPath(path)]);
  return [...rows, ...more(turn).map((text) => ['', text])];
}

type Listed = Pick<InterruptedTurn, 'uncovered' | 'uncoveredCount'>;

function named(listed: Listed): string {
  const names = shown(listed).map(({ path, why }) => `${displayPath(path)} (${why})`);
  return [...names, ...more(listed)].join(', ');
}

const ROWS = 20;

/** What is ignored is rarely what was worked on. */
function shown({ uncovered }: Listed): Uncovered[] {
  const isIgnored = ({ why }: Uncovered): boolean => why === 'ignored';
  return [...uncovered.filter((one) => !isIgnored(one)), ...uncovered.filter(isIgnored)].slice(0, ROWS);
}

function more(turn: Listed): string[] {
  const rest = turn.uncoveredCount - shown(turn).length;
  return rest > 0 ? [`and ${String(rest)} more`] : [];
}
