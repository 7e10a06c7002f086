/** What the program says in JSON, as a test reads it. */
import { durable } from './program.js';
import type { RunOptions, Scratch } from './scratch.js';

export type Line = Readonly<Record<string, unknown>>;

/** The document of a verb that must end with one of `codes`. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller says what it expects
export function document<T = Line>(
  place: Scratch,
  words: readonly string[],
  options: RunOptions & { readonly codes?: readonly number[] } = {},
): T {
  const ran = durable(place, ['--json', ...words], options);
  if (!(options.codes ?? [0]).includes(ran.code ?? -1))
    throw new Error(`durable ${words.join(' ')} ended with ${String(ran.code)}: ${ran.stderr}`);
  return JSON.parse(ran.stdout) as T;
}

/** Every event of every task, oldest first. */
export function events(place: Scratch, ...words: readonly string[]): Line[] {
  return durable(place, ['log', '--json', ...words])
    .stdout.split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);
}

export const last = (lines: readonly Line[], type: string): Line | undefined =>
  lines.filter((line) => line['type'] === type).at(-1);
