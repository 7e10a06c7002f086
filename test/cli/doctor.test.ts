import { existsSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { document, events, last } from '../helpers/events.js';
import { processesNaming, stateOf, until } from '../helpers/processes.js';
import { durable, startDurable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Diagnosis {
  readonly problems: readonly { readonly code: string; readonly detail: string; readonly fix: string }[];
}

const problems = (place: Scratch, ...words: readonly string[]): Diagnosis['problems'] =>
  document<Diagnosis>(place, ['doctor', ...words], { codes: [0, 3] }).problems;

test('nothing is broken in a repository that works', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['run', '--', 'true']).code, 0);
  const ran = durable(place, ['doctor']);
  t.is(ran.code, 0);
  t.regex(ran.stdout, /^nothing is broken\n[^\n]*core\.fsync[^\n]*\n$/);
  place.git('config', 'core.fsync', 'committed,reference');
  t.is(durable(place, ['doctor']).stdout, 'nothing is broken\n');
});

for (const verb of [
  'status',
  'log',
  'verify',
  'checkpoints',
  'approvals',
  'doctor',
  'recover',
  'checkpoint',
]) {
  test(`the lock that a killed append left is gone after one command, be it ${verb}`, async (t) => {
    const place = scratch(t);
    t.is(durable(place, ['checkpoint']).code, 0);
    const running = startDurable(t, place, ['checkpoint'], {
      env: { DURABLE_FAULTS: 'ref.move:rename:before=kill' },
    });
    await running.ended;
    t.not(locksIn(place), '');
    t.is(durable(place, [verb]).code, 0);
    t.is(locksIn(place), '');
    t.is(durable(place, ['checkpoint']).code, 0);
  });
}

const locksIn = (place: Scratch): string => place.run('find', ['.git/refs', '-name', '*.lock']).stdout;

for (const gone of ['its lock', 'its lock and its ticket']) {
  test(`the new value that a killed append left beside a ref is gone after one command, though ${gone} went before it`, async (t) => {
    const place = scratch(t);
    t.is(durable(place, ['checkpoint']).code, 0);
    const running = startDurable(t, place, ['checkpoint'], {
      env: { DURABLE_FAULTS: 'ref.move:rename:before=kill' },
    });
    await running.ended;
    const [value = '', ...locks] = locksIn(place)
      .trim()
      .split('\n')
      .sort((a, b) => b.length - a.length);
    t.regex(value, /\.[a-z2-7]{26}\.lock$/);
    for (const lock of locks) rmSync(join(place.dir, lock));
    if (gone.includes('ticket')) rmSync(join(place.dir, '.git/durable/tickets'), { recursive: true });
    t.is(durable(place, ['status']).code, 0);
    t.is(locksIn(place), '');
    t.is(durable(place, ['checkpoint']).code, 0);
  });
}

test('the new value of an append that is under way is not swept from under it', async (t) => {
  const place = scratch(t);
  t.is(durable(place, ['checkpoint']).code, 0);
  const running = startDurable(t, place, ['checkpoint'], {
    env: { DURABLE_FAULTS: 'ref.move:rename:before=stop' },
  });
  await until('it is stopped', () => stateOf(running.pid) === 'T');
  const before = locksIn(place);
  t.regex(before, /\.[a-z2-7]{26}\.lock\n/);
  t.is(durable(place, ['status']).code, 0);
  t.is(locksIn(place), before);
  process.kill(running.pid, 'SIGCONT');
  t.is((await running.ended).code, 0, running.said);
});

test('a lock that names nobody is named and never touched', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['checkpoint']).code, 0);
  const lock = join(
    place.dir,
    '.git',
    `${place.git('for-each-ref', '--format=%(refname)', 'refs/durable/tasks')}.lock`,
  );
  writeFileSync(lock, '');
  t.is(problems(place, '--fix')[0]?.code, 'foreign-lock');
  t.true(existsSync(lock));
});

test("a lock of git's own in the git dir is named once it is old, and never touched", (t) => {
  const place = scratch(t);
  for (const name of ['index.lock', 'HEAD.lock', 'packed-refs.lock', 'config.lock']) {
    const lock = join(place.dir, '.git', name);
    writeFileSync(lock, '');
    t.deepEqual(problems(place), [], `${name} of a git that may be at work`);
    const before = new Date(Date.now() - 3_600_000);
    utimesSync(lock, before, before);
    const [found] = problems(place, '--fix');
    t.is(found?.code, 'foreign-lock');
    t.true(found?.detail.includes(lock));
    t.true(existsSync(lock));
    rmSync(lock);
  }
});

