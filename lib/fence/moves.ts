/**
 * What hooks and the turn's shim have written for the observer since the last look.
 *
 * `<git dir>/durable/moves`, one line each, between tabs: `hook`, thing, before, after, pid, start of the git that ran the hook
 * (whose it is, its command line and its ancestors are in `mover.PID.START` beside it) · `own`, thing, before, after, pid: what
 * the shim saw a command of the turn change that no hook of git sees. `-` where nobody could tell.
 */
import { join } from 'node:path';
import { namesIn } from '../git/disk.js';
import type { Storage } from '../git/storage.js';
import { isPidTaken } from '../lease/processes.js';
import { textOf } from './view.js';

export interface Move {
  readonly from: 'hook' | 'shim';
  /** As in a view, and full names of refs. */
  readonly thing: string;
  /** null: not there; undefined: nobody could tell. */
  readonly before: string | null | undefined;
  readonly after: string | null | undefined;
  /** null: the turn's own. */
  readonly other: Mover | null;
}

export interface Mover {
  readonly pid: number;
  readonly start: string;
  readonly command: string;
  /** Programs and pids, the nearest first. */
  readonly above: string;
}

const MOVER = 'mover.';

/** Each line once. The file is renamed away first, so that a hook that writes meanwhile begins another one. */
export function takeMoves(storage: Storage): Move[] {
  const { disk, layout } = storage;
  const taken = `${movesFile(storage)}.read`;
  if (disk.rename('fence.view', movesFile(storage), taken) !== 'done') return [];
  const lines = textOf(taken).split('\n').filter(Boolean);
  disk.unlink('fence.view', taken);
  const movers = new Map<string, Mover | null>();
  const moves = lines.map((line) => parse(line, (name) => moverOf(layout.local, movers, name)));
  dropDead(storage);
  return moves;
}

export function dropMoves(storage: Storage): void {
  const { disk, layout } = storage;
  disk.unlink('fence.view', movesFile(storage));
  for (const name of namesIn(layout.local))
    if (name.startsWith(MOVER)) disk.unlink('fence.view', join(layout.local, name));
}

const movesFile = ({ layout }: Storage): string => join(layout.local, 'moves');

function parse(line: string, moverNamed: (name: string) => Mover | null): Move {
  const [by, thing = '', before = '-', after = '-', pid = '', start = ''] = line.split('\t');
  const from = by === 'hook' ? 'hook' : 'shim';
  const other = from === 'hook' ? moverNamed(`${MOVER}${pid}.${start}`) : null;
  return { from, thing, before: valueOf(before), after: valueOf(after), other };
}

function valueOf(text: string): string | null | undefined {
  if (text === '-') return undefined;
  return /^0*$/.test(text) ? null : text.replace(/^ref:(?=\S)/, 'ref: ');
}

/** Of a git whose process nobody wrote down nothing is known but that it was one: it is somebody's. */
function moverOf(dir: string, known: Map<string, Mover | null>, name: string): Mover | null {
  const seen = known.get(name);
  if (seen !== undefined) return seen;
  const [whose = '', command = '', above = ''] = textOf(join(dir, name)).split('\t');
  const [, pid = '', start = ''] = name.split('.');
  const mover =
    whose === 'own' ? null : { pid: Number(pid), start, command: command.trim(), above: above.trim() };
  known.set(name, mover);
  return mover;
}

/** A git that lives may have hooks yet. */
function dropDead({ disk, layout }: Storage): void {
  for (const name of namesIn(layout.local))
    if (name.startsWith(MOVER) && !isPidTaken(Number(name.split('.')[1])))
      disk.unlink('fence.view', join(layout.local, name));
}
