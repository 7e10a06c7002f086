/**
 * A line of a final text with its paths, commands and code taken out, so that what is left can be read as words.
 *
 * Each becomes a mark `\u0001<kind><number>\u0001`: `p` a path that the tree knows, `m` one that looks like a path and is nowhere, `c` a
 * command, `o` any other code. Taken out are code spans, links, quoted names and, in plain text, words that the tree knows. Pure.
 */
import type { KnownPaths } from './claim-paths.js';

export interface PathToken {
  /** As it was written. */
  readonly said: string;
  /** What it may mean; [] for one that is nowhere. */
  readonly paths: readonly string[];
}

export interface Tokens {
  readonly paths: PathToken[];
  readonly commands: string[];
  /** Of code that is neither. */
  others: number;
}

export const freshTokens = (): Tokens => ({ paths: [], commands: [], others: 0 });

export interface Vocabulary {
  readonly known: KnownPaths;
  readonly isCommand: (text: string) => boolean;
}

const LONGEST = 4096;

/** The line with marks in place of what was taken out, which is put into `tokens`. */
export function masked(line: string, words: Vocabulary, tokens: Tokens): string {
  const take = (said: string, otherwise: string | null): string =>
    markOf(said, words, tokens) ?? otherwise ?? '';
  return line
    .replaceAll('\u0001', ' ')
    .replace(/(`{1,3})(?!`)([^\n]+?)(?<!`)\1(?!`)/g, (_whole, _ticks, inner: string) => {
      const said = inner.trim();
      return said === '' ? '' : (markOf(said, words, tokens) ?? other(tokens));
    })
    .replace(/!?\[([^\][\n]{0,300})\]\(<?([^()\n>]{0,500})>?\)/g, (_whole, text: string, target: string) => {
      if (text.includes('\u0001')) return text;
      return take(text, null) || take(target, text);
    })
    .replace(/\*\*([^*\n\u0001]{1,300})\*\*/g, (_whole, name: string) => known(name, words, tokens) ?? name)
    .replaceAll('**', '')
    .replace(
      /(?<![\w\u0001])(["'\u201c\u2018])([^"'\u201c\u201d\u2018\u2019\n\u0001]{1,300})(["'\u201d\u2019])(?!\w)/g,
      (whole, _open, name: string) => known(name, words, tokens) ?? whole,
    )
    .replace(/[^\s\u0001()<>[\]{},;"'`|*\u2018\u2019\u201c\u201d]+/g, (word) =>
      bareWord(word, words, tokens),
    );
}

/** Null for code that is only code. */
function markOf(said: string, words: Vocabulary, tokens: Tokens): string | null {
  if (said.length > LONGEST) return null;
  // An abbreviated commit, whatever file has such a name.
  if (/^[0-9a-f]{7,64}$/.test(said)) return null;
  const found = known(said, words, tokens);
  if (found !== null) return found;
  if (words.isCommand(said)) return `\u0001c${String(tokens.commands.push(said) - 1)}\u0001`;
  return looksLikePath(said) ? path(tokens, said, []) : null;
}

function known(said: string, words: Vocabulary, tokens: Tokens): string | null {
  const paths = words.known.resolve(said);
  return paths.length === 0 ? null : path(tokens, said, paths);
}

function path(tokens: Tokens, said: string, paths: readonly string[]): string {
  const at = tokens.paths.push({ said, paths }) - 1;
  return `\u0001${paths.length === 0 ? 'm' : 'p'}${String(at)}\u0001`;
}

function other(tokens: Tokens): string {
  tokens.others += 1;
  return `\u0001o${String(tokens.others)}\u0001`;
}

/** In plain text only what has a slash, a backslash or a dot inside, and is known. */
function bareWord(word: string, words: Vocabulary, tokens: Tokens): string {
  const [, core = '', end = ''] = /^(.*?)([.:!?\u2026]*)$/.exec(word) ?? [];
  if (!/[/\\]|\w\.\w|^\.\w/.test(core) || /:\/\//.test(core)) return word;
  const mark = known(core, words, tokens);
  return mark === null ? word : `${mark}${end}`;
}

/** A folder and a name with an ending, and nothing that code has and paths seldom do. */
function looksLikePath(said: string): boolean {
  return /^[\w@.+~-]+(?:[/\\][\w@.+~ -]+)+\.\w{1,8}$/.test(said) && !/^(?:https?|www)\b/.test(said);
}
