/**
 * The command line to a verb and its arguments. Strict: an unknown verb or option, a missing value, a choice that is
 * not there are usage errors.
 *
 * Words after the first `--` are a command or literal paths and stay as they are. Texts that look like numbers stay texts.
 */
import { Arguments, usage } from './arguments.js';
import { scan, type GivenOption } from './scan.js';
import type { VerbDefinition } from './verb.js';

export type Parsed =
  /** `verb`: null for the whole program's. */
  | { readonly kind: 'help'; readonly verb: VerbDefinition | null }
  | { readonly kind: 'version' }
  | {
      readonly kind: 'verb';
      readonly verb: VerbDefinition;
      readonly arguments: Arguments;
      readonly command: readonly string[] | null;
    };

export function parse(words: readonly string[], verbs: readonly VerbDefinition[]): Parsed {
  const split = words.indexOf('--');
  const own = split === -1 ? words : words.slice(0, split);
  const rest = split === -1 ? null : words.slice(split + 1);
  const { verb, options, free } = scan(spelledHelp(own), verbs, rest !== null);
  const isGiven = (name: string): boolean => options.some((option) => option.name === name);
  if (isGiven('help')) return { kind: 'help', verb };
  if (verb === null || isGiven('version')) return { kind: 'version' };
  return { kind: 'verb', verb, ...withRest(verb, { options, free }, rest) };
}

/** `durable help restore` is `durable restore --help`. */
function spelledHelp(words: readonly string[]): readonly string[] {
  return words[0] === 'help' ? [...words.slice(1), '--help'] : words;
}

function withRest(
  verb: VerbDefinition,
  { options, free }: { readonly options: readonly GivenOption[]; readonly free: readonly string[] },
  rest: readonly string[] | null,
): { arguments: Arguments; command: readonly string[] | null } {
  const isCommand = verb.rest === 'command' || rest === null;
  if (!isCommand && (verb.rest === 'none' || verb.positionals.length === 0))
    throw usage(`'durable ${verb.name}' takes nothing after '--'; type 'durable ${verb.name} --help'`);
  const words = isCommand ? free : [...free, ...rest];
  return { arguments: new Arguments(verb, options, words), command: isCommand ? rest : null };
}
