/**
 * Power loss: each scenario's run is recorded, git's own processes included, and cut at random places; what the
 * rebuilt disk holds is held to what had been acknowledged, and then used as a user would, without help.
 *
 * Then every flush is taken out of the recording, one kind at a time (site, and file or folder): some cut must find
 * the damage, or that flush is not needed and must go from the code.
 */
import { spawnSync } from 'node:child_process';
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { systemHost, type Host } from '../../lib/host.js';
import {
  cutAt,
  cutsInside,
  rebuild,
  recordRun,
  type Cut,
  type Forget,
  type Recording,
} from '../helpers/power-cut.js';
import { Random, seedOf } from '../helpers/random.js';
import type { Step } from '../helpers/recording.js';
import { SCENARIOS, type Scenario } from '../helpers/scenarios.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const WORKLOAD = fileURLToPath(new URL('../helpers/workload.js', import.meta.url));
const CUTS = 100;
/** Tries to find the damage that a missing flush does, before it is called needless. */
const TRIES = 200;

interface Prepared extends Scratch {
  readonly recording: Recording;
}

async function recorded(t: ExecutionContext, name: string): Promise<Prepared> {
  const place = scratch(t);
  const prepared = place.run(execPath, [WORKLOAD, name, 'prepare', place.dir]);
  t.is(prepared.code, 0, prepared.stderr);
  const recording = await recordRun([execPath, WORKLOAD, name, 'run', place.dir], {
    dir: place.dir,
    env: { ...place.env, DURABLE_FAULTS: 'trace' },
    file: join(place.top, 'trace'),
  });
  t.is(recording.ran.code, 0, recording.ran.stderr);
  return { ...place, recording };
}

/** The machine was started again: every process of before is dead, and its pid may be anybody's. */
function rebooted(env: Readonly<Record<string, string>>): Host {
  return { ...systemHost(), env, identity: { bootId: 'another-boot' } };
}

async function findings(scenario: Scenario, { dir, env, recording }: Prepared, cut: Cut): Promise<string[]> {
  rebuild(recording, cut);
  try {
    return await scenario.examine({ dir, env, host: rebooted(env), said: cut.said });
  } catch (error) {
    return [`threw: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`];
  }
}

for (const [name, scenario] of Object.entries(SCENARIOS)) {
  test.serial(`${name}: what was acknowledged outlives a power cut at any moment`, async (t) => {
    const prepared = await recorded(t, name);
    const seed = seedOf(process.env);
    const random = new Random(seed);
    const places = cutsInside(prepared.recording, name);
    t.log(`seed ${String(seed)}, ${String(places.length)} places, ${String(CUTS)} cuts`);
    for (let round = 0; round < CUTS; round += 1) {
      const cut = cutAt(prepared.recording, places[random.below(places.length)] ?? 0, random);
      const found = await findings(scenario, prepared, cut);
      t.deepEqual(
        found,
        [],
        `cut ${String(round)} after step ${String(cut.at)}, ${cut.weather}, said ${cut.said.at(-1) ?? ''}`,
      );
      if (found.length > 0) return;
    }
  });

  test.serial(
    `${name}: with any one kind of flush taken out, a power cut is seen to lose something`,
    async (t) => {
      const prepared = await recorded(t, name);
      const needless: string[] = [];
      for (const [flush, steps] of flushes(prepared.recording)) {
        const tries = await triesToFail(scenario, prepared, steps);
        t.log(`${flush}: ${tries === undefined ? 'NEEDLESS' : `found after ${String(tries)}`}`);
        if (tries === undefined) needless.push(flush);
      }
      t.deepEqual(needless, []);
    },
  );
}

/** Flushes of the run by kind: the fault point they were made in, and whether they flush a file or a folder. */
function flushes({ steps }: Recording): Map<string, number[]> {
  const kinds = new Map<string, number[]>();
  steps.forEach((step, index) => {
    if (step.operation.kind !== 'sync') return;
    const kind = `${step.within ?? 'outside any point'} of a ${isFolder(steps, step) ? 'folder' : 'file'}`;
    kinds.set(kind, [...(kinds.get(kind) ?? []), index]);
  });
  return new Map([...kinds].sort());
}

/** A path that was ever written to, or renamed from one that was, is a file. */
function isFolder(steps: readonly Step[], { operation }: Step): boolean {
  if (operation.kind !== 'sync') return false;
  const { path } = operation;
  if (steps.some((step) => step.operation.kind === 'mkdir' && step.operation.path === path)) return true;
  if (steps.some((step) => step.operation.kind === 'create' && step.operation.path === path)) return false;
  return lstatSync(Buffer.from(path, 'latin1'), { throwIfNoEntry: false })?.isDirectory() === true;
}

async function triesToFail(
  scenario: Scenario,
  prepared: Prepared,
  indexes: readonly number[],
): Promise<number | undefined> {
  const { recording } = prepared;
  const left = new Set(indexes.map((index) => recording.steps[index]));
  const forget: Forget = (step) => left.has(step);
  const random = new Random(seedOf(process.env));
  for (let round = 1; round <= TRIES; round += 1) {
    // The damage shows soon after the flush that was left out, if at all; now and then look far behind it.
    const from = indexes[random.below(indexes.length)] ?? 0;
    const reach = random.chance(0.8) ? 40 : recording.steps.length;
    const at = Math.min(from + 1 + random.below(reach), recording.steps.length);
    const found = await findings(scenario, prepared, cutAt(recording, at, random, forget));
    if (found.length > 0) return round;
  }
  return undefined;
}

test('a workload does what it says without any fault', (t) => {
  for (const name of Object.keys(SCENARIOS)) {
    const { dir, run } = scratch(t);
    t.is(run(execPath, [WORKLOAD, name, 'prepare', dir]).code, 0);
    const ran = spawnSync(execPath, [WORKLOAD, name, 'run', dir], { encoding: 'utf8' });
    t.regex(ran.stdout, new RegExp(`^begin ${name}\n(?:ack .*\n)+end ${name}\n$`), ran.stderr);
  }
});
