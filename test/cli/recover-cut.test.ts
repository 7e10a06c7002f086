/** Repairs and restores that were themselves killed half way. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { document, events, last } from '../helpers/events.js';
import { differences, listing } from '../helpers/listing.js';
import { report, statesIn } from '../helpers/interrupted-run.js';
import { durable, startDurable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const REPAIR_CHILD = fileURLToPath(new URL('../helpers/repair-child.js', import.meta.url));
const workTree = (place: Scratch): string[] => listing(place.dir, ['.git']);

for (const [first, then] of [
  ['--roll-back', '--roll-forward'],
  ['--roll-forward', '--roll-back'],
  ['--roll-back', '--roll-back'],
  ['--roll-back', '--keep'],
] as const) {
  test(`${then} after a ${first} killed half way ends as it should, and prints what was written`, async (t) => {
    const place = scratch(t);
    const files = ['a', 'b', 'c', 'd'];
    for (const name of files) place.write(name, `${name} before\n`);
    const before = workTree(place);
    // A call that says what it writes, whose harness dies after two of four files, or a command that says nothing.
    const expected = first === '--roll-forward' ? half(place, files) : await spoil(t, place, files);
    const left = workTree(place);
    const killed = startDurable(t, place, ['recover', first], {
      env: { DURABLE_FAULTS: 'stage.publish:rename:after#1=kill' },
    });
    t.is((await killed.ended).signal, 'SIGKILL', killed.said);
    const between = workTree(place);
    t.is(differences(left, between).length, 2);
    const done = document(place, ['recover', then]);
    const wanted = { '--roll-back': before, '--roll-forward': left, '--keep': between }[then];
    t.deepEqual(workTree(place), wanted);
    const changed = { '--roll-back': expected, '--roll-forward': ['a'], '--keep': ['a'] }[then];
    t.deepEqual([done['restored'], done['removed']], [changed, []]);
    t.is(durable(place, ['verify']).code, 0);
    document(place, ['restore', String(done['checkpoint'])]);
    t.deepEqual(workTree(place), left);
  });
}

/** Killed under `run`, of whose command nobody knows what it writes. */
async function spoil(
  t: ExecutionContext,
  place: Scratch,
  files: readonly string[],
): Promise<readonly string[]> {
  const script = `for f in ${files.join(' ')}; do echo spoilt > $f; done; echo written; read -r _`;
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', script]);
  t.is(await running.line(), 'written');
  process.kill(running.pid, 'SIGKILL');
  await running.ended;
  running.child.stdin.end('\n');
  return files;
}

/** A transaction of a harness that was killed after the second file. */
function half(place: Scratch, files: readonly string[]): readonly string[] {
  const bytes = Buffer.from('after\n').toString('base64');
  const changes = join(place.top, 'changes.json');
  writeFileSync(changes, JSON.stringify(files.map((path) => ({ kind: 'write', path, bytes }))));
  const env = { DURABLE_FAULTS: 'stage.publish:rename:after#2=kill' };
  const killed = place.run(process.execPath, [REPAIR_CHILD, 'change', place.dir, changes], { env });
  if (killed.signal !== 'SIGKILL') throw new Error(`it was not killed: ${killed.stderr}`);
  // The roll forward was killed at the third, and the fourth was never written.
  return files.slice(0, 3);
}

for (const [action, repair] of [
  ['--roll-back', 'whole'],
  ['--roll-forward', 'whole'],
  ['--keep', 'whole'],
  ['--roll-back', 'killed'],
  ['--roll-forward', 'killed'],
] as const) {
  test(`a restore killed half way is interrupted work for every verb, and recover ${action} settles it (${repair})`, async (t) => {
    const place = scratch(t);
    const files = ['a', 'b', 'c', 'd'];
    for (const name of files) place.write(name, `${name} then\n`);
    const { checkpoint } = document(place, ['checkpoint']);
    const target = workTree(place);
    for (const name of files) place.write(name, `${name} now\n`);
    const start = workTree(place);
    const killed = startDurable(t, place, ['restore', String(checkpoint)], {
      env: { DURABLE_FAULTS: 'stage.publish:rename:after#2=kill' },
    });
    t.is((await killed.ended).signal, 'SIGKILL', killed.said);
    const mix = workTree(place);
    t.deepEqual([differences(start, mix).length, differences(mix, target).length], [4, 4]);

    t.is(durable(place, ['run', '--', 'touch', 'ran']).code, 3);
    t.is(durable(place, ['restore', String(checkpoint)]).code, 3);
    t.is(durable(place, ['lease', 'release']).code, 3);
    t.is(durable(place, ['status', '--exit-code']).code, 3);
    t.regex(durable(place, ['doctor']).stdout, /turn-interrupted .*restore/);
    t.deepEqual(statesIn(place), [
      ['a', 'written'],
      ['b', 'written'],
      ['c', 'untouched'],
      ['d', 'untouched'],
    ]);
    const [turn] = report(place).interrupted;
    t.deepEqual([turn?.gitStatusMatches, turn?.invocations], [true, []]);
    if (repair === 'killed') {
      const half = startDurable(
        t,
        place,
        ['recover', action === '--roll-back' ? '--roll-forward' : '--roll-back'],
        {
          env: { DURABLE_FAULTS: 'stage.publish:rename:after#1=kill' },
        },
      );
      t.is((await half.ended).signal, 'SIGKILL', half.said);
      t.is(durable(place, ['run', '--', 'touch', 'ran']).code, 3);
    }
    const before = workTree(place);
    const done = document(place, ['recover', action, '--turn', String(turn?.turn)]);
    t.deepEqual(workTree(place), { '--roll-back': start, '--roll-forward': target, '--keep': mix }[action]);
    const half = repair === 'killed';
    const moved = {
      '--roll-back': half ? ['a', 'b', 'c'] : ['a', 'b'],
      '--roll-forward': half ? ['a', 'c', 'd'] : ['c', 'd'],
      '--keep': [],
    }[action];
    t.deepEqual([done['turn'], done['restored'], done['removed']], [turn?.turn, moved, []]);
    t.deepEqual(report(place).interrupted, []);
    document(place, ['restore', String(done['checkpoint'])]);
    t.deepEqual(workTree(place), before);
    t.is(durable(place, ['run', '--', 'true']).code, 0);
    t.is(durable(place, ['verify']).code, 0);
  });
}

test('run --recover settles a restore that was killed, and its turn has a task of its own', async (t) => {
  const place = scratch(t);
  const { checkpoint } = document(place, ['checkpoint']);
  place.write('README', 'now\n');
  const killed = startDurable(t, place, ['restore', String(checkpoint)], {
    env: { DURABLE_FAULTS: 'stage.publish:rename:before=kill' },
  });
  t.is((await killed.ended).signal, 'SIGKILL', killed.said);
  t.is(durable(place, ['run', '--recover', 'roll-forward', '--', 'grep', '-qx', 'hello', 'README']).code, 0);
  t.false(String(last(events(place), 'turn.started')?.['task']).startsWith('standing-'));
});
