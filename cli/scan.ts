/**
 * The command line sorted into options and words, and held to its verb: each wrong word is refused by itself, as it was
 * written, with what to type.
 */
import { usage } from './arguments.js';
import { shellWord } from './shell-word.js';
import type { OptionDefinition, VerbDefinition } from './verb.js';
import { GLOBAL_OPTIONS } from './verbs.js';

type Options = ReadonlyMap<string, OptionDefinition>;

export interface GivenOption {
  /** As it was written, without its value. */
  readonly word: string;
  /** As the verb's table has it, also where its letter was written. */
  readonly name: string;
  /** What is joined to it (`--name=value`, `-n5`), or the word after it; null when there is none. */
  readonly value: string | null;
  readonly isJoined: boolean;
  /** The word after it, which looks like an option and so is not taken for its value. */
  readonly beside?: string;
}

interface Given {
  readonly options: readonly GivenOption[];
  readonly free: readonly string[];
}

const FLAG: OptionDefinition = { type: 'boolean', describe: '' };

export interface Scanned extends Given {
  /** Null where help or the version is asked for and no verb is named. */
  readonly verb: VerbDefinition | null;
}

/** `words`: those before `--`. Throws 'usage' for the first that is wrong. */
export function scan(words: readonly string[], verbs: readonly VerbDefinition[], hasRest: boolean): Scanned {
  const given = sort(words, optionsOf(verbs));
  const [name, ...free] = given.free;
  const isHelp = given.options.some((option) => option.name === 'help');
  if (name === undefined) {
    const isAnswered = isHelp || given.options.some((option) => option.name === 'version');
    for (const option of given.options) checkOption(option, optionsOf([]), 'durable');
    if (!isAnswered) throw usage("name a verb; type 'durable --help'");
    return { ...given, verb: null };
  }
  const verb = verbs.find((one) => one.name === name);
  if (verb === undefined) throw usage(`there is no verb '${name}'; type 'durable --help'`);
  const own = optionsOf([verb]);
  for (const option of given.options) checkOption(option, own, `durable ${verb.name}`);
  if (!isHelp) checkWords(verb, free, hasRest);
  return { verb, options: given.options.map((option) => unabbreviated(option, verb)), free };
}

function unabbreviated(given: GivenOption, { options }: VerbDefinition): GivenOption {
  const [name] = Object.entries(options).find(([, { alias }]) => alias === given.name) ?? [given.name];
  return { ...given, name };
}

function optionsOf(verbs: readonly VerbDefinition[]): Options {
  const named = new Map<string, OptionDefinition>([
    ['help', FLAG],
    ['version', FLAG],
  ]);
  for (const options of [GLOBAL_OPTIONS, ...verbs.map((verb) => verb.options)]) {
    for (const [name, option] of Object.entries<OptionDefinition>(options)) {
      named.set(name, option);
      if (option.alias !== undefined) named.set(option.alias, option);
    }
  }
  return named;
}

/** Which words are options, which are their values, and which stand for themselves. */
function sort(words: readonly string[], known: Options): Given {
  const options: GivenOption[] = [];
  const free: string[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? '';
    const option = readOption(word);
    if (option === null) {
      free.push(word);
      continue;
    }
    const next = words[at + 1];
    const takes = !option.isJoined && known.get(option.name)?.type !== 'boolean' && known.has(option.name);
    const hasValue = takes && next !== undefined && (!next.startsWith('-') || /^-\d/.test(next));
    if (hasValue) {
      options.push({ ...option, value: next });
      at += 1;
    } else options.push(takes && next !== undefined ? { ...option, beside: next } : option);
  }
  return { options, free };
}

function readOption(word: string): GivenOption | null {
  const [, long, joined] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? [];
  if (long !== undefined)
    return { word: `--${long}`, name: long, value: joined ?? null, isJoined: joined !== undefined };
  const [, letter, after] = /^-([A-Za-z])(=.*|[^\w=].*|\d.*|)$/s.exec(word) ?? [];
  if (letter !== undefined && after !== undefined) {
    const isJoined = after !== '';
    return { word: `-${letter}`, name: letter, value: isJoined ? after.replace(/^=/, '') : null, isJoined };
  }
  // A lone dash is a word, and so is a negative number.
  return /^-\D/s.test(word) ? { word, name: '', value: null, isJoined: false } : null;
}

function checkOption(given: GivenOption, own: Options, caller: string): void {
  const option = own.get(given.name);
  const { word, value } = given;
  if (option === undefined) throw usage(`'${caller}' has no option '${word}'; type '${caller} --help'`);
  if (option.type === 'boolean') {
    if (given.isJoined) throw usage(`${word} takes no value; type '${caller} ${word}'`);
    return;
  }
  if (value === null) {
    const { beside } = given;
    // A shell word keeps its quotes, or what is typed next would be another text.
    const joined =
      beside === undefined ? '' : `; where ${shellWord(beside)} is the value: ${word}=${shellWord(beside)}`;
    throw usage(`${word} needs a value; type '${caller} ${word} ${option.value ?? 'VALUE'}'${joined}`);
  }
  if (option.choices?.includes(value) === false)
    throw usage(`${word} takes ${listed(option.choices)}, not '${value}'; type '${caller} --help'`);
}

function checkWords(verb: VerbDefinition, free: readonly string[], hasRest: boolean): void {
  const { positionals } = verb;
  const call = `durable ${verb.name}`;
  const [extra] = positionals.some(({ many }) => many) ? [] : free.slice(positionals.length);
  if (extra !== undefined) {
    const form = verb.rest === 'command' ? `${call} -- ${free.join(' ')}` : spelled(verb);
    throw usage(`'${call}' does not take the word '${extra}'; type '${form}'`);
  }
  positionals.forEach(({ name, required, choices }, index) => {
    const word = free[index];
    // Words after `--` may be the ones that are missing here.
    if (word === undefined && required && !(hasRest && verb.rest === 'positional'))
      throw usage(`'${call}' needs ${name.toUpperCase()}; type '${spelled(verb)}'`);
    if (word !== undefined && choices?.includes(word) === false)
      throw usage(`'${call}' takes ${listed(choices)}, not '${word}'; type '${call} --help'`);
  });
}

/** As a person types it: `durable restore CHECKPOINT [PATH...]`. */
function spelled(verb: VerbDefinition): string {
  const words = verb.positionals.map(({ name, required, many, choices }) => {
    const word = choices?.join('|') ?? `${name.toUpperCase()}${many ? '...' : ''}`;
    return required ? word : `[${word}]`;
  });
  return ['durable', verb.name, ...words].join(' ');
}

function listed(choices: readonly string[]): string {
  const [last = '', ...before] = [...choices].reverse();
  return before.length === 0 ? `'${last}'` : `${before.reverse().join(', ')} or ${last}`;
}
