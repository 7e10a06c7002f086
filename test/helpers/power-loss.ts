/**
 * One scenario under power loss: recorded once, cut many times. See power-cut.ts for the recording, disk-rebuild.ts for
 * what a cut may leave, scenarios.ts for who judges it.
 */
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { systemHost, type Host } from '../../lib/host.js';
import { fastDisk } from './fast-disk.js';
import { cutAt, cutsInside, rebuild, recordRun, type Cut, type Recording } from './power-cut.js';
import { Random, seedOf } from './random.js';
import type { Step } from './recording.js';
import { SCENARIOS, type Scenario } from './scenarios.js';
import { scratch } from './scratch.js';

const WORKLOAD = fileURLToPath(new URL('workload.js', import.meta.url));

export interface Recorded {
  readonly name: string;
  readonly scenario: Scenario;
  readonly env: Readonly<Record<string, string>>;
  readonly recording: Recording;
}

/** Prepares the scenario in a place of its own and records its run. */
export async function recordScenario(t: ExecutionContext, name: string): Promise<Recorded> {
  const scenario = SCENARIOS[name];
  if (scenario === undefined) throw new Error(`no scenario ${name}`);
  const { dir, top, env, run } = scratch(t, { parent: fastDisk() });
  const prepared = run(execPath, [WORKLOAD, name, 'prepare', dir]);
  t.is(prepared.code, 0, prepared.stderr);
  const recording = await recordRun([execPath, WORKLOAD, name, 'run', dir], {
    dir,
    env: { ...env, DURABLE_FAULTS: 'trace' },
    file: join(top, 'trace'),
  });
  t.is(recording.ran.code, 0, recording.ran.stderr);
  return { name, scenario, env, recording };
}

/** Rebuilds the disk as the cut left it and lets the scenario's judge look. */
export async function findings({ scenario, env, recording }: Recorded, cut: Cut): Promise<string[]> {
  rebuild(recording, cut);
  try {
    return await scenario.examine({ dir: recording.dir, env, host: rebooted(env), said: cut.said });
  } catch (error) {
    return [`threw: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`];
  }
}

/** The machine was started again: every process of before is dead, and its pid may be anybody's. */
function rebooted(env: Readonly<Record<string, string>>): Host {
  return { ...systemHost(), env, identity: { bootId: 'another-boot' } };
}

/** Cuts the run at `count` random places inside the scenario; each must leave every promise kept. */
export async function survivesCuts(t: ExecutionContext, recorded: Recorded, count: number): Promise<void> {
  const { recording, name } = recorded;
  const seed = seedOf(process.env);
  const random = new Random(seed);
  const places = cutsInside(recording, name);
  t.log(`seed ${String(seed)}, ${String(count)} cuts at ${String(places.length)} places`);
  for (let round = 0; round < count; round += 1) {
    const cut = cutAt(recording, places[random.below(places.length)] ?? 0, random);
    const found = await findings(recorded, cut);
    const where = `cut ${String(round)}, after step ${String(cut.at)}, ${cut.weather}`;
    t.deepEqual(found, [], `${where}, said ${cut.said.at(-1) ?? 'nothing'}`);
  }
}

/** Flushes of the run by kind: the fault point they were made in, and whether they flush a file or a folder. */
export function flushKinds({ recording: { steps } }: Recorded): Map<string, number[]> {
  const kinds = new Map<string, number[]>();
  steps.forEach((step, index) => {
    if (step.operation.kind !== 'sync') return;
    const kind = `${step.within ?? 'outside any point'} of a ${isFolder(steps, step) ? 'folder' : 'file'}`;
    kinds.set(kind, [...(kinds.get(kind) ?? []), index]);
  });
  return new Map([...kinds].sort());
}

function isFolder(steps: readonly Step[], { operation }: Step): boolean {
  if (operation.kind !== 'sync') return false;
  const { path } = operation;
  const made = steps.find(({ operation: one }) => 'path' in one && one.path === path && one.kind !== 'sync');
  if (made !== undefined) return made.operation.kind === 'mkdir';
  return lstatSync(Buffer.from(path, 'latin1'), { throwIfNoEntry: false })?.isDirectory() === true;
}

/**
 * Leaves the flushes at these steps out and cuts until something that was promised is broken; gives the number of cuts
 * it took, undefined when `tries` cuts broke nothing.
 */
export async function cutsUntilDamage(
  recorded: Recorded,
  indexes: readonly number[],
  tries: number,
): Promise<number | undefined> {
  const { steps } = recorded.recording;
  const groups = [indexes, ...byName(recorded, indexes)];
  const random = new Random(seedOf(process.env));
  for (let round = 1; round <= tries; round += 1) {
    const group = groups[round % groups.length] ?? indexes;
    const left = new Set(group.map((index) => steps[index]));
    const at = placeAfter(steps, group[random.below(group.length)] ?? 0, random);
    const cut = cutAt(recorded.recording, at, random, (step) => left.has(step));
    if ((await findings(recorded, cut)).length > 0) return round;
  }
  return undefined;
}

/** The same flushes, those of like-named files together: one file torn shows what two torn files may hide. */
function byName({ recording: { steps } }: Recorded, indexes: readonly number[]): number[][] {
  const groups = new Map<string, number[]>();
  for (const index of indexes) {
    const operation = steps[index]?.operation;
    if (operation?.kind !== 'sync') continue;
    const name = operation.path.slice(operation.path.lastIndexOf('/') + 1).replace(/[0-9a-z]{8,}|\d+/g, '*');
    groups.set(name, [...(groups.get(name) ?? []), index]);
  }
  return [...groups.values()];
}

/** The damage of a flush that was left out shows before the second promise after it, and mostly right after one. */
function placeAfter(steps: readonly Step[], from: number, random: Random): number {
  const promises = steps.flatMap(({ operation }, index) =>
    operation.kind === 'said' && index > from ? [index] : [],
  );
  const promise = promises[random.below(2)] ?? steps.length - 1;
  const at = random.chance(0.5) ? promise + random.below(12) : from + random.below(promise - from);
  return Math.min(at + 1, steps.length);
}
