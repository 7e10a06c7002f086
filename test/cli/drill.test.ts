import test from 'ava';
import { runDrill } from '../helpers/drill-run.js';
import { mutant } from '../helpers/mutant.js';
import { durable, PROGRAM } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';
import { WITHOUT_PREPARED } from '../helpers/mutations.js';

// A round runs a score of processes: side by side they would only disturb each other's moments.
test.serial('five kills at random moments: every answer is what the independent record says', (t) => {
  const place = scratch(t, { repository: false });
  const { code, document, stderr, left } = runDrill(place, PROGRAM, { rounds: 5, seed: 100 });
  t.is(stderr, '');
  t.deepEqual(
    document.rounds.flatMap((round) => round.complaints),
    [],
  );
  t.deepEqual([document.agent, document.passed, document.failed, code], ['scripted', 5, 0, 0]);
  t.deepEqual(
    document.rounds.map((round) => round.seed),
    [100, 101, 102, 103, 104],
  );
  t.deepEqual(left, []);
});

test.serial('a build that does not record transaction.prepared fails the drill', (t) => {
  const place = scratch(t, { repository: false });
  const { code, document } = runDrill(place, mutant(t, WITHOUT_PREPARED), { rounds: 1, seed: 103 });
  t.is(code, 1);
  t.true(document.failed > 0);
  t.true(
    document.rounds.some((round) => !round.reportsFiles && !round.rolledBackExactly),
    JSON.stringify(document.rounds),
  );
});

test.serial('people read the answers in plain words, and a table', (t) => {
  const place = scratch(t, { repository: false });
  const ran = durable(place, ['drill', '--rounds', '1', '--seed', '7']);
  t.is(ran.code, 0, ran.stderr);
  for (const words of [
    'Was a turn interrupted?',
    'Which files were written?',
    'Is the approval still there?',
    'Is the conflict still open?',
    'Does git status match?',
    'Did anything outlive it?',
    '1 of 1 rounds passed',
  ]) {
    t.true(ran.stdout.includes(words), words);
  }
});

test('an agent that this version cannot drill is wrong usage', (t) => {
  const place = scratch(t, { repository: false });
  t.is(durable(place, ['drill', '--agent', 'someone']).code, 2);
  t.is(durable(place, ['drill', '--bare']).code, 2);
  t.is(durable(place, ['drill', '--rounds', '0']).code, 2);
});
