/** Folders that may not be entered: named, neither deleted nor taken for what they were. Through the real program. */
import { chmodSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execPath } from 'node:process';
import test, { type ExecutionContext } from 'ava';
import { interruptedRun } from '../helpers/interrupted-run.js';
import { PROGRAM } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { walk } from '../helpers/turn-place.js';

const RIGHTS = '-dac_override,-dac_read_search';
/** Root enters every folder, unless it gives that up. */
const BOUND =
  process.getuid?.() === 0 ? ['setpriv', `--bounding-set=${RIGHTS}`, `--inh-caps=${RIGHTS}`] : ['env'];

// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller says what it expects
function durable<T>(place: Scratch, ...words: readonly string[]): T {
  const [program = '', ...before] = BOUND;
  const ran = place.run(program, [...before, execPath, PROGRAM, '--json', ...words]);
  if (ran.code !== 0) throw new Error(`durable ${words.join(' ')}: ${ran.stderr}`);
  return JSON.parse(ran.stdout) as T;
}

interface Taken {
  readonly checkpoint: string;
  readonly skipped: readonly { readonly path: string; readonly why: string }[];
}

const skippedIn = ({ skipped }: Taken): string[] => skipped.map(({ path, why }) => `${path}: ${why}`).sort();

/** A tracked folder with a folder and an untracked file in it, one of odd name, and one that nothing is tracked in. */
function place(t: ExecutionContext): { at: Scratch; closed: string[]; set: (mode: number) => void } {
  const at = scratch(t);
  at.write('tracked/file', 'a\n');
  at.write('tracked/in/file', 'b\n');
  at.write("odd\nname'/file", 'c\n');
  at.git('add', '-A');
  at.git('commit', '-qm', 'two');
  at.write('tracked/new', 'd\n');
  mkdirSync(join(at.dir, 'never'));
  at.write('never/file', 'e\n');
  const closed = ["odd\nname'", 'never', 'tracked'];
  const set = (mode: number): void => {
    for (const folder of closed) chmodSync(join(at.dir, folder), mode);
  };
  t.teardown(() => {
    set(0o755);
  });
  return { at, closed, set };
}

for (const known of ['after a checkpoint of them', 'in a first checkpoint'] as const) {
  test(`folders that may not be entered are named and nothing of them is claimed, ${known}`, (t) => {
    const { at, closed, set } = place(t);
    const before = walk(at.dir);
    if (known === 'after a checkpoint of them') t.deepEqual(skippedIn(durable<Taken>(at, 'checkpoint')), []);
    set(0);
    const taken = durable<Taken>(at, 'checkpoint');
    const named = closed.map((folder) => `${folder}: unreadable`).sort();
    t.deepEqual(skippedIn(taken), named);
    t.deepEqual(at.git('ls-tree', '-r', '--name-only', `${taken.checkpoint}:worktree`), 'README');
    // The next one, with nothing changed, names them as well.
    t.deepEqual(skippedIn(durable<Taken>(at, 'checkpoint')), named);
    set(0o755);
    at.write('README', 'changed\n');
    const restored = durable<{ removed: string[] }>(at, 'restore', taken.checkpoint);
    t.deepEqual(restored.removed, []);
    t.deepEqual(walk(at.dir), before);
    const again = durable<Taken>(at, 'checkpoint');
    t.deepEqual(skippedIn(again), []);
    t.is(at.git('ls-tree', '-r', '--name-only', `${again.checkpoint}:worktree`).split('\n').length, 6);
  });
}

for (const [mode, what] of [
  [0o000, 'entered'],
  [0o555, 'changed'],
] as const) {
  test(`a roll back that meets a folder that may not be ${what} changes nothing and says what to type; typed, the same is done`, async (t) => {
    const at = scratch(t);
    const folder = join(at.dir, 'sub folder');
    at.write('sub folder/file', 'before\n');
    at.git('add', '-A');
    at.git('commit', '-qm', 'two');
    await interruptedRun(t, at, "echo after > README; echo after > 'sub folder/file'");
    chmodSync(folder, mode);
    t.teardown(() => {
      chmodSync(folder, 0o755);
    });
    const [program = '', ...bound] = BOUND;
    const back = () => at.run(program, [...bound, execPath, PROGRAM, 'recover', '--roll-back']);
    const refused = back();
    t.is(refused.code, 1);
    t.is(readFileSync(join(at.dir, 'README'), 'utf8'), 'after\n');
    const [, typed = ''] = /(chmod u\+rwx '.*sub folder')/.exec(refused.stderr) ?? [];
    // The test's own folder has a quote in its name, which the sentence does not escape.
    t.is(typed, `chmod u+rwx '${folder}'`, refused.stderr);
    chmodSync(folder, 0o755);
    const done = back();
    t.is(done.code, 0, done.stderr);
    t.is(readFileSync(join(folder, 'file'), 'utf8'), 'before\n');
    t.is(readFileSync(join(at.dir, 'README'), 'utf8'), 'hello\n');
  });
}
