/**
 * The help of the program and of each verb, laid out by yargs from the table of verbs. Only here is yargs loaded: what it
 * needs for the width of letters takes as long to load as everything else of a short command.
 */
import yargs, { type Argv } from 'yargs';
import type { OptionDefinition, VerbDefinition } from './verb.js';
import { GLOBAL_OPTIONS } from './verbs.js';

const WIDEST = 110;

/** `verb`: null for the whole program's. `columns`: the terminal's. */
export async function helpOf(
  verb: VerbDefinition | null,
  verbs: readonly VerbDefinition[],
  columns: number,
): Promise<string> {
  const words = verb === null ? ['--help'] : [verb.name, '--help'];
  const parser = build(verbs).wrap(Math.min(WIDEST, columns));
  let text = '';
  await parser.parse(words, {}, (error: Error | undefined | null, _argv: unknown, output: string) => {
    if (error instanceof Error) throw error;
    text = output;
  });
  return text;
}

function build(verbs: readonly VerbDefinition[]): Argv {
  let parser: Argv = yargs()
    .scriptName('durable')
    .locale('en')
    .usage(
      'durable VERB [options]\n\nMakes any coding agent recoverable with nothing but the Git repository.',
    )
    .exitProcess(false)
    .version(false)
    .help('help')
    .describe('help', 'Show help')
    .option('version', { type: 'boolean', describe: 'Show the version' })
    .epilogue("Exit codes and the rest: 'man git-durable'.");
  for (const [name, option] of Object.entries(GLOBAL_OPTIONS)) parser = withOption(parser, name, option);
  for (const verb of verbs) {
    parser = parser.command(spelling(verb), verb.describe, (inner) => definition(inner, verb));
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
