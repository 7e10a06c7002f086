/**
 * Process death: each scenario's program gets SIGKILL at every fault point that it hits, before and after each change of
 * the disk and each git it starts, in a repository put back to the same state each time. What it had acknowledged must
 * be there, and the next program must need no help.
 *
 * A point that is hit often is killed at its first, its last and one hit between; each name is killed at least once.
 */
import { execPath } from 'node:process';
import { fileURLToPath } from 'node:url';
import { realpathSync } from 'node:fs';
import test from 'ava';
import { systemHost } from '../../lib/host.js';
import { readFolder, writeFolder } from '../helpers/disk-rebuild.js';
import { Random, seedOf } from '../helpers/random.js';
import { bytes } from '../helpers/recording.js';
import { SCENARIOS } from '../helpers/scenarios.js';
import { scratch, type Ran } from '../helpers/scratch.js';

const WORKLOAD = fileURLToPath(new URL('../helpers/workload.js', import.meta.url));

for (const [name, scenario] of Object.entries(SCENARIOS)) {
  test(`${name}: killed at any fault point, nothing acknowledged is lost and the next run needs no help`, async (t) => {
    const { dir, env, run } = scratch(t);
    const prepared = run(execPath, [WORKLOAD, name, 'prepare', dir]);
    t.is(prepared.code, 0, prepared.stderr);
    const root = bytes(realpathSync(dir));
    const before = readFolder(root);
    const whole = run(execPath, [WORKLOAD, name, 'list', dir]);
    t.is(whole.code, 0, whole.stderr);
    const kills = chosen(whole.stderr.split('\n').filter((line) => line.startsWith('point ')));
    let reached = 0;
    /** Ids are random, so that the number of hits of a point differs a little: a late one may not come. */
    const killedAt = (kill: string): Ran | null => {
      for (let tries = 0; tries < 4; tries += 1) {
        writeFolder(root, before);
        const ran = run(execPath, [WORKLOAD, name, 'run', dir], { env: { DURABLE_FAULTS: `${kill}=kill` } });
        if (ran.signal === 'SIGKILL') return ran;
        t.is(ran.code, 0, `${kill}: ${ran.stderr}`);
      }
      t.false(kill.endsWith('#1'), `${kill} was never reached`);
      return null;
    };
    for (const kill of kills) {
      const killed = killedAt(kill);
      if (killed === null) continue;
      reached += 1;
      const said = killed.stdout.split('\n').filter((line) => line !== '');
      const found = await scenario.examine({ dir, env, host: { ...systemHost(), env }, said });
      t.deepEqual(found, [], `killed at ${kill}, said ${said.at(-1) ?? 'nothing'}`);
    }
    t.log(`${String(reached)} kills`);
  });
}

/** `point <name>` for each hit, in order, to fault rules such as `ref.move:rename:before#2`. */
function chosen(hits: readonly string[]): string[] {
  const random = new Random(seedOf(process.env));
  const counts = new Map<string, number>();
  for (const hit of hits)
    counts.set(hit.slice('point '.length), (counts.get(hit.slice('point '.length)) ?? 0) + 1);
  return [...counts].flatMap(([point, count]) => {
    const nths = new Set([1, count, 1 + random.below(count)]);
    return [...nths].map((nth) => `${point}#${String(nth)}`);
  });
}
