/**
 * The observer: what happened to refs, HEAD, index, stash and work trees during a turn that the turn did not do, as drafts of
 * `git.observed`, at each tool boundary and at the turn's end.
 *
 * A difference between two views (view.ts) is the turn's own only when something says so of that very thing and value: a hook of
 * ours that this git ran, or the shim that its command went through (moves.ts). Only where no hook of ours could have told, for
 * want of one in place, do the shim's commands explain what one of them could have moved (own-commands.ts). What others moved is told
 * with process and ancestors where a hook of ours ran, else as what was found: a program that is not git, `-c core.hooksPath`,
 * `symbolic-ref` of old git.
 *
 * A git of the turn may be at work at any look: what it has moved is told only once it has ended, so what nothing explains then is
 * left for the next look, until the turn's end.
 */
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { DraftOf } from '../event.js';
import type { Storage } from '../git/storage.js';
import { cut } from '../ledger/subject.js';
import { expect, unexplained, type Expected } from './expected.js';
import { isOutdated } from './hooks-dir.js';
import { hooklessness, installedHooks, missingHooks, unchainedHooks } from './hooks.js';
import { dropMoves, takeMoves, type Move } from './moves.js';
import { couldMove, couldMoveUnseen, isUnhooked, ownCommands, type OwnCommands } from './own-commands.js';
import {
  differences,
  indexOf,
  look,
  readView,
  viewFile,
  writeView,
  type Difference,
  type View,
} from './view.js';

type Observed = DraftOf<'git.observed'>;

export interface Observing {
  readonly turn: string;
  /** The turn's staging directory: its shim keeps its commands there. */
  readonly stageDir: string;
}

/** The first look, at the turn's start. */
export function beginObserving(storage: Storage, { turn, stageDir }: Observing): void {
  if (storage.settings.fence === 'off') return;
  dropMoves(storage);
  const { read } = ownCommands(stageDir);
  writeView(storage, { turn, commands: read, running: [], hooks: hooksOf(storage), things: look(storage) });
}

/** What came since the last look. Each call returns a thing once; the caller appends it. `isLast`: no look follows. */
export function observe(storage: Storage, { turn, stageDir }: Observing, isLast: boolean): Observed[] {
  const before = readView(storage);
  if (before === null || before.turn !== turn) return [];
  const { now, expected, commands, open, late } = see(storage, before, stageDir);
  const left = isLast || commands.running.length === 0 ? [] : open;
  const things = without(now, [...left, ...late]);
  const { read, running } = commands;
  const isNew = read !== before.commands || differences(before.things, things).length > 0;
  const hooks = hooksOf(storage);
  if (isNew || hooks !== before.hooks || !isDeepStrictEqual(running, before.running))
    writeView(storage, { turn, commands: read, running: [...running], hooks, things });
  const found = onceOfStash([...expected.gaps, ...(left.length > 0 ? [] : open)]);
  return [
    ...grouped(expected.others, ({ thing, other }) => [
      thing,
      `${String(other?.pid)} ${other?.start ?? ''}`,
    ]).map((moves) => told(turn, moves)),
    ...grouped(found, ({ name }) => [name, '']).map((differing) => nobodys(turn, differing)),
  ];
}

const hooksOf = (storage: Storage): string | null => installedHooks(storage)?.dir ?? null;

export function endObserving(storage: Storage): void {
  storage.disk.unlink('fence.view', viewFile(storage));
  dropMoves(storage);
}

interface Sight {
  readonly now: View['things'];
  readonly expected: Expected;
  readonly commands: OwnCommands;
  /** Unexplained. */
  readonly open: readonly Difference[];
  /** Came while we looked: for the next look to explain. */
  readonly late: readonly Difference[];
}

/**
 * A git may move something between a look and the reading of what was told: a difference is one that neither a look before nor one
 * after it explains.
 */
function see(storage: Storage, before: View, stageDir: string): Sight {
  const first = look(storage);
  const commands = ownCommands(stageDir, before);
  const expected = expect(before.things, takeMoves(storage), (name) => indexOf(join(stageDir, name)));
  const found = beyond(storage, before, { now: first, expected, commands });
  if (found.length === 0) return { now: first, expected, commands, open: [], late: [] };
  const now = look(storage);
  const names = new Set(found.map(({ name }) => name));
  const again = beyond(storage, before, { now, expected, commands });
  return {
    now,
    expected,
    commands,
    open: again.filter(({ name }) => names.has(name)),
    late: again.filter(({ name }) => !names.has(name)),
  };
}

