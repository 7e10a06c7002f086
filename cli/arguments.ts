/** Parsed arguments, read by name with their type: the parser has refused unknown ones before. */
import { DurableError } from '../lib/errors.js';

export class Arguments {
  readonly #values: Readonly<Record<string, unknown>>;

  readonly #help: string;

  constructor(values: Readonly<Record<string, unknown>>, verb: string) {
    this.#values = values;
    this.#help = `type 'durable ${verb} --help'`;
  }

  flag(name: string): boolean {
    return this.#last(name) === true;
  }

  /** The option's text, null when it was not given. */
  text(name: string): string | null {
    const value = this.#last(name);
    return typeof value === 'string' ? value : null;
  }

  /** A text that the parser has demanded. */
  required(name: string): string {
    const value = this.text(name);
    if (value === null || value === '') throw usage(`${name.toUpperCase()} must not be empty; ${this.#help}`);
    return value;
  }

  /** A whole number from `least` up, null when it was not given. */
  count(name: string, least = 0): number | null {
    const value = this.#last(name);
    if (value === undefined) return null;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) return value;
    throw usage(`--${name} takes a whole number from ${String(least)} up; ${this.#help}`);
  }

  /** Seconds, with a fraction, null when it was not given. */
  seconds(name: string): number | null {
    const value = this.#last(name);
    if (value === undefined) return null;
    if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
    throw usage(`--${name} takes a number of seconds; ${this.#help}`);
  }

  /** Every value of an option that may be given more than once, in the order given. */
  all(name: string): string[] {
    const value = this.#values[name];
    return (Array.isArray(value) ? value : [value]).filter((word) => typeof word === 'string');
  }

  words(name: string): string[] {
    const value = this.#values[name];
    return Array.isArray(value) ? value.filter((word) => typeof word === 'string') : [];
  }

  /** Of an option given twice the last one counts. */
  #last(name: string): unknown {
    const value = this.#values[name];
    return Array.isArray(value) ? (value.at(-1) as unknown) : value;
  }
}

export function usage(detail: string): DurableError<'usage'> {
  return new DurableError('usage', { detail });
}
