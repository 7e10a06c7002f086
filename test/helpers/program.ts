/** The real program, run the way a user's shell runs it. */
import { fileURLToPath } from 'node:url';
import type { Ran, RunOptions, Scratch } from './scratch.js';

/** `dist/cli/main.js` of this build. */
export const PROGRAM = fileURLToPath(new URL('../../cli/main.js', import.meta.url));

/** Runs `durable ...args` in the scratch work tree. */
export function durable(place: Scratch, args: readonly string[], options: RunOptions = {}): Ran {
  return place.run(process.execPath, [PROGRAM, ...args], options);
}
