/** The words of a git command line: git's own options come before the subcommand, and some take the word behind them (git(1), Options). */
const TAKE_A_WORD: ReadonlySet<string> = new Set([
  ...['-C', '-c', '--git-dir', '--work-tree', '--namespace'],
  ...['--exec-path', '--super-prefix', '--config-env', '--attr-source'],
]);

/** Where the subcommand stands; behind the last word where there is none. */
export function verbAt(words: readonly string[]): number {
  let at = 0;
  while (words[at]?.startsWith('-') === true) at += TAKE_A_WORD.has(words[at] ?? '') ? 2 : 1;
  return at;
}