test('a damaged newest event: log and status still tell the rest, verify leaves with 5, --fix sets it aside', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['run', '--', 'true']).code, 0);
  const before = events(place);
  const ref = place.git('for-each-ref', '--format=%(refname)', 'refs/durable/tasks');
  const tip = place.git('rev-parse', ref);
  rmSync(join(place.dir, '.git/durable/journal', tip), { force: true });
  const loose = join(place.dir, '.git/objects', tip.slice(0, 2), tip.slice(2));
  rmSync(loose);
  writeFileSync(loose, '');
  const verified = durable(place, ['verify']);
  t.is(verified.code, 5);
  t.regex(verified.stderr, new RegExp(tip));
  t.is(events(place).length, before.length - 1);
  t.not(problems(place).length, 0);
  const status = durable(place, ['status', '--json', '--exit-code']);
  t.is(status.code, 3);
  t.regex(status.stderr, /^git-durable: the ledger of task \S+ is damaged at /);
  for (const verb of ['status', 'approvals', 'recover']) t.is(durable(place, [verb]).code, 0, verb);
  durable(place, ['doctor', '--fix']);
  t.is(durable(place, ['verify']).code, 0);
  t.is(events(place).at(-1)?.['type'], 'git.observed');
});

test('interrupted work is a problem whose mending is a decision', async (t) => {
  const place = scratch(t);
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', 'echo $$; read -r _']);
  const pid = Number(await running.line());
  process.kill(running.pid, 'SIGKILL');
  process.kill(pid, 'SIGKILL');
  await running.ended;
  await until('the command is gone', () => ['', 'Z'].includes(stateOf(pid)));
  const [found] = problems(place, '--fix');
  t.deepEqual([found?.code, found?.fix], ['turn-interrupted', 'git durable recover']);
});

test('a damaged newest event is named on standard error by every verb that reads', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['run', '--', 'true']).code, 0);
  const checkpoint = String(
    events(place).find((line) => line['type'] === 'checkpoint.taken')?.['checkpoint'],
  );
  const tip = place.git('rev-parse', place.git('for-each-ref', '--format=%(refname)', 'refs/durable/tasks'));
  for (const path of [`.git/objects/${tip.slice(0, 2)}/${tip.slice(2)}`, `.git/durable/journal/${tip}`])
    rmSync(join(place.dir, path), { force: true });
  for (const words of [
    ...[
      ['status'],
      ['recover'],
      ['log'],
      ['log', '-n', '1'],
      ['log', '-n', '0'],
      ['log', '--type', 'task.opened'],
    ],
    ...[['lease'], ['approvals'], ['checkpoints'], ['diff', checkpoint], ['show', checkpoint], ['show', tip]],
  ]) {
    const { stderr } = durable(place, words);
    t.is(stderr.split(`is damaged at ${tip}`).length, 2, `${words.join(' ')}: ${stderr}`);
  }
});

type Damage = readonly [name: string, bytes: (place: Scratch) => string];

const DAMAGES: readonly Damage[] = [
  ['empty', () => ''],
  ['torn', (place) => place.git('rev-parse', 'HEAD').slice(0, 17)],
  ['garbage', () => 'not an id\n'],
  ["at a commit of the user's", (place) => `${place.git('rev-parse', 'HEAD')}\n`],
  ['at a blob', (place) => `${place.git('rev-parse', 'HEAD:README')}\n`],
];

const DAMAGED: readonly (readonly [kind: 'ledger' | 'lease', folder: string, ...Damage])[] = DAMAGES.map(
  // Each damage once for each kind would be minutes: what the two have in common is read by the same code.
  ([name, bytes], index) =>
    index % 2 === 0 ? ['ledger', 'tasks', name, bytes] : ['lease', 'leases', name, bytes],
);

