/** The long drill: `npm run test:drill`. */
import test from 'ava';
import { runDrill } from '../helpers/drill-run.js';
import { PROGRAM } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';

const FIRST = Number(process.env['DURABLE_DRILL_SEED'] ?? 1);

test('a hundred kills: every answer holds, and every state of a file and of a call occurs', (t) => {
  t.timeout(90 * 60_000);
  const place = scratch(t, { repository: false });
  const { code, document } = runDrill(place, PROGRAM, { rounds: 100, seed: FIRST });
  t.log(`seeds from ${String(FIRST)}; ${JSON.stringify(document.seen)}`);
  t.deepEqual(
    document.rounds.flatMap((round) =>
      round.complaints.map((complaint) => `${String(round.seed)}: ${complaint}`),
    ),
    [],
  );
  t.is(code, 0);
  const keepers = document.rounds.filter(({ keeperKilled }) => keeperKilled).length;
  t.true(keepers >= 30 && keepers <= 70, `the keeper was killed too in ${String(keepers)} rounds of 100`);
  const { files, invocations } = document.seen;
  t.deepEqual(Object.keys(files).sort(), [
    'changed',
    'deleted',
    'foreign',
    'partial',
    'untouched',
    'written',
  ]);
  t.deepEqual(Object.keys(invocations).sort(), ['denied', 'failed', 'finished', 'in-doubt', 'not-started']);
  for (const [state, count] of Object.entries({ ...files, ...invocations }))
    t.true(count > 0, `'${state}' never occurred`);
});
