import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { document, events, last, type Line } from '../helpers/events.js';
import { differences, listing } from '../helpers/listing.js';
import { interrupted, leaseIn } from '../helpers/interrupted-run.js';
import { processesNaming, stateOf, until } from '../helpers/processes.js';
import { durable, startDurable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const REPAIR_CHILD = fileURLToPath(new URL('../helpers/repair-child.js', import.meta.url));

interface Interrupted {
  readonly turn: string;
  readonly task: string;
  readonly objective: string;
  readonly invocations: readonly Line[];
  readonly files: readonly Line[];
  readonly orphans: readonly { readonly pid: number }[];
  readonly gitStatusMatches: boolean;
}

interface Report {
  readonly interrupted: readonly Interrupted[];
}

/** Of a repair: what it left alone, and what no checkpoint holds. */
const UNCOVERED = ['kept', 'uncovered', 'uncoveredCount'] as const;

/** Tickets of dead processes, which any verb may remove. */
const NO_RECORD = ['.git/durable/tickets'];
const workTree = (place: Scratch): string[] => listing(place.dir, ['.git']);
const read = (place: Scratch, path: string): string => readFileSync(join(place.dir, path), 'utf8');
const report = (place: Scratch, ...words: readonly string[]): Report =>
  document<Report>(place, ['recover', ...words], { codes: [0, 3] });

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

const statesIn = (place: Scratch): unknown[] =>
  (report(place).interrupted[0]?.files ?? []).map(({ path, state }) => [path, state]);

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
