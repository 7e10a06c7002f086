/** What README says the fence does not do, held to what it does: a limit that is lifted takes its sentence with it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { durable, startDurable, type Running } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const observed = (place: Scratch): string =>
  durable(place, ['log', '--type', 'git.observed', '--json']).stdout;

async function within(
  t: Parameters<typeof startDurable>[0],
  place: Scratch,
  act: () => void,
): Promise<Running['said']> {
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', 'echo open; cat']);
  if ((await running.line()) !== 'open') throw new Error(running.said);
  act();
  running.child.stdin.end();
  await running.ended;
  return running.said;
}

test('in the mode off a branch made beside a turn is neither refused nor noticed; in strict, without hooks, it is noticed', async (t) => {
  for (const mode of ['off', 'strict']) {
    const place = scratch(t);
    place.git('config', 'durable.fence', mode);
    await within(t, place, () => place.git('branch', 'beside'));
    t.is(observed(place).includes('beside'), mode === 'strict', mode);
  }
});

test('a stash drop beside a turn: refused and with its entry kept where that is the only one, named where there are more', async (t) => {
  for (const entries of [1, 2]) {
    const place = scratch(t);
    t.is(durable(place, ['init']).code, 0);
    for (let entry = 1; entry <= entries; entry += 1) {
      place.write('README', `${String(entry)}\n`);
      place.git('stash', '-q');
    }
    const before = place.git('reflog', '--format=%H %gd %gn %ge %gs', 'refs/stash');
    const file = place.git('rev-parse', '--path-format=absolute', '--git-path', 'logs/refs/stash');
    const log = readFileSync(file, 'utf8');
    await within(t, place, () => {
      t.is(place.run('git', ['stash', 'drop']).code, entries === 1 ? 128 : 0);
      t.is(place.git('stash', 'list').split('\n').filter(Boolean).length, 1);
    });
    t.is(observed(place).includes('stash changed'), entries === 2);
    if (entries === 2) continue;
    t.is(place.git('reflog', '--format=%H %gd %gn %ge %gs', 'refs/stash'), before);
    t.is(readFileSync(file, 'utf8'), log);
    place.git('stash', 'pop', '-q');
    t.is(readFileSync(join(place.dir, 'README'), 'utf8'), '1\n');
  }
});

test('a branch -m of the branch that is checked out is refused beside a turn, and its reflog is where it was', async (t) => {
  const place = scratch(t);
  t.is(durable(place, ['init']).code, 0);
  place.git('commit', '-q', '--allow-empty', '-m', 'second');
  const before = place.git('reflog', 'main');
  t.is(before.split('\n').length, 2);
  await within(t, place, () => {
    t.is(place.run('git', ['branch', '-m', 'renamed']).code, 128);
    t.is(place.git('reflog', 'main'), before);
  });
  t.is(place.run('git', ['branch', '-m', 'renamed']).code, 0);
  t.is(place.git('reflog', 'renamed').split('\n').length, 3);
});
