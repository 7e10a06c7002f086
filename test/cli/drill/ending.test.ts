import test from 'ava';
import type { Answered, Orphans } from '../../../cli/drill/answers.js';
import { orphansEnded, type Ending } from '../../../cli/drill/ending.js';

const OUTLIVED = [{ pid: 42, parent: 1, group: 42, start: '1', command: 'sleep 1' }];

const told = (...pids: readonly number[]): Answered<Orphans> => ({
  code: 0,
  stderr: '',
  document: pids.map((pid) => {
    return { pid, startedAt: null, command: 'sleep 1', turn: 'turn1', kind: 'process', id: String(pid) };
  }),
});

const EARLY: Ending = {
  when: 'before the repairs',
  listed: told(42),
  stopped: told(42),
  again: told(),
  left: [],
  bystanderLives: true,
};
const LATE: Ending = { ...EARLY, when: 'after the repairs', listed: told(), stopped: told() };

test('what outlived the agent and is ended by --stop, or by the repair before it, passes', (t) => {
  t.deepEqual(orphansEnded(OUTLIVED, EARLY), []);
  t.deepEqual(orphansEnded(OUTLIVED, LATE), []);
  t.deepEqual(orphansEnded([], LATE), []);
});

const WRONG: readonly (readonly [string, Ending, RegExp])[] = [
  [
    'one that is not listed',
    { ...EARLY, listed: told() },
    /^orphans before the repairs are \[42\], listed are \[\]$/,
  ],
  ['one too many that is listed', { ...EARLY, listed: told(42, 43) }, /listed are \[42, 43\]$/],
  [
    'one that a repair should have ended',
    { ...LATE, listed: told(42) },
    /^orphans after the repairs are \[\]/,
  ],
  ['one that is not said to be ended', { ...EARLY, stopped: told() }, /has to end \[42\] and says \[\]$/],
  ['another code', { ...EARLY, stopped: { ...told(42), code: 1 } }, /ended with 1$/],
  ['one that is listed afterwards', { ...EARLY, again: told(42) }, /^after --stop \[42\] are listed$/],
  ['one that lives', { ...EARLY, left: OUTLIVED }, /^\[42\] still run/],
  ['a bystander that was ended', { ...EARLY, bystanderLives: false }, /nobody of the turn was ended$/],
];

for (const [what, ending, complaint] of WRONG) {
  test(`${what} is a complaint`, (t) => {
    const complaints = orphansEnded(OUTLIVED, ending);
    t.is(complaints.length, 1);
    t.regex(complaints[0] ?? '', complaint);
  });
}
