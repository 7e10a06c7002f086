import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { events } from '../helpers/events.js';
import { durable } from '../helpers/program.js';
import { Random } from '../helpers/random.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const CHILD = new URL('../helpers/turn-child.js', import.meta.url).pathname;

function run(
  place: Scratch,
  steps: readonly object[],
  options: { onDoubt?: 'retry' | 'accept'; faults?: string } = {},
): { result?: unknown; code?: string; fields?: Record<string, unknown> } {
  const ran = place.run('node', [CHILD, place.dir, JSON.stringify(steps), JSON.stringify(options)], {
    env: options.faults === undefined ? {} : { DURABLE_FAULTS: options.faults },
  });
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

const EVERYTHING = [
  { transaction: ['one', '1\n'] },
  { checkpoint: 'between' },
  { transaction: ['one', '2\n'] },
  { deny: 'rm -rf' },
  { steer: 'faster' },
  { steer: 'faster' },
  { usage: 7 },
  { fail: '../x' },
  { nested: 'inner' },
  { restore: true },
  { call: 'last' },
] as const;

test('whatever a turn did is answered from the record: nothing is done, recorded or said a second time', (t) => {
  const place = scratch(t);
  t.deepEqual(run(place, [...EVERYTHING, { die: true }]), {});
  const before = events(place);
  place.write('one.a', 'a person was here\n');
  const again = run(place, [...EVERYTHING, { call: 'more' }]);
  t.is(again.code, undefined);
  t.deepEqual((again.result as unknown[]).slice(7), [
    { refused: 'path-outside', path: '../x' },
    'inner',
    ['one.a', 'one.b'],
    { did: 'last' },
    { did: 'more' },
  ]);
  t.deepEqual(effects(place), ['../x', 'last', 'more']);
  t.is(readFileSync(join(place.dir, 'one.a'), 'utf8'), 'a person was here\n');
  const added = events(place).slice(before.length);
  t.deepEqual(
    added.map((line) => line['type']).filter((type) => !String(type).startsWith('lease.')),
    [
      'turn.recovered',
      'invocation.proposed',
      'invocation.started',
      'invocation.finished',
      'checkpoint.taken',
      'turn.finished',
    ],
  );
});

test('a transaction killed half way is in doubt; retried it is completed as it was meant, accepted it stays as found', (t) => {
  const half = (place: Scratch): void => {
    place.write('one.a', 'before\n');
    const faults = 'stage.publish:rename:after#1=kill';
    t.deepEqual(run(place, [{ transaction: ['one', 'after\n'] }], { faults }), {});
    t.is(readFileSync(join(place.dir, 'one.a'), 'utf8'), 'after\n');
    t.false(existsSync(join(place.dir, 'one.b')));
  };
  const retried = scratch(t);
  half(retried);
  t.is(run(retried, [{ transaction: ['one', 'after\n'] }]).code, 'invocation-in-doubt');
  // The bytes of a second run may come from files that have changed already: those of the first count.
  run(retried, [{ transaction: ['one', 'after after\n'] }], { onDoubt: 'retry' });
  t.is(readFileSync(join(retried.dir, 'one.a'), 'utf8'), 'after\n');
  t.is(readFileSync(join(retried.dir, 'one.b'), 'utf8'), 'after\n');
  const edits = events(retried).filter((line) => line['purpose'] === 'edit');
  t.is(edits.length, 1);
  t.is(events(retried).filter((line) => line['type'] === 'transaction.rolled-back').length, 0);
  const accepted = scratch(t);
  half(accepted);
  run(accepted, [{ transaction: ['one', 'after\n'] }], { onDoubt: 'accept' });
  t.false(existsSync(join(accepted.dir, 'one.b')));
  for (const place of [retried, accepted]) {
    t.is(durable(place, ['verify']).code, 0);
    t.is(durable(place, ['recover']).code, 0);
  }
});

test('what somebody wrote into a transaction in doubt is kept when it is retried: it is a conflict', (t) => {
  const place = scratch(t);
  const step = { transaction: ['one', 'after\n'] };
  run(place, [step], { faults: 'stage.publish:rename:after#1=kill' });
  place.write('one.a', 'theirs\n');
  t.is(run(place, [step], { onDoubt: 'retry' }).code, 'conflict');
  t.is(readFileSync(join(place.dir, 'one.a'), 'utf8'), 'theirs\n');
  const conflict = events(place).find((line) => line['type'] === 'conflict.detected');
  const { oid } = conflict?.['theirs'] as { oid: string };
  t.is(place.git('cat-file', 'blob', oid), 'theirs');
  t.is(durable(place, ['recover']).code, 0);
});

test('an approved call is asked once and runs once; its answer is the same when the turn is run again', (t) => {
  const place = scratch(t);
  t.deepEqual(run(place, [{ gate: 'deploy' }, { die: true }]), {});
  const pending = (): string =>
    (JSON.parse(durable(place, ['approvals', '--json']).stdout) as { pending: { id: string }[] }).pending[0]
      ?.id ?? '';
  t.is(durable(place, ['approve', pending()]).code, 0);
  t.deepEqual(run(place, [{ gate: 'deploy' }, { gate: 'drop' }, { die: true }]), {});
  t.is(durable(place, ['reject', pending(), '--feedback', 'never']).code, 0);
  const steps = [{ gate: 'deploy' }, { gate: 'drop' }];
  t.deepEqual(run(place, [...steps, { die: true }]), {});
  t.deepEqual(run(place, steps).result, ['deploy', 'never']);
  t.deepEqual(effects(place), ['deploy']);
  const count = (type: string): number => events(place).filter((line) => line['type'] === type).length;
  t.deepEqual([count('approval.requested'), count('approval.consumed')], [2, 2]);
});

for (const [what, first, second] of [
  ['another transaction', { transaction: ['one', '1\n'] }, { transaction: ['two', '1\n'] }],
  ['a transaction for a call', { call: 'one' }, { transaction: ['one', '1\n'] }],
  ['another refusal', { deny: 'a' }, { deny: 'b' }],
  ['another text typed', { steer: 'a' }, { steer: 'b' }],
  ['another usage', { usage: 1 }, { usage: 2 }],
] as const) {
  test(`a function that does something else than before is refused at that place: ${what}`, (t) => {
    const place = scratch(t);
    t.deepEqual(run(place, [first, { die: true }]), {});
    t.is(run(place, [second]).code, 'replay-diverged');
  });
}

const SEED = 7;

test('a turn of random steps, killed at random places and run again until it ends, does everything exactly once', (t) => {
  t.log(`seed ${String(SEED)}`);
  const random = new Random(SEED);
  for (let round = 0; round < 4; round += 1) {
    const place = scratch(t);
    const steps = Array.from({ length: 8 }, (_, at) => randomStep(random, at));
    let runs = 0;
    for (; runs < 8; runs += 1) {
      const point = random.pick([
        'ref.move:rename:before',
        'ref.move:rename:after',
        'stage.publish:rename:after',
      ]);
      const faults = `${point}#${String(2 + random.below(24))}=kill`;
      if (hasEnded(run(place, steps, { faults, onDoubt: 'retry' }))) break;
    }
    if (runs === 8) {
      const last = run(place, steps, { onDoubt: 'retry' });
      t.true(hasEnded(last), JSON.stringify(last));
    }
    t.log(`round ${String(round)}: ${String(runs)} kills`);
    const all = events(place);
    const count = (field: string, value: string): number =>
      all.filter((line) => line[field] === value).length;
    const wanted = (kind: string): number => steps.filter((step) => kind in step).length;
    t.is(count('type', 'steering.received'), wanted('steer'));
    t.is(count('type', 'usage.recorded'), wanted('usage'));
    t.is(count('state', 'denied'), wanted('deny'));
    const gone = new Set(
      all.filter((line) => line['type'] === 'transaction.rolled-back').map((line) => line['transaction']),
    );
    const edits = all.filter((line) => line['purpose'] === 'edit' && !gone.has(line['transaction']));
    t.is(edits.length, wanted('transaction'));
    for (const step of steps) {
      if (!('transaction' in step)) continue;
      const [name, text] = step.transaction;
      for (const half of ['a', 'b']) t.is(readFileSync(join(place.dir, `${name}.${half}`), 'utf8'), text);
    }
    t.is(durable(place, ['verify']).code, 0);
    t.is(place.git('fsck', '--no-dangling'), '');
  }
});

/** Killed after its end was recorded, the turn is over, and says so. */
const hasEnded = ({ result, fields }: ReturnType<typeof run>): boolean =>
  result !== undefined || fields?.['state'] === 'finished';

type RandomStep =
  | { readonly transaction: readonly [string, string] }
  | { readonly steer: string }
  | { readonly usage: number }
  | { readonly deny: string }
  | { readonly checkpoint: string };

function randomStep(random: Random, at: number): RandomStep {
  const name = `n${String(at)}`;
  return random.pick<RandomStep>([
    { transaction: [name, `${name}\n`] },
    { transaction: [name, `${name}\n`] },
    { steer: name },
    { usage: at },
    { deny: name },
    { checkpoint: name },
  ]);
}
