/**
 * One scenario under SIGKILL: its program is killed at every fault point that it hits, before and after each change of
 * the disk and each git it starts, in a repository put back to the same state each time. What it had acknowledged must
 * be there, and the next program must need no help.
 */
import { realpathSync } from 'node:fs';
import { execPath } from 'node:process';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { systemHost } from '../../lib/host.js';
import { readFolder, writeFolder } from './disk-rebuild.js';
import { Random, seedOf } from './random.js';
import { bytes } from './recording.js';
import { SCENARIOS } from './scenarios.js';
import { scratch, type Ran } from './scratch.js';

const WORKLOAD = fileURLToPath(new URL('workload.js', import.meta.url));

export async function survivesKills(t: ExecutionContext, name: string): Promise<void> {
  const { dir, env, run } = scratch(t);
  const prepared = run(execPath, [WORKLOAD, name, 'prepare', dir]);
  t.is(prepared.code, 0, prepared.stderr);
  const root = bytes(realpathSync(dir));
  const before = readFolder(root);
  const whole = run(execPath, [WORKLOAD, name, 'list', dir]);
  t.is(whole.code, 0, whole.stderr);
  const killedAt = (kill: string): Ran | null => {
    for (let tries = 0; tries < 4; tries += 1) {
      writeFolder(root, before);
      const ran = run(execPath, [WORKLOAD, name, 'run', dir], { env: { DURABLE_FAULTS: `${kill}=kill` } });
      if (ran.signal === 'SIGKILL') return ran;
      t.is(ran.code, 0, `${kill}: ${ran.stderr}`);
    }
    // Ids are random, so that the number of hits of a point differs a little: a late one may not come.
    t.false(kill.endsWith('#1'), `${kill} was never reached`);
    return null;
  };
  let kills = 0;
  for (const kill of chosen(whole.stderr.split('\n').filter((line) => line.startsWith('point ')))) {
    const killed = killedAt(kill);
    if (killed === null) continue;
    kills += 1;
    const said = killed.stdout.split('\n').filter((line) => line !== '');
    t.deepEqual(
      await findings(name, { dir, env, said }),
      [],
      `killed at ${kill}, said ${said.at(-1) ?? 'nothing'}`,
    );
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

/** `point <name>` for each hit to fault rules such as `ref.move:rename:before#2`: each point's first hit, and another. */
function chosen(hits: readonly string[]): string[] {
  const random = new Random(seedOf(process.env));
  const counts = new Map<string, number>();
  for (const hit of hits) {
    const point = hit.slice('point '.length);
    counts.set(point, (counts.get(point) ?? 0) + 1);
  }
  return [...counts].flatMap(([point, count]) => {
    const nths = new Set([1, 1 + random.below(count)]);
    return [...nths].map((nth) => `${point}#${String(nth)}`);
  });
}
