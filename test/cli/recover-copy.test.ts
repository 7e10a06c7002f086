import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { document } from '../helpers/events.js';
import { interruptedRun } from '../helpers/interrupted-run.js';
import { durable, PROGRAM } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const readme = (place: Scratch): string => readFileSync(join(place.dir, 'README'), 'utf8');
const named = (place: Scratch): readonly string[] =>
  document<{ interrupted: readonly { turn: string }[] }>(place, ['recover'], {
    codes: [0, 3],
  }).interrupted.map(({ turn }) => turn);

/** The same repository in another folder, as `cp -a` or a synchroniser makes it. */
function copied(place: Scratch, name: string): Scratch {
  const dir = join(place.top, name);
  place.run('cp', ['-a', '--', place.dir, dir]);
  return {
    ...place,
    dir,
    run: (program, args, more = {}) => place.run(program, args, { cwd: dir, ...more }),
  };
}

test('the interrupted turn of a repository that was moved by copying is named there by every verb that names turns, lets no other turn begin, and is repaired when it is named', async (t) => {
  const place = scratch(t);
  await interruptedRun(t, place, 'echo changed > README');
  const copy = copied(place, "a copy of the user's");
  const [turn = ''] = named(place);
  // While the original stands it is told apart: the turn is the original's.
  t.deepEqual(named(copy), []);
  rmSync(place.dir, { recursive: true });
  t.deepEqual(named(copy), [turn]);
  const report = durable(copy, ['recover']);
  t.is(report.code, 3);
  t.regex(
    report.stdout,
    /^begun in +'[^\n]*\/work': this is a copy of that work tree, or it was moved here/m,
  );
  t.true(report.stdout.includes(`git durable recover --roll-back --turn ${turn}`));
  t.is(durable(copy, ['status', '--exit-code']).code, 3);
  t.regex(durable(copy, ['doctor']).stdout, new RegExp(`turn-interrupted +turn ${turn} `));
  // A first writing verb gives the copy an id and a lease of its own, which must hide nothing.
  t.is(durable(copy, ['checkpoint']).code, 0);
  t.deepEqual(named(copy), [turn]);
  const refused = durable(copy, ['run', '--', 'true']);
  t.is(refused.code, 3, refused.stderr);
  const unnamed = durable(copy, ['recover', '--roll-back']);
  t.is(unnamed.code, 2);
  t.true(unnamed.stderr.includes(`--turn ${turn}`), unnamed.stderr);
  t.is(readme(copy), 'changed\n');
  const repaired = durable(copy, ['recover', '--roll-back', '--turn', turn]);
  t.is(repaired.code, 0, repaired.stderr);
  t.is(readme(copy), 'hello\n');
  t.deepEqual(named(copy), []);
  t.is(durable(copy, ['run', '--', 'true']).code, 0);
  t.is(durable(copy, ['verify']).code, 0);
});

test('a copy whose original stands says where to repair the turn and how to put its own files back, and both do', async (t) => {
  const place = scratch(t);
  await interruptedRun(t, place, 'echo changed > README');
  const copy = copied(place, "a copy of the user's");
  const { code, stdout } = durable(copy, ['recover', '--roll-back']);
  t.is(code, 0);
  t.is(readme(copy), 'changed\n');
  const commands = [...stdout.matchAll(/: (git durable .*(?:recover|restore [0-9a-f]+))$/gm)].map(
    ([, line]) => line,
  );
  t.is(commands.length, 2, stdout);
  const typed = (line: string): number | null =>
    copy.run(
      'sh',
      ['-c', `durable() { '${process.execPath}' "$PROGRAM" "$@"; }; ${line.replace('git ', '')}`],
      {
        env: { PROGRAM },
      },
    ).code;
  t.is(typed(commands[1] ?? ''), 0);
  t.is(readme(copy), 'hello\n');
  t.is(readme(place), 'changed\n');
  t.is(typed(commands[0] ?? ''), 3);
  t.is(typed(`${commands[0] ?? ''} --roll-back`), 0);
  t.is(readme(place), 'hello\n');
});

test('no copy of a copy loses the turn of the first one', async (t) => {
  const place = scratch(t);
  await interruptedRun(t, place, 'echo changed > README');
  const [turn = ''] = named(place);
  const second = copied(place, 'second');
  rmSync(place.dir, { recursive: true });
  // Its own id replaces the first one's on disk.
  t.is(durable(second, ['checkpoint']).code, 0);
  const third = copied(second, 'third');
  rmSync(second.dir, { recursive: true });
  t.is(durable(third, ['checkpoint']).code, 0);
  t.deepEqual(named(third), [turn]);
});
