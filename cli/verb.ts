/** What a verb is: how it is called, said once for the parser, the help, the man page and their test; and its body. */
import type { Host } from '../lib/host.js';
import type { Arguments } from './arguments.js';
import type { Output } from './output.js';

export interface OptionDefinition {
  readonly type: 'boolean' | 'string' | 'number';
  readonly describe: string;
  /** One letter. */
  readonly alias?: string;
  /** Name of the value in the help. */
  readonly value?: string;
  readonly choices?: readonly string[];
}

export interface PositionalDefinition {
  readonly name: string;
  readonly describe: string;
  readonly required: boolean;
  readonly many: boolean;
  readonly choices?: readonly string[];
}

export interface VerbDefinition {
  readonly name: string;
  readonly describe: string;
  readonly positionals: readonly PositionalDefinition[];
  readonly options: Readonly<Record<string, OptionDefinition>>;
  /** What stands after `--`: more of the last positional, a command, or nothing. */
  readonly rest: 'positional' | 'command' | 'none';
  readonly load: () => Promise<{ readonly run: VerbBody }>;
}

export interface VerbContext {
  readonly host: Host;
  /** The caller's folder after `-C`, absolute, links resolved. */
  readonly dir: string;
  readonly output: Output;
  readonly arguments: Arguments;
  /** The words after `--` of a verb that runs a command, as they were given; null when there is no `--`. */
  readonly command: readonly string[] | null;
  readonly version: string;
}

/** A command that `run` or `ask` passes through ends with its own code, so this is any number. */
export type VerbBody = (context: VerbContext) => Promise<number>;
