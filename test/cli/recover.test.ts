import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { document, events, last, type Line } from '../helpers/events.js';
import { differences, listing } from '../helpers/listing.js';
import { interrupted, leaseIn, report, statesIn, type Report } from '../helpers/interrupted-run.js';
import { processesNaming, stateOf, until } from '../helpers/processes.js';
import { durable, startDurable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

/** Of a repair: what it left alone, and what no checkpoint holds. */
const UNCOVERED = ['kept', 'uncovered', 'uncoveredCount'] as const;

/** Tickets of dead processes, which any verb may remove. */
const NO_RECORD = ['.git/durable/tickets'];
const workTree = (place: Scratch): string[] => listing(place.dir, ['.git']);
const read = (place: Scratch, path: string): string => readFileSync(join(place.dir, path), 'utf8');

test('recover --json has the fields of the contract, leaves with 3, and reading changes nothing', async (t) => {
  const place = scratch(t);
  await interrupted(t, place);
  await until('the keeper has recorded it', () => last(events(place), 'turn.interrupted') !== undefined);
  await until('the keeper is gone', () => processesNaming(place.dir).length === 0);
  const before = listing(place.dir, NO_RECORD);
  const ran = durable(place, ['recover', '--json']);
  t.deepEqual([ran.code, ran.stderr], [3, '']);
  t.deepEqual(differences(before, listing(place.dir, NO_RECORD)), []);
  const [turn] = (JSON.parse(ran.stdout) as Report).interrupted;
  if (turn === undefined) throw new Error('nothing was interrupted');
  t.deepEqual(Object.keys(turn), [
    ...[
      'turn',
      'task',
      'objective',
      'agent',
      'startedAt',
      'lastEventAt',
      'detectedBy',
      'invocations',
      'files',
    ],
    ...['approvals', 'orphans', 'gitStatusMatches', 'drift', 'uncovered', 'uncoveredCount', 'lost'],
  ]);
  t.deepEqual(Object.keys(turn.invocations[0] ?? {}), ['id', 'tool', 'state', 'summary']);
  t.deepEqual(Object.keys(turn.files[0] ?? {}), ['path', 'state', 'before', 'expected', 'now']);
  t.deepEqual([turn.objective, turn.invocations[0]?.['state']], ['rename it', 'in-doubt']);
  const states = turn.files.map((file) => [file['path'], file['state']]);
  t.deepEqual(states.slice(0, 2), [
    ['README', 'changed'],
    ['made', 'changed'],
  ]);
  t.true(turn.gitStatusMatches);
});

test('a new turn on interrupted work leaves with 3, and runs nothing', async (t) => {
  const place = scratch(t);
  await interrupted(t, place);
  const before = workTree(place);
  const ran = durable(place, ['run', '--', 'touch', 'ran']);
  t.is(ran.code, 3);
  t.regex(
    ran.stderr,
    /^git-durable: turn \S+ of task \S+ was interrupted \('rename it'\); type 'git durable recover'\n$/,
  );
  t.deepEqual(workTree(place), before);
  t.is(durable(place, ['status', '--exit-code']).code, 3);
  t.is(durable(place, ['status']).code, 0);
});

test('roll back puts every file of the turn back, the next run needs no help, and the repair can be undone', async (t) => {
  const place = scratch(t);
  const before = workTree(place);
  await interrupted(t, place);
  const spoilt = workTree(place);
  const done = document(place, ['recover', '--roll-back']);
  t.deepEqual(Object.keys(done), ['turn', 'action', 'restored', 'removed', 'checkpoint', ...UNCOVERED]);
  t.deepEqual([done['action'], done['restored'], done['removed']], ['roll-back', ['README'], ['made']]);
  t.deepEqual(workTree(place), before);
  t.deepEqual(report(place).interrupted, []);
  t.is(durable(place, ['run', '--', 'true']).code, 0);
  document(place, ['restore', String(done['checkpoint'])]);
  t.deepEqual(workTree(place), spoilt);
  t.is(durable(place, ['verify']).code, 0);
});

test('keep changes no byte of the work tree and ends the interruption; done twice it is done', async (t) => {
  const place = scratch(t);
  await interrupted(t, place);
  const before = workTree(place);
  t.is(document(place, ['recover', '--keep'])['action'], 'keep');
  t.deepEqual(workTree(place), before);
  const again = document(place, ['recover', '--keep']);
  const nothing = { restored: [], removed: [], checkpoint: null, kept: [], uncovered: [], uncoveredCount: 0 };
  t.deepEqual(again, { turn: null, action: 'keep', ...nothing });
  t.is(durable(place, ['recover']).code, 0);
});

test('run --recover repairs first and goes on in the same task', async (t) => {
  const place = scratch(t);
  await interrupted(t, place);
  const [turn] = report(place).interrupted;
  const ran = durable(place, ['run', '--recover', 'roll-back', '--', 'cat', 'README']);
  t.deepEqual([ran.code, ran.stdout], [0, 'hello\n']);
  t.regex(
    ran.stderr,
    /^git-durable: turn \S+ is recovered \(roll-back\); undo: git durable restore [0-9a-f]+\n$/,
  );
  t.is(last(events(place), 'turn.finished')?.['task'], turn?.task);
});

test('two actions at once, --all with an action, and an unknown turn are wrong usage', async (t) => {
  const place = scratch(t);
  await interrupted(t, place);
  for (const words of [
    ['--keep', '--roll-back'],
    ['--all', '--keep'],
    ['--keep', '--turn', 'zzzz'],
    ['--turn', 'zzzz'],
  ]) {
    const ran = durable(place, ['recover', ...words]);
    t.deepEqual([ran.code, ran.stdout], [2, ''], words.join(' '));
  }
  t.is(report(place).interrupted.length, 1);
});

test('recover speaks of this work tree, with --all of every one', async (t) => {
  const place = scratch(t);
  const linked = join(place.top, 'linked tree');
  place.git('worktree', 'add', '-q', '--detach', linked);
  await interrupted(t, place, { cwd: linked });
  t.deepEqual(report(place).interrupted, []);
  t.is(report(place, '--all').interrupted.length, 1);
  t.is(durable(place, ['run', '--', 'true']).code, 0);
  t.is(durable(place, ['recover'], { cwd: linked }).code, 3);
});

test('a live but stuck holder is not taken over by time, but when it is told to be, its processes end first', async (t) => {
  const place = scratch(t);
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', 'echo $$; read -r _; echo late > README']);
  const pid = Number(await running.line());
  process.kill(running.pid, 'SIGSTOP');
  t.is(durable(place, ['recover', '--keep']).code, 0);
  t.is(durable(place, ['run', '--', 'true']).code, 4);
  const done = durable(place, ['recover', '--take-over']);
  t.is(done.code, 0, done.stderr);
  t.true(['', 'Z'].includes(stateOf(pid)));
  t.is((await running.ended).signal, 'SIGKILL');
  t.is(read(place, 'README'), 'hello\n');
  t.is(durable(place, ['run', '--', 'true']).code, 0);
});

test('what a dead turn left running is named by recover and status', async (t) => {
  const place = scratch(t);
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', 'sleep 300 & echo $!; read -r _']);
  const orphan = Number(await running.line());
  t.teardown(() => {
    if (stateOf(orphan) !== '') process.kill(orphan, 'SIGKILL');
  });
  process.kill(running.pid, 'SIGKILL');
  await running.ended;
  running.child.stdin.end('\n');
  t.true(report(place).interrupted[0]?.orphans.some((one) => one.pid === orphan));
  t.true(Number(document(place, ['status'])['orphans']) >= 1);
});

test('uninstall is refused with 4 under an open turn; after a crash it may go, and a later init still shows the turn', async (t) => {
  const place = scratch(t);
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', 'echo began; read -r _']);
  t.is(await running.line(), 'began');
  const { workspace } = document(place, ['status']);
  for (const words of [[], ['--purge']]) t.is(durable(place, ['uninstall', ...words]).code, 4);
  t.is(document(place, ['status'])['workspace'], workspace);
  process.kill(running.pid, 'SIGKILL');
  await running.ended;
  running.child.stdin.end('\n');
  await until('recorded', () => last(events(place), 'turn.interrupted') !== undefined);
  t.is(durable(place, ['uninstall']).code, 0);
  document(place, ['init']);
  t.is(report(place).interrupted.length, 1);
});

test('uninstall --purge after turns leaves no ref, no file and no setting of ours; only unreachable objects stay', (t) => {
  const place = scratch(t);
  const own = (): string[] => listing(join(place.dir, '.git'), ['objects']);
  const before = own();
  document(place, ['init']);
  t.is(durable(place, ['run', '--', 'sh', '-c', 'echo made > made']).code, 0);
  document(place, ['checkpoint']);
  place.git('pack-refs', '--all');
  place.git('update-ref', 'refs/notes/durable', 'HEAD');
  const done = document(place, ['uninstall', '--purge']);
  t.deepEqual(done['residue'], []);
  t.is(place.git('for-each-ref', 'refs/durable', 'refs/durable-remote', 'refs/notes/durable'), '');
  t.deepEqual(
    own().filter((line) => !/^(packed-refs|refs\/heads\/main) /.test(line)),
    before.filter((line) => !/^(packed-refs|refs\/heads\/main) /.test(line)),
  );
  place.git('gc', '-q', '--prune=now');
  t.is(place.git('count-objects', '-v').split('\n')[0], 'count: 0');
  t.is(place.run('sh', ['-c', 'ls .git/objects/pack/*.keep']).stdout, '');
  t.is(place.git('fsck', '--full', '--strict', '--unreachable'), '');
});

const sceneOf = (place: Scratch): Line | undefined =>
  events(place).find((line) => line['type'] === 'checkpoint.taken' && line['reason'] === 'after-death');

/** A person types after the crash: into a file the turn changed, a new one, and one that the turn left alone. */
function typed(place: Scratch): void {
  place.write('README', 'mine\n');
  place.write('new', 'mine too\n');
  place.write('other', 'and mine\n');
}

for (const [who, detect] of [
  ['the keeper', async (place: Scratch) => until('it has looked', () => sceneOf(place) !== undefined)],
  ['a refused run, the keeper being dead', (place: Scratch) => durable(place, ['run', '--', 'true']).code],
  [
    'a refused restore, the keeper being dead',
    (place: Scratch) =>
      durable(place, ['restore', String(events(place).find((e) => 'checkpoint' in e)?.['checkpoint'])]).code,
  ],
] as const) {
  test(`what a person changes after ${who} saw the death is foreign: no roll back takes it, and it is named`, async (t) => {
    const place = scratch(t);
    place.write('other', 'as committed\n');
    place.git('add', 'other');
    place.git('commit', '-q', '-m', 'other');
    await interrupted(t, place, { keeper: who === 'the keeper' ? 'lives' : 'dies' });
    await detect(place);
    t.truthy(sceneOf(place), 'a scene was kept');
    typed(place);
    t.deepEqual(statesIn(place), [
      ['README', 'foreign'],
      ['made', 'changed'],
      ['new', 'foreign'],
      ['other', 'foreign'],
    ]);
    t.regex(
      durable(place, ['recover']).stdout,
      /foreign: by somebody else, or by a process that the turn left/,
    );
    const done = durable(place, ['recover', '--roll-back', '--json']);
    t.is(done.code, 0, done.stderr);
    t.deepEqual(
      [...done.stderr.matchAll(/kept '(\w+)': somebody else, or a process/g)].map(([, path]) => path),
      ['README', 'new', 'other'],
    );
    t.deepEqual((JSON.parse(done.stdout) as Line)['removed'], ['made']);
    t.deepEqual(
      ['README', 'new', 'other'].map((path) => read(place, path)),
      ['mine\n', 'mine too\n', 'and mine\n'],
    );
  });
}

test('where nobody saw the death, what changed a TTL after the last heartbeat is foreign, and the rest is said to be in doubt', async (t) => {
  const place = scratch(t);
  place.git('config', 'durable.ttl', '1');
  await interrupted(t, place, { keeper: 'dies' });
  const early = durable(place, ['recover']);
  t.regex(early.stdout, /made +new\n/);
  t.regex(early.stdout, /changed: by the turn, or by somebody between its death and the first look/);
  // A refused start looks too, but it came later than the keeper would have: the doubt stays.
  t.is(durable(place, ['run', '--', 'true']).code, 3);
  t.regex(durable(place, ['recover']).stdout, /changed: by the turn, or by somebody between/);
  const heartbeat = Date.parse(leaseIn(place).renewedAt);
  await until('a TTL has passed', () => {
    place.write('README', 'mine\n');
    return statSync(join(place.dir, 'README')).ctimeMs > heartbeat + 1000;
  });
  t.deepEqual(statesIn(place), [
    ['README', 'foreign'],
    ['made', 'changed'],
  ]);
  t.is(durable(place, ['recover', '--roll-back']).code, 0);
  t.is(read(place, 'README'), 'mine\n');
  t.false(existsSync(join(place.dir, 'made')));
});