/** `things` as they were before those differences. */
function without(things: View['things'], differing: readonly Difference[]): View['things'] {
  const names = new Set(differing.map(({ name }) => name));
  const entries = Object.entries(things).filter(([name]) => !names.has(name));
  const back = differing.flatMap(({ name, before }) => (before === null ? [] : [[name, before] as const]));
  return Object.fromEntries([...entries, ...back]);
}

/** What is not explained by what the turn's own commands could have moved either. */
function beyond(
  storage: Storage,
  since: View,
  { now, expected, commands }: Pick<Sight, 'now' | 'expected' | 'commands'>,
): Difference[] {
  const open = unexplained(since.things, now, expected);
  if (open.length === 0) return [];
  const isTold = isHooked(storage, since);
  const branches = [since.things, now].map(({ HEAD = '' }) => HEAD.replace(/^ref: /, ''));
  return open.filter(
    (one) =>
      !commands.given.some(
        (command) =>
          couldMoveUnseen(command, one) ||
          ((!isTold || isUnhooked(command)) && couldMove(command, one, branches)),
      ),
  );
}

/** Whether hooks of ours have told of what git moved since that view, as far as one can see: they were where git looks. */
function isHooked(storage: Storage, since: View): boolean {
  const { dir, settings = {} } = installedHooks(storage) ?? {};
  if (dir === undefined || dir !== since.hooks || isOutdated(settings) || hooklessness(storage) !== null)
    return false;
  return missingHooks(storage).length === 0 && unchainedHooks(storage).length === 0;
}

/** What one fetch brings is one thing; all else is each its own. `of`: a thing's name, and whose it is. */
function grouped<T>(
  all: readonly T[],
  of: (one: T) => readonly [name: string, whose: string],
): [T, ...T[]][] {
  const groups = new Map<string, [T, ...T[]]>();
  for (const [at, one] of all.entries()) {
    const [name, whose] = of(one);
    const key = name.startsWith('refs/remotes/') ? whose : `${whose} ${String(at)}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return [...groups.values()];
}

/** Where its ref has moved, its list has as well. */
function onceOfStash(found: readonly Difference[]): Difference[] {
  const hasRef = found.some(({ name }) => name === 'refs/stash');
  return found.filter(({ name }) => !hasRef || name !== 'stash');
}

const isRef = (name: string): boolean => name === 'HEAD' || name.startsWith('refs/');

function told(turn: string, [{ thing, before, after, other }, ...more]: [Move, ...Move[]]): Observed {
  const { pid, start, command, above } = other ?? { pid: 0, start: '', command: '', above: '' };
  const below = above === '' ? '' : `, below ${above}`;
  return {
    type: 'git.observed',
    turn,
    what: cut(`${thing}${counted(more)} ${verbOf(thing, after)} by '${command}'${below}`, 200),
    ref: isRef(thing) ? thing : null,
    before: before ?? null,
    after: after ?? null,
    process: other === null || pid === 0 ? null : { pid, start, command: cut(command, 200) },
  };
}

function verbOf(thing: string, after: Move['after']): string {
  if (thing === 'index') return 'written';
  if (thing.startsWith('work tree ')) return 'made';
  return after === null ? 'taken away' : 'moved';
}

function nobodys(turn: string, [{ name, before, after }, ...more]: [Difference, ...Difference[]]): Observed {
  const verb = before === null ? 'appeared' : after === null ? 'went' : 'changed';
  return {
    type: 'git.observed',
    turn,
    what: cut(`${name}${counted(more)} ${verb}, and neither the turn's git nor a hook of ours did it`, 200),
    ref: name === 'stash' ? 'refs/stash' : isRef(name) ? name : null,
    before: shown(name, before),
    after: shown(name, after),
    process: null,
  };
}

const counted = (more: readonly unknown[]): string =>
  more.length === 0 ? '' : ` and ${String(more.length)} more`;

/** A stash is shown by its newest entry and their number. */
function shown(name: string, value: string | null): string | null {
  if (name !== 'stash' || value === null) return value;
  const entries = value.split(' ');
  return `${String(entries.length)} with ${entries.at(-1) ?? ''}`;
}
