/**
 * The commands that the turn's git was given, as its shim wrote them down (`<stage>/commands`: pid and words, between tabs), and what
 * one of them could have moved. That explains a difference only where no hook of ours could have told whose it is.
 */
import { basename, join } from 'node:path';
import { errno } from '../git/disk.js';
import { verbAt } from '../git/command-words.js';
import { isPidTaken } from '../lease/processes.js';
import { textOf, type Difference } from './view.js';

export interface OwnCommand {
  /** Git's own options left out. */
  readonly verb: string;
  readonly words: readonly string[];
}

export interface OwnCommands {
  /** Lines of the record. */
  readonly read: number;
  /** Lines of commands whose process lives. */
  readonly running: readonly number[];
  /** Given since the last look, or running then. */
  readonly given: readonly OwnCommand[];
}

/** `since`: how far the record had been read, and what was running then. */
export function ownCommands(
  stageDir: string,
  since: { readonly commands: number; readonly running: readonly number[] } = { commands: 0, running: [] },
): OwnCommands {
  const lines = recordIn(stageDir);
  const asked = [...since.running, ...lines.keys()].filter(
    (at, index) => index < since.running.length || at >= since.commands,
  );
  const given = asked.map((at) => {
    const [pid = '', ...words] = (lines[at] ?? '').split('\t');
    return { at, pid: Number(pid), words, verb: words[verbAt(words)] ?? '' };
  });
  return {
    read: lines.length,
    running: given.filter(({ pid, verb }) => !READING.has(verb) && isPidTaken(pid)).map(({ at }) => at),
    given,
  };
}

/** It rewrites the index alone, for what it has learned of files. */
const READING = new Set(['describe', 'diff', 'diff-files', 'diff-index', 'ls-files', 'status']);
const HEADS =
  /^(?:am|bisect|checkout|cherry-pick|commit|filter-branch|merge|pull|rebase|reset|revert|stash|switch)$/;
const NAMING = /^(?:bisect|branch|checkout|fetch|pull|stash|switch|tag|update-ref|worktree)$/;
const REMOTES = /^(?:fetch|fetch-pack|pull|push|remote|submodule)$/;
/** Given to none of git's commands that the shim knows: an alias, another program's. */
const KNOWN =
  /^(?:add|apply|checkout-index|clean|fast-import|gc|maintenance|merge-.*|mv|notes|pack-refs|read-tree|reflog|replace|restore|rm|sparse-checkout|stage|symbolic-ref|update-index|write-tree)$/;

/** Whether the command could have made this difference. `branches`: those that HEAD was at, before and after. */
export function couldMove(
  { verb, words }: OwnCommand,
  { name }: Difference,
  branches: readonly string[],
): boolean {
  if (name === 'index') return true;
  if (READING.has(verb)) return false;
  if (isUnknown(verb)) return true;
  if (name === 'stash' || name === 'refs/stash') return /^(?:merge|pull|rebase|reflog|stash)$/.test(verb);
  if (branches.includes(name)) return HEADS.test(verb) || names(words, name);
  if (name.startsWith('refs/remotes/')) return REMOTES.test(verb);
  if (name.startsWith('refs/notes/')) return verb === 'notes' || HEADS.test(verb);
  if (name.startsWith('refs/replace/')) return verb === 'replace';
  if (!name.startsWith('refs/')) return false;
  if (
    /^(?:fast-import|filter-branch)$/.test(verb) ||
    words.some((word) => /^--(?:stdin|update-refs|mirror)$/.test(word))
  )
    return true;
  if (name.startsWith('refs/tags/') && /^(?:fetch|pull|remote)$/.test(verb)) return true;
  return NAMING.test(verb) && names(words, name);
}

/** What no hook of ours sees, wherever it stands: the ref that a renaming or a copy makes, and what follows a renamed remote. */
export function couldMoveUnseen(command: OwnCommand, difference: Difference): boolean {
  const { verb, words } = command;
  if (verb === 'remote') return difference.name.startsWith('refs/remotes/');
  const renames = words.some((word) => /^(?:-[mMcC]|--move|--copy)$/.test(word));
  return (verb === 'branch' || isUnknown(verb)) && renames && names(words, difference.name);
}

/** Hooks of ours that this command was told to leave out. */
export const isUnhooked = ({ words }: OwnCommand): boolean =>
  words.some((word) => /^core\.hookspath=/i.test(word));

const isUnknown = (verb: string): boolean =>
  ![READING.has(verb), HEADS.test(verb), NAMING.test(verb), REMOTES.test(verb), KNOWN.test(verb)].some(
    Boolean,
  );

/** A branch or tag is named by a word, by a side of one (`a:b`), or by the last part of a path (`worktree add ../b`). */
function names(words: readonly string[], ref: string): boolean {
  const short = ref.split('/').slice(2).join('/');
  return words
    .flatMap((word) => word.replace(/^\+/, '').split(/[:=]/))
    .some((part) => part === ref || part === short || (part !== '' && basename(part) === short));
}

function recordIn(stageDir: string): string[] {
  try {
    return textOf(join(stageDir, 'commands')).split('\n').filter(Boolean);
  } catch (error) {
    if (errno(error) === 'EACCES') return [];
    throw error;
  }
}
