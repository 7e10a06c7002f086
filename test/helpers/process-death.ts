/**
 * One scenario under SIGKILL: its program is killed at every fault point that it hits, before and after each change of
 * the disk and each git it starts, in a repository put back to the same state each time. What it had acknowledged must
 * be there, and the next program must need no help.
 */
import { realpathSync, rmSync } from 'node:fs';
import { execPath } from 'node:process';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { systemHost } from '../../lib/host.js';
import { readFolder, writeFolder } from './folder-copy.js';
import { fastDisk } from './fast-disk.js';
import { Random, seedOf } from './random.js';
import { bytes } from './recording.js';
import { SCENARIOS } from './scenarios.js';
import { scratch, type Ran } from './scratch.js';

const WORKLOAD = fileURLToPath(new URL('workload.js', import.meta.url));

export async function survivesKills(t: ExecutionContext, name: string): Promise<void> {
  const { dir, env, run } = scratch(t, { parent: fastDisk() });
  const prepared = run(execPath, [WORKLOAD, name, 'prepare', dir]);
  t.is(prepared.code, 0, prepared.stderr);
  const aside = SCENARIOS[name]?.aside?.(realpathSync(dir));
  if (aside !== undefined)
    t.teardown(() => {
      rmSync(aside, { recursive: true, force: true });
    });
  const roots = [realpathSync(dir), ...(aside === undefined ? [] : [aside])].map(bytes);
  const before = roots.map((root) => readFolder(root));
  const whole = run(execPath, [WORKLOAD, name, 'list', dir]);
  t.is(whole.code, 0, whole.stderr);
  const killedAt = (point: string, nth: number): Ran => {
    roots.forEach((root, at) => {
      const folder = before[at];
      if (folder !== undefined) writeFolder(root, folder);
    });
    const plan = `${point}#${String(nth)}=kill`;
    const ran = run(execPath, [WORKLOAD, name, 'run', dir], { env: { DURABLE_FAULTS: plan } });
    if (ran.signal === 'SIGKILL') return ran;
    t.is(ran.code, 0, `${plan}: ${ran.stderr}`);
    // Ids are random, so that the number of hits of a point differs a little: a late one may not come, the first does.
    if (nth === 1) throw new Error(`${point} was never reached`);
    return killedAt(point, 1);
  };
  let kills = 0;
  const about = SCENARIOS[name]?.only ?? /./;
  const points = whole.stderr.split('\n').filter((line) => /^(?:point|begin) /.test(line));
  for (const { point, nth } of choice(points, SCENARIOS[name]?.every).filter((one) =>
    about.test(one.point),
  )) {
    const killed = killedAt(point, nth);
    kills += 1;
    const said = killed.stdout.split('\n').filter((line) => line !== '');
    const where = `killed at ${point} (hit ${String(nth)}), said ${said.at(-1) ?? 'nothing'}`;
    t.deepEqual(await findings(name, { dir, env, said }), [], where);
  }
  t.log(`${String(kills)} kills`);
}

async function findings(
  name: string,
  { dir, env, said }: { dir: string; env: Readonly<Record<string, string>>; said: string[] },
): Promise<string[]> {
  try {
    return (
      (await SCENARIOS[name]?.examine({ dir, env, host: { ...systemHost(), env }, said })) ?? ['no scenario']
    );
  } catch (error) {
    return [`threw: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`];
  }
}

/**
 * From `point <name>` for each hit: every point once, at one of its hits, and those of `every` at each of them that comes after
 * the scenario's `begin`.
 */
function choice(hits: readonly string[], every?: RegExp): { point: string; nth: number }[] {
  const random = new Random(seedOf(process.env));
  const counts = new Map<string, number>();
  const chosen: { point: string; nth: number }[] = [];
  let isBegun = false;
  for (const hit of hits) {
    if (hit.startsWith('begin ')) {
      isBegun = true;
      continue;
    }
    const point = hit.slice('point '.length);
    const nth = (counts.get(point) ?? 0) + 1;
    counts.set(point, nth);
    if (isBegun && every?.test(point) === true) chosen.push({ point, nth });
  }
  const others = [...counts].filter(([point]) => every?.test(point) !== true);
  return [...chosen, ...others.map(([point, count]) => ({ point, nth: 1 + random.below(count) }))];
}
