/** Fault points against strace: no change of the disk and no git that makes one goes by unnamed. */
import { join } from 'node:path';
import { execPath } from 'node:process';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { recordRun } from '../helpers/power-cut.js';
import type { Operation } from '../helpers/recording.js';
import { SCENARIOS } from '../helpers/scenarios.js';
import { scratch } from '../helpers/scratch.js';

const WORKLOAD = fileURLToPath(new URL('../helpers/workload.js', import.meta.url));

/** The fault operation that a system call belongs to. */
const OPERATIONS: Readonly<Partial<Record<Operation['kind'], string>>> = {
  create: 'write',
  write: 'write',
  truncate: 'write',
  chmod: 'write',
  symlink: 'write',
  rename: 'rename',
  link: 'link',
  unlink: 'unlink',
  mkdir: 'mkdir',
  rmdir: 'rmdir',
  sync: 'fsync',
};

/** Operations of which it may be a part: what is removed with all in it is named once, and a folder is made with its mode. */
const LARGER: Readonly<Partial<Record<Operation['kind'], readonly string[]>>> = {
  rmdir: ['unlink'],
  chmod: ['mkdir'],
};

for (const name of Object.keys(SCENARIOS)) {
  test(`${name}: each change of the disk lies between the two fault points of its kind`, async (t) => {
    const { dir, top, env, run } = scratch(t);
    t.is(run(execPath, [WORKLOAD, name, 'prepare', dir]).code, 0);
    const { steps, ran } = await recordRun([execPath, WORKLOAD, name, 'run', dir], {
      dir,
      env: { ...env, DURABLE_FAULTS: 'trace', DURABLE_KEEPER_FAULTS: 'trace' },
      file: join(top, 'trace'),
    });
    t.is(ran.code, 0, ran.stderr);
    const unnamed = steps.flatMap(({ operation, within }) => {
      const kind = OPERATIONS[operation.kind];
      if (kind === undefined || within?.startsWith('user:') === true) return [];
      const kinds = [kind, ...(LARGER[operation.kind] ?? []), 'spawn'];
      const named = kinds.some((one) => within?.endsWith(`:${one}`) === true);
      return named ? [] : [`${operation.kind} ${JSON.stringify(operation)} within ${within ?? 'no point'}`];
    });
    t.deepEqual(unnamed.slice(0, 10), []);
    const open = new Map<string, number>();
    for (const { operation, process } of steps) {
      if (operation.kind !== 'point') continue;
      const key = `${String(process)} ${operation.point.replace(/:(?:before|after)$/, '')}`;
      open.set(key, (open.get(key) ?? 0) + (operation.point.endsWith(':before') ? 1 : -1));
    }
    // A part of a scenario is killed between two points. A folder that is there already has only the point before.
    const isWhole = SCENARIOS[name]?.part === undefined;
    const unbalanced = [...open]
      .filter(([key, count]) => count < 0 || (count > 0 && isWhole && !key.endsWith(':mkdir')))
      .map(([key]) => key);
    t.deepEqual(unbalanced, []);
    t.true(open.size > 0);
  });
}
