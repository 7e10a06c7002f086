/** A verb's arguments, read by name with their type: `scan` has refused unknown ones before. */
import { DurableError } from '../lib/errors.js';
import type { VerbDefinition } from './verb.js';

interface Given {
  readonly name: string;
  readonly value: string | null;
}

export class Arguments {
  readonly #verb: VerbDefinition;
  readonly #options: readonly Given[];
  readonly #words: readonly string[];

  /** `words`: the positional ones, in the order of the verb's table. */
  constructor(verb: VerbDefinition, options: readonly Given[], words: readonly string[]) {
    this.#verb = verb;
    this.#options = options;
    this.#words = words;
  }

  flag(name: string): boolean {
    return this.#options.some((option) => option.name === name);
  }

  /** The option's or the positional word's text, null when it was not given. Of an option given twice the last counts. */
  text(name: string): string | null {
    return this.all(name).at(-1) ?? this.#positional(name)[0] ?? null;
  }

  /** A text that the table demands. */
  required(name: string): string {
    const value = this.text(name);
    if (value === null || value === '')
      throw usage(`${name.toUpperCase()} must not be empty; ${this.#help()}`);
    return value;
  }

  /** A whole number from `least` up, null when it was not given. */
  count(name: string, least = 0): number | null {
    const value = this.#number(name);
    if (value === null || (Number.isSafeInteger(value) && value >= least)) return value;
    throw usage(`--${name} takes a whole number from ${String(least)} up; ${this.#help()}`);
  }

  /** Seconds, with a fraction, null when it was not given. */
  seconds(name: string): number | null {
    const value = this.#number(name);
    if (value === null || (Number.isFinite(value) && value >= 0)) return value;
    throw usage(`--${name} takes a number of seconds; ${this.#help()}`);
  }

  /** Every value of an option that may be given more than once, in the order given. */
  all(name: string): string[] {
    return this.#options.flatMap((option) =>
      option.name === name && option.value !== null ? [option.value] : [],
    );
  }

  /** The words of a positional one that takes many. */
  words(name: string): readonly string[] {
    return this.#positional(name);
  }

  #positional(name: string): readonly string[] {
    const { positionals } = this.#verb;
    const at = positionals.findIndex((positional) => positional.name === name);
    if (at === -1) return [];
    return positionals[at]?.many === true ? this.#words.slice(at) : this.#words.slice(at, at + 1);
  }

  #number(name: string): number | null {
    const text = this.text(name);
    if (text === null) return null;
    return text.trim() === '' ? Number.NaN : Number(text);
  }

  #help(): string {
    return `type 'durable ${this.#verb.name} --help'`;
  }
}

export function usage(detail: string): DurableError<'usage'> {
  return new DurableError('usage', { detail });
}
