import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { document } from '../helpers/events.js';
import { differences, listing } from '../helpers/listing.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const READING: readonly (readonly string[])[] = [
  ['status'],
  ['status', '--exit-code'],
  ['doctor'],
  ['log'],
  ['log', '-n', '1'],
  ['verify'],
  ['recover'],
  ['recover', '--all'],
  ['orphans'],
  ['checkpoints'],
  ['approvals'],
  ['lease'],
  ['init', '--dry-run'],
];

function unchanged(t: ExecutionContext, place: Scratch, words: readonly string[]): void {
  const before = listing(place.dir);
  const ran = durable(place, words);
  t.deepEqual(differences(before, listing(place.dir)), [], words.join(' '));
  t.deepEqual([ran.code, ran.stderr], [0, ''], words.join(' '));
}

test('a reading verb writes nothing where nothing was ever recorded', (t) => {
  const place = scratch(t);
  for (const words of READING) unchanged(t, place, words);
});

test('a reading verb writes nothing beside a ledger, and neither do show, diff, check and restore --dry-run', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['run', '--', 'sh', '-c', 'echo 2 > README']).code, 0);
  const { checkpoint } = document<{ checkpoint: string }>(place, ['checkpoint']);
  place.write('README', '3\n');
  for (const words of READING) unchanged(t, place, [...words, '--json']);
  for (const words of [
    ['show', checkpoint],
    ['diff', checkpoint],
    ['restore', checkpoint, '--dry-run'],
    ['check'],
  ])
    unchanged(t, place, words);
});

test('a reading verb writes nothing in a linked work tree in which nothing was ever recorded', (t) => {
  const place = scratch(t);
  const { checkpoint } = document<{ checkpoint: string }>(place, ['checkpoint']);
  const linked = join(place.top, 'linked');
  place.git('worktree', 'add', '-q', linked);
  const all = (): string[] => [...listing(place.dir), ...listing(linked)];
  for (const words of [['diff', checkpoint], ['restore', checkpoint, '--dry-run'], ['status'], ['recover']]) {
    const before = all();
    t.is(durable(place, words, { cwd: linked }).code, 0, words.join(' '));
    t.deepEqual(differences(before, all()), [], words.join(' '));
  }
});
