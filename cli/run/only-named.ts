/**
 * A commit beside a turn takes the paths that it names and nothing that the turn has staged: git itself sees to that, with
 * `commit --only`, whatever is staged meanwhile. Without paths, with `--all` or `--include`, git refuses, and then is said what to type.
 *
 * Aliases are followed. One that is a shell command is not: what it runs is its owner's.
 */
import { shellWord } from '../shell-word.js';
import { verbAt } from '../../lib/git/command-words.js';
import { splitPaths } from '../../lib/git/path.js';
import type { Storage } from '../../lib/git/storage.js';

export interface Narrowed {
  readonly words: readonly string[];
  readonly isCommit: boolean;
}

/** Git's words with `--only` behind `commit`; as they are where they make no commit. */
export async function onlyNamed(storage: Storage, words: readonly string[]): Promise<Narrowed> {
  const at = verbAt(words);
  if (words[at] === 'commit') return { words: narrowed(words, at), isCommit: true };
  const alias = await aliasOfCommit(storage, words[at]);
  if (alias === null) return { words, isCommit: false };
  return { words: ['-c', `alias.${alias.name}=${alias.value}`, ...words], isCommit: true };
}

/** What to type instead of a commit that git has refused. */
export async function howToName(storage: Storage): Promise<string> {
  const listed = await storage.git.run(['diff', '--cached', '--name-only', '-z']);
  const staged = splitPaths(listed.stdout).map(shellWord);
  const shown = staged.slice(0, MOST_SHOWN).join(' ');
  const more = staged.length > MOST_SHOWN ? ` and ${String(staged.length - MOST_SHOWN)} more` : '';
  const what = staged.length === 0 ? 'nothing is staged' : `staged, perhaps by the turn: ${shown}${more}`;
  return `a commit beside a turn takes the paths that it names and nothing else (${what}): git durable op --beside -- commit -m MESSAGE -- PATH`;
}

const MOST_SHOWN = 10;
const MOST_ALIASES = 10;

const narrowed = (words: readonly string[], at: number): string[] => [
  ...words.slice(0, at + 1),
  '--only',
  ...words.slice(at + 1),
];

async function aliasOfCommit(
  { git }: Storage,
  verb: string | undefined,
): Promise<{ readonly name: string; readonly value: string } | null> {
  let name = verb ?? '';
  for (let left = MOST_ALIASES; left > 0 && /^[\w-]+$/.test(name); left -= 1) {
    const asked = await git.run(['config', '--get', `alias.${name}`]);
    const value = asked.stdout.toString('utf8').trim();
    if (asked.code !== 0 || value.startsWith('!')) return null;
    const words = value.split(/\s+/);
    const at = verbAt(words);
    if (words[at] === 'commit') return { name, value: narrowed(words, at).join(' ') };
    name = words[at] ?? '';
  }
  return null;
}
