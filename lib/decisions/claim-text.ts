/**
 * A final text to what it claims: which files it says were changed, which were not, which commands ran or passed.
 *
 *     const claim = claimsIn(text, { known, isCommand });
 *
 * Pure, and precise rather than greedy: a false accusation is worse than an omission. A path is claimed as changed only as the
 * object of what the writer says to have done ("Updated `a.ts`", "Added a guard to `a.ts`", "`a.ts` was renamed"), at the head of an
 * item below a heading such as "Changes", or with a mark such as "(new)". It is claimed as unchanged only where it is said outright
 * ("I did not touch `a.ts`", "`a.ts` is unchanged"). A command is claimed as run or passed in the same way. All else is `named`.
 *
 * Limits: English only. Not read as claims: fenced blocks (but commands that a sentence before them says were run), quotations,
 * questions, plans, advice, conditions, what somebody else or an earlier turn did, what is taken back later in the text, patterns,
 * and paths that no tree of the turn has (`missing`). Of a text only the first 256 KiB are read.
 */
import { freshTokens, masked, type PathToken, type Tokens, type Vocabulary } from './claim-tokens.js';
import { blocksOf, type Block } from './claim-blocks.js';
import { clausesOf, readClause, type Said } from './claim-clauses.js';

export interface ClaimedCommand {
  readonly command: string;
  readonly as: 'ran' | 'passed';
}

export interface TextClaim {
  readonly changed: readonly PathToken[];
  readonly unchanged: readonly PathToken[];
  /** Neither claimed nor denied. */
  readonly named: readonly PathToken[];
  /** As they were written: claimed as changed, and known nowhere. */
  readonly missing: readonly string[];
  readonly commands: readonly ClaimedCommand[];
  /** "All tests pass", without a command. */
  readonly testsPass: boolean;
}

const LONGEST = 256 * 1024;

export function claimsIn(text: string, words: Vocabulary): TextClaim {
  const tokens = freshTokens();
  const reading = new Reading(tokens);
  for (const block of blocksOf(text.slice(0, LONGEST))) {
    if (block.kind === 'code') reading.code(block, words);
    else reading.prose(block, masked(block.text, words, tokens));
  }
  return reading.claim();
}

class Reading {
  readonly #tokens: Tokens;
  readonly #changed = new Set<number>();
  readonly #unchanged = new Set<number>();
  readonly #commands = new Map<string, ClaimedCommand['as']>();
  #testsPass = false;
  /** The sentence before says that what follows was run. */
  #announces = false;
  #last: readonly number[] = [];

  constructor(tokens: Tokens) {
    this.#tokens = tokens;
  }

  code({ text }: Block, words: Vocabulary): void {
    if (this.#announces) {
      for (const line of text.split('\n').map((one) => one.replace(/^\s*\$\s+/, '').trim()))
        if (words.isCommand(line)) this.#command(line, 'ran');
    }
    this.#announces = false;
  }

  prose(block: Block, text: string): void {
    this.#announces = ANNOUNCES.test(text) && block.context !== 'plan';
    if (block.context === 'plan') return;
    for (const clause of clausesOf(text)) this.#say(readClause(clause, block));
  }

  claim(): TextClaim {
    const { paths } = this.#tokens;
    const takenBack = this.#unchanged;
    const claimed = [...this.#changed].filter((at) => !takenBack.has(at)).sort((a, b) => a - b);
    const changed = tokensAt(paths, claimed);
    const unchanged = tokensAt(paths, [...this.#unchanged]).filter((one) => !isAmong(one, changed));
    return {
      changed: changed.filter((one) => one.paths.length > 0),
      unchanged: unchanged.filter((one) => one.paths.length > 0),
      named: unique(paths).filter(
        (one) => one.paths.length > 0 && !isAmong(one, changed) && !isAmong(one, unchanged),
      ),
      missing: changed.filter((one) => one.paths.length === 0).map(({ said }) => said),
      commands: [...this.#commands].map(([command, as]) => ({ command, as })),
      testsPass: this.#testsPass,
    };
  }

  #say(said: Said): void {
    if (said.takesBack) this.#takeBack(said.named);
    for (const at of said.changed) this.#changed.add(at);
    for (const at of said.unchanged) this.#unchanged.add(at);
    for (const at of said.ran) this.#command(this.#tokens.commands[at] ?? '', 'ran');
    for (const at of said.passed) this.#command(this.#tokens.commands[at] ?? '', 'passed');
    if (said.testsPass) this.#testsPass = true;
    if (said.changed.length > 0) this.#last = said.changed;
  }

  /** What is named is as it was before; without a name, what was said last. */
  #takeBack(named: readonly number[]): void {
    const { paths } = this.#tokens;
    const meant = (named.length > 0 ? named : this.#last).map((at) => paths[at]?.paths ?? []);
    for (const at of [...this.#changed])
      if (meant.some((one) => one.some((path) => paths[at]?.paths.includes(path) === true)))
        this.#changed.delete(at);
  }

  #command(command: string, as: ClaimedCommand['as']): void {
    const text = command.replace(/^\$\s+/, '');
    if (this.#commands.get(text) !== 'passed') this.#commands.set(text, as);
  }
}

/** "I ran:", "Verified with:" just before a fenced block. */
const ANNOUNCES =
  /(?:^|[.!]\s+)(?:(?:then|finally|also),?\s+)?(?:i|we)?\s*(?:'ve |have |also |then )*(?:ran|verified (?:it |this |everything )?(?:with|by running|using))\b[^.]*:\s*$/i;

const tokensAt = (paths: readonly PathToken[], at: readonly number[]): PathToken[] =>
  unique(at.flatMap((index) => paths[index] ?? []));

/** One for each meaning, as it was written first. */
function unique(tokens: readonly PathToken[]): PathToken[] {
  const seen = new Map<string, PathToken>();
  for (const token of tokens) {
    const key = token.paths.length === 0 ? token.said : token.paths.join('\0');
    if (!seen.has(key)) seen.set(key, token);
  }
  return [...seen.values()];
}

const isAmong = ({ said, paths }: PathToken, others: readonly PathToken[]): boolean =>
  others.some((other) => other.said === said || other.paths.some((path) => paths.includes(path)));
