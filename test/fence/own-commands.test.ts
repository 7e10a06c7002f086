/** Nothing that the turn's own git does is told as another's: the commands of the fence's table, one after another in one turn. */
import test from 'ava';
import { build, DATES } from '../helpers/fence-fixture.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { ROWS } from '../table/rows.js';

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** Each in the state that the one before has left; HEAD is back on main and nothing is half done when it begins. */
const script = (at: string): string =>
  ROWS.map(
    ({ words }) =>
      `git ${words.split(' ').map(quoted).join(' ')}\n` +
      `for half in merge rebase cherry-pick revert am; do git $half --abort; done; git bisect reset; git checkout -qf main\n${at}`,
  ).join('');

function observed(place: Scratch): string {
  const { stdout } = durable(place, ['log', '--type', 'git.observed']);
  return stdout;
}

for (const [name, init] of [
  ['strict', ['--fence', 'strict']],
  ['hooks', ['--fence', 'hooks']],
  ['strict without hooks', null],
] as const) {
  test(`nothing of the turn's own git is observed, mode ${name}`, (t) => {
    const place = scratch(t, { commit: false });
    build(place, 'dirty');
    if (init !== null) durable(place, ['init', ...init]);
    const refs = place.git('for-each-ref');
    const ran = durable(place, ['run', '--', 'sh', '-c', `(${script('')}) >/dev/null 2>&1; true`], {
      env: DATES,
    });
    t.is(ran.code, 0, ran.stderr);
    t.not(place.git('for-each-ref'), refs);
    t.is(observed(place), '');
  });
}
