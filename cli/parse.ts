/**
 * The command line to a verb and its arguments. Strict: an unknown verb or option, a missing value, a choice that is
 * not there are usage errors.
 *
 * Words after the first `--` never reach the parser: they are a command or literal paths and stay as they are.
 * Texts that look like numbers stay texts.
 */
import yargs, { type Argv } from 'yargs';
import { Arguments, usage } from './arguments.js';
import { scan } from './scan.js';
import type { OptionDefinition, VerbDefinition } from './verb.js';
import { GLOBAL_OPTIONS } from './verbs.js';

export type Parsed =
  | { readonly kind: 'help'; readonly text: string }
  | {
      readonly kind: 'verb';
      readonly verb: VerbDefinition;
      readonly arguments: Arguments;
      readonly command: readonly string[] | null;
    };

const WIDEST = 110;

/** `columns`: the terminal's, for the help text. */
export function parse(words: readonly string[], verbs: readonly VerbDefinition[], columns: number): Parsed {
  const split = words.indexOf('--');
  const own = split === -1 ? words : words.slice(0, split);
  const rest = split === -1 ? null : words.slice(split + 1);
  const spelt = spelledHelp(own);
  scan(spelt, verbs, rest !== null);
  let chosen: VerbDefinition | null = null;
  const parser = build(verbs, (verb) => {
    chosen = verb;
  });
  const { values, text } = evaluate(parser.wrap(Math.min(WIDEST, columns)), spelt);
  if (text !== '') return { kind: 'help', text };
  const verb = chosen as VerbDefinition | null;
  if (verb === null) throw usage("name a verb; type 'durable --help'");
  return { kind: 'verb', verb, ...withRest(verb, values, rest) };
}

/** `durable help restore` is `durable restore --help`. */
function spelledHelp(words: readonly string[]): readonly string[] {
  return words[0] === 'help' ? [...words.slice(1), '--help'] : words;
}

function build(verbs: readonly VerbDefinition[], choose: (verb: VerbDefinition) => void): Argv {
  let parser: Argv = yargs()
    .scriptName('durable')
    .locale('en')
    .parserConfiguration({
      'parse-positional-numbers': false,
      'dot-notation': false,
      'camel-case-expansion': false,
      'boolean-negation': false,
    })
    .usage(
      'durable VERB [options]\n\nMakes any coding agent recoverable with nothing but the Git repository.',
    )
    .exitProcess(false)
    .version(false)
    .help('help')
    .describe('help', 'Show help')
    .option('version', { type: 'boolean', describe: 'Show the version' })
    .strict()
    .fail((message: string | null, error: Error | undefined) => {
      throw usage(`${sentence(message ?? error?.message ?? 'wrong usage')}; type 'durable --help'`);
    })
    .epilogue("Exit codes and the rest: 'man git-durable'.");
  for (const [name, option] of Object.entries(GLOBAL_OPTIONS)) parser = withOption(parser, name, option);
  for (const verb of verbs) {
    parser = parser.command(
      spelling(verb),
      verb.describe,
      (inner) => definition(inner, verb),
      () => {
        choose(verb);
      },
    );
  }
  return parser;
}

function definition(parser: Argv, verb: VerbDefinition): Argv {
  let built =
    verb.rest === 'command'
      ? parser.usage(`durable ${verb.name} [options] -- CMD...\n\n${verb.describe}`)
      : parser;
  for (const positional of verb.positionals) {
    built = built.positional(positional.name, {
      type: 'string',
      describe: positional.describe,
      ...(positional.choices === undefined ? {} : { choices: positional.choices }),
    });
  }
  for (const [name, option] of Object.entries(verb.options)) built = withOption(built, name, option);
  return built;
}

function withOption(parser: Argv, name: string, option: OptionDefinition): Argv {
  return parser.option(name, {
    type: option.type,
    describe: option.value === undefined ? option.describe : `${option.describe} [${option.value}]`,
    ...(option.alias === undefined ? {} : { alias: option.alias }),
    ...(option.choices === undefined ? {} : { choices: option.choices }),
    ...(option.type === 'boolean' ? {} : { requiresArg: true }),
  });
}

/** As yargs spells it: `restore <checkpoint> [path..]`; after `--` a verb's help names CMD. */
function spelling(verb: VerbDefinition): string {
  const words = verb.positionals.map((positional) => {
    const name = positional.many ? `${positional.name}..` : positional.name;
    return positional.required ? `<${name}>` : `[${name}]`;
  });
  return [verb.name, ...words].join(' ');
}

function evaluate(
  parser: Argv,
  words: readonly string[],
): { values: Readonly<Record<string, unknown>>; text: string } {
  let text = '';
  const values = parser.parse(
    [...words],
    {},
    (error: Error | undefined | null, _argv: unknown, output: string) => {
      if (error instanceof Error) throw error;
      text = output;
    },
  );
  return { values: values as Readonly<Record<string, unknown>>, text };
}

function withRest(
  verb: VerbDefinition,
  values: Readonly<Record<string, unknown>>,
  rest: readonly string[] | null,
): { arguments: Arguments; command: readonly string[] | null } {
  if (verb.rest === 'command' || rest === null)
    return { arguments: new Arguments(values, verb.name), command: rest };
  const last = verb.positionals.at(-1);
  if (verb.rest === 'none' || last === undefined)
    throw usage(`'durable ${verb.name}' takes nothing after '--'; type 'durable ${verb.name} --help'`);
  const more = [...new Arguments(values, verb.name).words(last.name), ...rest];
  return { arguments: new Arguments({ ...values, [last.name]: more }, verb.name), command: null };
}

/** The parser's messages in our form: one line, lower case, no full stop. */
function sentence(message: string): string {
  const line = message
    .trim()
    .replace(/\s*\n\s*/g, ' ')
    .replace(/\.$/, '');
  return line.charAt(0).toLowerCase() + line.slice(1);
}
