/**
 * A recorded run and the power cuts in it.
 *
 * Calling order: `recordRun` once, then for each cut `cutAt` and `rebuild`; the folder is rebuilt in place, so that
 * absolute paths and the inode of the git dir are what the run knew. `forget` leaves flushes out of the recording: the
 * harness must then find damage, or the flush is not needed.
 */
import { realpathSync } from 'node:fs';
import { record, bytes, type Step } from './recording.js';
import { drawWeather, RecordedDisk, type Weather } from './disk-rebuild.js';
import { readFolder, writeFolder, type Folder } from './folder-copy.js';
import type { Random } from './random.js';
import { strace, type Straced } from './strace.js';

export interface Recording {
  readonly dir: string;
  readonly before: Folder;
  readonly steps: readonly Step[];
  readonly ran: Omit<Straced, 'calls'>;
}

export interface RunOptions {
  /** The folder that is recorded, absolute; everything in it counts as flushed before the run. */
  readonly dir: string;
  readonly env: Readonly<Record<string, string>>;
  /** Where strace may write its trace: not below `dir`. */
  readonly file: string;
}

export async function recordRun(command: readonly string[], options: RunOptions): Promise<Recording> {
  const dir = realpathSync(options.dir);
  const before = readFolder(bytes(dir));
  const { calls, ...ran } = await strace(command, { cwd: dir, env: options.env, file: options.file });
  return { dir, before, steps: record(calls, dir, dir), ran };
}

export interface Cut {
  /** So many steps were done. */
  readonly at: number;
  readonly weather: Weather;
  readonly folder: Folder;
  /** What the run had said by then, oldest first. */
  readonly said: readonly string[];
}

export type Forget = (step: Step) => boolean;
export const forgetNothing: Forget = () => false;

export function cutAt(recording: Recording, at: number, random: Random, forget = forgetNothing): Cut {
  const disk = new RecordedDisk(bytes(recording.dir), recording.before);
  const said: string[] = [];
  for (const step of recording.steps.slice(0, at)) {
    if (step.operation.kind === 'said') said.push(step.operation.line);
    if (step.operation.kind === 'sync' && forget(step)) disk.forget(step.operation.path);
    else disk.apply(step.operation);
  }
  const weather = drawWeather(random);
  return { at, weather, folder: disk.afterPowerCut(weather, random), said };
}

export function rebuild(recording: Recording, cut: Cut): void {
  writeFolder(bytes(recording.dir), cut.folder);
}

/** Steps between the lines `begin <phase>` and `end <phase>` at which a cut changes something. */
export function cutsInside(recording: Recording, phase: string): number[] {
  const places: number[] = [];
  let inside = false;
  recording.steps.forEach(({ operation }, index) => {
    if (operation.kind === 'said' && operation.line === `begin ${phase}`) inside = true;
    if (operation.kind === 'said' && operation.line === `end ${phase}`) inside = false;
    if (inside && operation.kind !== 'point') places.push(index + 1);
  });
  return places;
}
