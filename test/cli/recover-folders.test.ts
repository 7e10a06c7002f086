/** Folders that nobody's checkpoint holds, where a file was: they go with nothing in them, and stay with anything. */
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { document } from '../helpers/events.js';
import { interruptedRun } from '../helpers/interrupted-run.js';
import { durable } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';

interface Taken {
  readonly checkpoint: string;
}

const WAYS = [
  ['an empty one', 'mkdir x'],
  ['empty ones, as deep as they go', 'mkdir -p x/a/b x/c'],
  ['empty ones beside a new file', 'mkdir -p x/a/b x/c; echo n > x/n; echo n > x/c/n'],
] as const;

for (const [what, made] of WAYS) {
  test(`folders in a file's place give way in a roll back and in a restore: ${what}`, async (t) => {
    const place = scratch(t);
    place.write('x', 'before\n');
    place.write('other', 'before\n');
    const { checkpoint } = document<Taken>(place, ['checkpoint', '-m', 'start']);
    const script = `rm x; ${made}; echo agent > other`;
    await interruptedRun(t, place, script);
    const back = durable(place, ['recover', '--roll-back']);
    t.is(back.code, 0, back.stdout + back.stderr);
    t.is(readFileSync(join(place.dir, 'x'), 'utf8'), 'before\n');
    t.is(readFileSync(join(place.dir, 'other'), 'utf8'), 'before\n');
    rmSync(join(place.dir, 'x'));
    place.run('sh', ['-c', script.replace('rm x; ', '')]);
    const restored = durable(place, ['restore', checkpoint]);
    t.is(restored.code, 0, restored.stdout + restored.stderr);
    t.is(readFileSync(join(place.dir, 'x'), 'utf8'), 'before\n');
    t.is(readFileSync(join(place.dir, 'other'), 'utf8'), 'before\n');
    t.is(place.git('status', '--porcelain', '--', 'x/n', 'x/c'), '');
  });
}

test("a folder in a file's place that holds what a restore may not take stays with all of it, and the rest is restored", (t) => {
  const place = scratch(t);
  place.write('.gitignore', '*.ignored\n');
  place.write('x', 'before\n');
  place.write('other', 'before\n');
  const { checkpoint } = document<Taken>(place, ['checkpoint', '-m', 'start']);
  rmSync(join(place.dir, 'x'));
  mkdirSync(join(place.dir, 'x/empty/deeper'), { recursive: true });
  place.write('x/kept.ignored', 'a person\n');
  place.write('other', 'after\n');
  const { code, stdout, stderr } = durable(place, ['restore', checkpoint]);
  t.is(code, 0, stderr);
  t.regex(stdout, /in-the-way/);
  t.is(readFileSync(join(place.dir, 'other'), 'utf8'), 'before\n');
  t.is(readFileSync(join(place.dir, 'x/kept.ignored'), 'utf8'), 'a person\n');
  t.true(lstatSync(join(place.dir, 'x/empty/deeper')).isDirectory());
  t.false(existsSync(join(place.dir, '.git/index.lock')));
});
