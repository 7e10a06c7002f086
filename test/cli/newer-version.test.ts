import { existsSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { document } from '../helpers/events.js';
import { interruptedRun } from '../helpers/interrupted-run.js';
import { differences, listing } from '../helpers/listing.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

/** An event as a newer program would write it, after the newest one; returns its commit. */
function appendNewer(place: Scratch): string {
  const refs = place.git('for-each-ref', '--format=%(refname)', 'refs/durable/tasks').split('\n');
  const ref = refs.find((name) => !name.includes('/standing-')) ?? '';
  const message = place.git('log', '-1', '--format=%B', ref).replace('"v":1', '"v":99');
  const commit = place.git('commit-tree', '-p', ref, '-m', message, `${ref}^{tree}`);
  place.git('update-ref', ref, commit);
  return commit;
}

const SAYS =
  /\bversion 99\b[^\n]*\ba turn may be interrupted\b[^\n]*\binstall a git-durable that reads version 99\b/;

test('with an event of a newer program at the end of an interrupted turn every verb names the version and says that a turn may be interrupted; none says that there is nothing, and none moves a ref or a file', async (t) => {
  const place = scratch(t);
  const { checkpoint } = document<{ checkpoint: string }>(place, ['checkpoint']);
  await interruptedRun(t, place, 'echo changed > README');
  appendNewer(place);
  const refs = place.git('for-each-ref');
  const files = listing(place.dir, ['.git']);
  for (const [code, ...words] of [
    ...[[1, 'recover'] as const, [1, 'recover', '--json'] as const, [1, 'recover', '--all'] as const],
    ...['--keep', '--roll-back', '--roll-forward', '--take-over'].map((how) => [1, 'recover', how] as const),
    ...['status', 'approvals', 'conflicts', 'checkpoints', 'rewind', 'log', 'check'].map(
      (v) => [1, v] as const,
    ),
    ...([
      [0, 'lease'],
      [0, 'orphans'],
      [0, 'diff', checkpoint],
      [3, 'doctor'],
      [5, 'verify'],
    ] as const),
    ...([
      [1, 'run', '--', 'true'],
      [1, 'checkpoint'],
      [1, 'lease', 'release'],
    ] as const),
    ...([
      [1, 'run', '--task', 'new', '--', 'true'],
      [3, 'doctor', '--fix'],
    ] as const),
  ]) {
    const ran = durable(place, words);
    const said = words.join(' ');
    t.is(ran.code, code, said);
    t.regex(ran.stdout + ran.stderr, SAYS, said);
    t.notRegex(ran.stdout, /nothing (?:was interrupted|was left running|is broken)|doctor --fix/, said);
    t.is((ran.stdout + ran.stderr).split('a turn may be interrupted').length, 2, said);
  }
  t.is(place.git('for-each-ref'), refs);
  t.deepEqual(differences(files, listing(place.dir, ['.git'])), []);
});

test('with an event of a newer program, and the record of the lease gone, no turn is started', async (t) => {
  const place = scratch(t);
  await interruptedRun(t, place, 'echo changed > README');
  appendNewer(place);
  for (const ref of place.git('for-each-ref', '--format=%(refname)', 'refs/durable/leases').split('\n'))
    place.git('update-ref', '-d', ref);
  const refs = place.git('for-each-ref');
  for (const words of [
    ['run', '--', 'touch', 'ran'],
    ['run', '--recover', 'keep', '--', 'touch', 'ran'],
    ['run', '--task', 'new', '--', 'touch', 'ran'],
  ]) {
    const { code, stderr } = durable(place, words);
    t.is(code, 1, words.join(' '));
    t.regex(stderr, SAYS, words.join(' '));
  }
  t.false(existsSync(join(place.dir, 'ran')));
  t.is(place.git('for-each-ref'), refs);
});

test('a task of a newer program hides no interrupted turn of another work tree that this one can read', async (t) => {
  const place = scratch(t);
  t.is(durable(place, ['run', '--', 'true']).code, 0);
  appendNewer(place);
  const linked = join(place.top, 'linked');
  place.git('worktree', 'add', '-q', linked);
  await interruptedRun(t, place, 'echo changed > README', linked);
  const report = durable(place, ['-C', linked, 'recover']);
  t.is(report.code, 3, report.stderr);
  t.regex(report.stderr, SAYS);
  t.is(durable(place, ['-C', linked, 'recover', '--roll-back']).code, 0);
});
