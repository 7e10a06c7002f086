import test from 'ava';
import { approvals, script } from '../helpers/asking.js';
import { leaveConflict } from '../helpers/conflicting.js';
import { document, events, last, type Line } from '../helpers/events.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const askIn = (n: number): string => `durable ask --tool deploy --args '${String(n)}' -- echo ran`;

/** A turn of the task that `place` has. */
function turn(place: Scratch, words: readonly string[]): ReturnType<typeof durable> {
  const task = String(events(place)[0]?.['task']);
  return durable(place, ['run', '--task', task, '--', ...words]);
}

const LATER: readonly (readonly [what: string, happens: (place: Scratch) => void])[] = [
  ['a later turn', (place) => void turn(place, ['true'])],
  [
    'a crash and its repair',
    (place) => {
      turn(place, ['sh', '-c', 'kill -9 $PPID']);
      durable(place, ['recover', '--keep']);
    },
  ],
];

/** Who answered and when comes first, whoever has used the answer since. */
function saidOf(one: Line, n: number): string {
  const answered = `, by ${String(one['by'])} at ${String(one['resolvedAt'])}; it was used by sh at 2`;
  return [`approved${answered}`, `rejected${answered}`, 'invalidated, by a rewind at 2'][n] ?? '';
}

test('requests that have their end are listed, and refused with it, whatever became of the task since', async (t) => {
  const place = scratch(t);
  const running = script(
    t,
    place,
    `${[1, 2, 3].map(askIn).join('; ')}; echo asked; read -r _; ${askIn(1)}; ${askIn(2)}`,
  );
  t.is(await running.line(), 'asked');
  const ids = approvals(place).pending.map((one) => String(one['id']));
  durable(place, ['approve', String(ids[0])]);
  durable(place, ['reject', String(ids[1]), '--feedback', 'no']);
  running.child.stdin.end('\n');
  await running.ended;
  t.is(durable(place, ['rewind', '1']).code, 0);
  const before = approvals(place).resolved;
  t.deepEqual(
    before.map((one) => [one['id'], one['state']]),
    [
      [ids[0], 'consumed'],
      [ids[1], 'consumed'],
      [ids[2], 'invalidated'],
    ],
  );
  const said = before.map(saidOf);
  for (const [what, happens] of LATER) {
    happens(place);
    t.deepEqual(approvals(place), { pending: [], resolved: before }, what);
    for (const [n, id] of ids.entries()) {
      const answer = durable(place, ['approve', id.slice(0, 10)]);
      t.is(answer.code, 4, answer.stderr);
      t.true(answer.stderr.includes(said[n] ?? '?'), answer.stderr);
    }
  }
  t.is(durable(place, ['verify']).code, 0);
});

test('a conflict that was settled is listed and refused with its end after a later turn', (t) => {
  const place = scratch(t);
  leaveConflict(place);
  const listed = () => document<{ open: Line[]; resolved: Line[] }>(place, ['conflicts']);
  const id = String(listed().open[0]?.['id']);
  t.is(durable(place, ['resolve', id, '--use-latest']).code, 0);
  const before = listed().resolved;
  t.is(turn(place, ['true']).code, 0);
  t.deepEqual(listed(), { open: [], resolved: before });
  for (const choice of ['--use-latest', '--keep-mine']) {
    const again = durable(place, ['resolve', id, choice]);
    t.is(again.code, 4, again.stderr);
    t.regex(again.stderr, /is already settled \(use-latest\), by \S+ at /);
  }
  t.is(place.run('cat', ['file']).stdout, 'theirs\n');
});

test('to a person the newest of many decisions are shown, and how many there were; waiting ones are all shown', async (t) => {
  const place = scratch(t);
  const asks = Array.from(
    { length: 22 },
    (_, n) => `durable ask --tool deploy --args '${String(n)}' --expires 0.01`,
  );
  const running = script(t, place, `${asks.join('; ')}; durable ask --tool last --args '{}'; echo asked`);
  t.is(await running.line(), 'asked');
  await running.ended;
  t.is(last(events(place), 'turn.finished')?.['outcome'], 'completed');
  t.is(approvals(place).resolved.length, 22);
  const rows = durable(place, ['approvals']).stdout.split('\n');
  t.is(rows.filter((row) => / expired /.test(row)).length, 20);
  t.is(rows.filter((row) => / pending /.test(row)).length, 1);
  t.true(rows.includes('2 earlier ones are not shown: git durable approvals --json'));
});
