import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { scratch, type Scratch } from '../helpers/scratch.js';

const CHILD = new URL('../helpers/turn-child.js', import.meta.url).pathname;

function run(
  place: Scratch,
  steps: readonly object[],
  options: object = {},
): { result?: unknown; code?: string; fields?: Record<string, unknown> } {
  const ran = place.run('node', [CHILD, place.dir, JSON.stringify(steps), JSON.stringify(options)]);
  if (ran.signal === 'SIGKILL') return {};
  if (ran.stdout === '') throw new Error(ran.stderr);
  return JSON.parse(ran.stdout) as { result?: unknown };
}

const effects = (place: Scratch): string[] => {
  const file = join(place.top, 'effects');
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
};

test('a call that finished answers from the record and is not run again', (t) => {
  const place = scratch(t);
  t.deepEqual(run(place, [{ call: 'one' }, { call: 'two' }, { die: true }]), {});
  t.deepEqual(run(place, [{ call: 'one' }, { call: 'two' }, { call: 'three' }]).result, [
    { did: 'one' },
    { did: 'two' },
    { did: 'three' },
  ]);
  t.deepEqual(effects(place), ['one', 'two', 'three']);
});

test('a call in doubt is never guessed: without a decision the run stops and says which', (t) => {
  const place = scratch(t);
  run(place, [{ call: 'one' }, { dieIn: 'two' }]);
  const again = run(place, [{ call: 'one' }, { call: 'two' }]);
  t.is(again.code, 'invocation-in-doubt');
  t.is(again.fields?.['tool'], 'effect');
  t.deepEqual(effects(place), ['one', 'two']);
});

test('a call in doubt is run again when the caller decides so, and accepted when it decides that', (t) => {
  const retried = scratch(t);
  run(retried, [{ dieIn: 'one' }]);
  t.deepEqual(run(retried, [{ call: 'one' }], { onDoubt: 'retry' }).result, [{ did: 'one' }]);
  t.deepEqual(effects(retried), ['one', 'one']);
  const accepted = scratch(t);
  run(accepted, [{ dieIn: 'one' }]);
  t.deepEqual(run(accepted, [{ call: 'one' }], { onDoubt: 'accept' }).result, ['accepted']);
  t.deepEqual(effects(accepted), ['one']);
});

test('a turn that stopped at a doubt can be run again with a decision', (t) => {
  const place = scratch(t);
  run(place, [{ dieIn: 'one' }]);
  t.is(run(place, [{ call: 'one' }]).code, 'invocation-in-doubt');
  t.deepEqual(run(place, [{ call: 'one' }, { call: 'two' }], { onDoubt: 'accept' }).result, [
    'accepted',
    { did: 'two' },
  ]);
  t.deepEqual(effects(place), ['one', 'two']);
});

test('a changed sequence is refused with the first differing call', (t) => {
  const place = scratch(t);
  run(place, [{ call: 'one' }, { call: 'two' }, { die: true }]);
  const again = run(place, [{ call: 'one' }, { call: 'other' }]);
  t.is(again.code, 'replay-diverged');
  t.is(again.fields?.['index'], 1);
  t.deepEqual(effects(place), ['one', 'two']);
});

test('a turn that finished is not started a second time', (t) => {
  const place = scratch(t);
  run(place, [{ call: 'one' }]);
  const again = run(place, [{ call: 'one' }]);
  t.is(again.code, 'turn-claimed');
  t.is(again.fields?.['state'], 'finished');
  t.deepEqual(effects(place), ['one']);
});
