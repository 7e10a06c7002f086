/**
 * The observer: what happened to refs, HEAD, index, stash and work trees during a turn that the turn did not do, as drafts of
 * `git.observed`, at each tool boundary and at the turn's end.
 *
 * Two sources. The hooks (where `init` installed them) write a line for each ref move and each index write, with process and
 * ancestors, and say whose it was. The views (view.ts) find what no hook saw: a program that is not git, `-c core.hooksPath`,
 * `symbolic-ref` of old git. A difference that no line explains is the turn's own when its shim ran a command since the last
 * view, else somebody's who is not known.
 */
import { join } from 'node:path';
import type { DraftOf } from '../event.js';
import { errno } from '../git/disk.js';
import type { Storage } from '../git/storage.js';
import { cut } from '../ledger/subject.js';
import { differences, look, readView, textOf, viewFile, writeView, type Difference } from './view.js';

type Observed = DraftOf<'git.observed'>;

export interface Observing {
  readonly turn: string;
  /** The turn's staging directory: its shim keeps its commands there. */
  readonly stageDir: string;
}

/** The first look, at the turn's start. */
export function beginObserving(storage: Storage, { turn, stageDir }: Observing): void {
  if (storage.settings.fence === 'off') return;
  storage.disk.unlink('fence.view', movesFile(storage));
  writeView(storage, { turn, commands: commandsIn(stageDir), things: look(storage) });
}

/** What came since the last look. Each call returns a thing once; the caller appends it. */
export function observe(storage: Storage, { turn, stageDir }: Observing): Observed[] {
  const before = readView(storage);
  if (before === null || before.turn !== turn) return [];
  const lines = takeMoves(storage);
  const things = look(storage);
  const commands = commandsIn(stageDir);
  const changed = differences(before.things, things);
  if (changed.length > 0 || commands !== before.commands) writeView(storage, { turn, commands, things });
  const others = lines.filter(({ whose }) => whose === 'other');
  const explained = new Set(lines.map(({ thing }) => thing));
  const unexplained =
    commands === before.commands ? changed.filter(({ name }) => !isExplained(name, explained)) : [];
  return [...others.map((line) => seen(turn, line)), ...unexplained.map((one) => found(turn, one))];
}

export function endObserving(storage: Storage): void {
  storage.disk.unlink('fence.view', viewFile(storage));
  storage.disk.unlink('fence.view', movesFile(storage));
}

interface Move {
  readonly whose: string;
  readonly thing: string;
  readonly before: string;
  readonly after: string;
  readonly pid: string;
  readonly start: string;
  readonly command: string;
  readonly above: string;
}

const movesFile = ({ layout }: Storage): string => join(layout.local, 'moves');

/** Renamed away first, so that a hook that writes meanwhile begins another file. */
function takeMoves(storage: Storage): Move[] {
  const { disk } = storage;
  const taken = `${movesFile(storage)}.read`;
  if (disk.rename('fence.view', movesFile(storage), taken) !== 'done') return [];
  const text = textOf(taken);
  disk.unlink('fence.view', taken);
  return text.split('\n').map((line) => {
    const [whose = '', thing = '', before = '', after = '', pid = '', start = '', command = '', above = ''] =
      line.split('\t');
    return { whose, thing, before, after, pid, start, command: command.trim(), above: above.trim() };
  });
}

/** A commit moves HEAD's branch and writes the index; a stash's own entry is its reflog's. */
function isExplained(name: string, explained: ReadonlySet<string>): boolean {
  if (name === 'index') return explained.size > 0;
  return explained.has(name === 'stash' ? 'refs/stash' : name);
}

function seen(turn: string, { thing, before, after, pid, start, command, above }: Move): Observed {
  const below = above === '' ? '' : `, below ${above}`;
  return {
    type: 'git.observed',
    turn,
    what: cut(`${thing} ${thing === 'index' ? 'written' : 'moved'} by '${command}'${below}`, 200),
    ref: thing === 'index' ? null : thing,
    before: before === '-' ? null : before,
    after: after === '-' ? null : after,
    process: { pid: Number(pid), start, command: cut(command, 200) },
  };
}

function found(turn: string, { name, before, after }: Difference): Observed {
  const verb = before === null ? 'appeared' : after === null ? 'went' : 'changed';
  return {
    type: 'git.observed',
    turn,
    what: `${name} ${verb}, and neither the turn's git nor a hook of ours did it`,
    ref: name === 'HEAD' || name.startsWith('refs/') ? name : null,
    before,
    after,
    process: null,
  };
}

function commandsIn(stageDir: string): number {
  try {
    const text = textOf(join(stageDir, 'commands'));
    return text === '' ? 0 : text.split('\n').length;
  } catch (error) {
    if (errno(error) === 'EACCES') return 0;
    throw error;
  }
}