for (const [kind, folder, name, bytes] of DAMAGED) {
  test(`a ref of a ${kind} that is ${name} is named by every verb that reads, hides nothing, and doctor --fix mends it`, async (t) => {
    const place = scratch(t);
    const running = startDurable(t, place, [
      'run',
      '--',
      'sh',
      '-c',
      'echo written > README; echo on; read -r _',
    ]);
    t.is(await running.line(), 'on');
    process.kill(running.pid, 'SIGKILL');
    await running.ended;
    running.child.stdin.end('\n');
    await until('the keeper is gone', () => processesNaming(place.dir).length === 0);
    const before = events(place);
    const ref = place.git('for-each-ref', '--format=%(refname)', `refs/durable/${folder}`);
    const value = place.git('rev-parse', ref);
    writeFileSync(join(place.dir, '.git', ref), bytes(place));

    const named = kind === 'ledger' ? /the ledger of task \S+ is damaged at / : /'refs\/durable\/leases/;
    const readers = [['status'], ['recover'], ['lease'], ['approvals']];
    // These read no lease.
    if (kind === 'ledger') readers.push(['log'], ['checkpoints']);
    for (const words of readers) {
      const ran = durable(place, words);
      t.regex(ran.stderr, named, words.join(' '));
      t.notRegex(ran.stderr, /defect/);
      t.not(ran.stdout, '', words.join(' '));
    }
    t.deepEqual(events(place), before);
    t.is(document<{ interrupted: unknown[] }>(place, ['recover'], { codes: [3] }).interrupted.length, 1);
    t.is(durable(place, ['verify']).code, 5);
    t.is(durable(place, ['run', '--', 'touch', 'ran']).code, kind === 'ledger' ? 3 : 1);
    if (kind === 'lease')
      t.is(problems(place).filter(({ fix }) => fix === 'git durable doctor --fix').length, 1);

    t.deepEqual(
      problems(place, '--fix').map(({ code }) => code),
      ['turn-interrupted'],
    );
    t.is(durable(place, ['verify']).code, 0);
    const after = events(place);
    t.deepEqual(after.slice(0, before.length), before);
    t.regex(String(last(after, 'git.observed')?.['what']), /newest/);
    if (kind === 'lease') t.is(place.git('rev-parse', ref), value);
    t.is(durable(place, ['recover', '--roll-back']).code, 0);
    t.is(durable(place, ['run', '--', 'grep', '-qx', 'hello', 'README']).code, 0);
    t.is(place.git('fsck', '--strict', '--no-dangling'), '');
  });
}

test('a torn ref of contents is found again by doctor --fix, with what was kept after the newest event', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['run', '--', 'sh', '-c', 'echo 2 > README']).code, 0);
  t.is(durable(place, ['run', '--', 'sh', '-c', 'echo 3 > README']).code, 0);
  const refs = place.git('for-each-ref', '--format=%(refname)', 'refs/durable/checkpoints').split('\n');
  for (const ref of refs) {
    const value = place.git('rev-parse', ref);
    for (const torn of ['', value.slice(0, 20)]) {
      writeFileSync(join(place.dir, '.git', ref), torn);
      t.is(durable(place, ['verify']).code, 5);
      t.deepEqual(
        problems(place).map(({ code, fix }) => [code, fix]),
        [['ref-damaged', 'git durable doctor --fix']],
      );
      t.deepEqual(problems(place, '--fix'), []);
      t.is(place.git('rev-parse', ref), value);
    }
  }
  t.is(durable(place, ['verify']).code, 0);
  t.is(events(place).filter(({ type }) => type === 'git.observed').length, refs.length * 2);
  t.is(durable(place, ['run', '--', 'true']).code, 0);
});

test('contents that are lost with their ref are named once the ref is mended', (t) => {
  const place = scratch(t);
  const first = document<{ checkpoint: string }>(place, ['checkpoint']).checkpoint;
  place.write('README', '2\n');
  const second = document<{ checkpoint: string }>(place, ['checkpoint']).checkpoint;
  const ref = place.git('for-each-ref', '--format=%(refname)', 'refs/durable/checkpoints');
  for (const path of [`objects/${second.slice(0, 2)}/${second.slice(2)}`, `durable/journal/${second}`])
    rmSync(join(place.dir, '.git', path));
  writeFileSync(join(place.dir, '.git', ref), '');
  const left = problems(place, '--fix');
  t.is(place.git('rev-parse', ref), first);
  t.deepEqual(
    left.map(({ code }) => code),
    ['contents-missing'],
  );
  t.true(left[0]?.detail.includes(second));
});
