/** What a repair takes away comes back, and what it cannot speak for it names: through the real program. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { document, events, type Line } from '../helpers/events.js';
import { interrupted } from '../helpers/interrupted-run.js';
import { until } from '../helpers/processes.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { walk } from '../helpers/turn-place.js';

/** Tracked and small at the start; `big` and what is ignored are in no checkpoint. */
function place(t: ExecutionContext): Scratch {
  const made = scratch(t);
  made.git('config', 'durable.maxFileSize', '1k');
  made.write('grows', 'small\n');
  made.write('sub/file', 'before\n');
  made.write('.gitignore', 'dist/\n*.log\n');
  made.git('add', '-A');
  made.git('commit', '-qm', 'two');
  made.write('untracked', 'small\n');
  made.write('big', 'x'.repeat(2000));
  made.write('dist/out', 'built\n');
  made.write('deep/a.log', 'log\n');
  return made;
}

interface Repaired {
  readonly checkpoint: string;
  readonly restored: readonly string[];
  readonly kept: readonly Line[];
  readonly uncovered: readonly Line[];
  readonly uncoveredCount: number;
}

const repaired = (at: Scratch, action: string): Repaired => document<Repaired>(at, ['recover', action]);
const GROWS = 'head -c 5000 /dev/zero > grows; head -c 6000 /dev/zero > untracked; echo c > README';

for (const keeper of ['lives', 'dies'] as const) {
  test(`what outgrew the limit during the turn is in the checkpoint of the repair: undone, each byte is back (the keeper ${keeper})`, async (t) => {
    const at = place(t);
    const before = walk(at.dir);
    await interrupted(t, at, { script: GROWS, keeper });
    if (keeper === 'lives')
      await until('the scene is kept', () => events(at).some((one) => one['reason'] === 'after-death'));
    const left = walk(at.dir);
    const { checkpoint, restored, kept } = repaired(at, '--roll-back');
    t.deepEqual([restored, kept], [['README', 'grows', 'untracked'], []]);
    t.deepEqual(walk(at.dir), before);
    t.is(durable(at, ['restore', checkpoint]).code, 0);
    t.deepEqual(walk(at.dir), left);
  });
}

test('a file that was named itself is kept over the limit, by that checkpoint alone', (t) => {
  const at = place(t);
  const held = (...words: string[]): string[] => {
    const { checkpoint } = document<{ checkpoint: string }>(at, ['checkpoint', ...words]);
    return at.git('ls-tree', '-r', '--name-only', `${checkpoint}:worktree`).split('\n');
  };
  const skipped = (...words: string[]): unknown =>
    document<{ skipped: unknown }>(at, ['checkpoint', ...words]).skipped;
  t.false(held().includes('big'));
  t.true(held('big').includes('big'));
  t.deepEqual(skipped('big'), []);
  t.deepEqual(skipped(), [{ path: 'big', why: 'too-large', digest: null }]);
  t.false(held('.').includes('big'));
  rmSync(join(at.dir, '.git/durable'), { recursive: true, force: true });
  t.true(held('big').includes('big'));
});

test('what the checkpoint of a repair does not hold, the repair leaves as it is and names', async (t) => {
  const at = place(t);
  await interrupted(t, at, { script: 'git init -q sub; echo after > sub/file; echo c > README' });
  const ran = durable(at, ['recover', '--roll-back', '--json']);
  const { restored, kept } = JSON.parse(ran.stdout) as Repaired;
  t.deepEqual(restored, ['README']);
  t.deepEqual(kept, [{ path: 'sub/file', why: 'not-held' }]);
  t.regex(ran.stderr, /kept 'sub\/file': the checkpoint of this repair does not hold what is there/);
  t.is(readFileSync(join(at.dir, 'sub/file'), 'utf8'), 'after\n');
});

test('report and repair name what no checkpoint holds: too large, ignored, nested repositories', async (t) => {
  const at = place(t);
  at.git('init', '-q', 'nested');
  const script = 'echo y > big; head -c 3000 /dev/zero > fresh; echo z > dist/out; echo z > nested/file';
  await interrupted(t, at, { script });
  const expected = [
    ['big', 'too-large'],
    ['deep', 'ignored'],
    ['dist', 'ignored'],
    ['fresh', 'too-large'],
    ['nested', 'nested-repository'],
  ];
  const pairs = (all: readonly Line[]): unknown => all.map(({ path, why }) => [path, why]);
  const { interrupted: turns } = document<{ interrupted: Repaired[] }>(at, ['recover'], { codes: [3] });
  t.deepEqual([pairs(turns[0]?.uncovered ?? []), turns[0]?.uncoveredCount], [expected, 5]);
  const told = durable(at, ['recover']).stdout;
  for (const [path = '', why = ''] of expected) t.regex(told, new RegExp(`^ +${why} +${path}$`, 'm'));
  const ran = durable(at, ['recover', '--roll-back']);
  t.regex(ran.stderr, /in no checkpoint, so left as found: big \(too-large\), fresh \(too-large\), nested/);
  t.is(readFileSync(join(at.dir, 'dist/out'), 'utf8'), 'z\n');
});
