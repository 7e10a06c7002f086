import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { hasCode, openRepository, systemHost, type Repository, type Turn } from '../../lib/index.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { walk } from '../helpers/turn-place.js';

const open = (place: Scratch): Promise<Repository> =>
  openRepository(place.dir, { ...systemHost(), env: place.env });
const READ = 'one\ntwo\nthree\n';
const MINE = 'one\nTWO\nthree\n';

const edit = (turn: Turn, path: string, bytes = MINE): Promise<void> =>
  turn.invoke({ tool: 'edit', args: path, paths: [{ path, expected: Buffer.from(bytes) }] }, () => undefined);

/** What somebody did to `file` between the agent's read and its write, and what the record must call it. */
const CHANGES: Readonly<Record<string, (file: string) => void>> = {
  edited: (file) => {
    writeFileSync(file, 'theirs\n');
  },
  deleted: (file) => {
    rmSync(file);
  },
  chmodded: (file) => {
    chmodSync(file, 0o755);
  },
  'made a link': (file) => {
    rmSync(file);
    symlinkSync('README', file);
  },
  'made a folder': (file) => {
    rmSync(file);
    mkdirSync(file);
    writeFileSync(join(file, 'inside'), 'theirs\n');
  },
};

for (const [what, change] of Object.entries(CHANGES)) {
  for (const how of ['call', 'transaction'] as const) {
    test(`a path that somebody ${what} since it was read: a ${how} is refused, both sides are kept, keep-mine can be undone`, async (t) => {
      const place = scratch(t);
      place.write('file', READ);
      const repository = await open(place);
      const turn = await repository.startTurn({ objective: 'edit', keeper: false });
      turn.read('file');
      change(join(place.dir, 'file'));
      const theirs = walk(place.dir);
      const write =
        how === 'call'
          ? edit(turn, 'file')
          : turn.transaction([{ kind: 'write', path: 'file', bytes: Buffer.from(MINE) }]);
      const error = await t.throwsAsync(write);
      t.true(hasCode(error, 'conflict') && error.fields.conflict !== null, String(error));
      t.deepEqual(walk(place.dir), theirs);
      await turn.finish({ outcome: 'completed' });
      const [listed] = await repository.conflicts();
      const id = listed?.conflict.id ?? '';
      const compared = await repository.compareConflict(id);
      t.deepEqual([compared.base.text, compared.mine.text], [READ, MINE]);
      t.regex(compared.diff.mine ?? '', /^-two\n\+TWO\n/m);
      t.deepEqual(compared.now, compared.theirs);
      const done = await repository.resolveConflict(id, { choice: 'keep-mine', by: 'someone' });
      t.is(readFileSync(join(place.dir, 'file'), 'utf8'), MINE);
      t.is((await repository.status()).conflicts, 0);
      await repository.restore({ checkpoint: done.checkpoint ?? '' });
      t.deepEqual(walk(place.dir), theirs);
      for (const task of repository.tasks()) t.true((await repository.verify(task)).ok);
      t.is(place.git('fsck', '--strict', '--no-dangling'), '');
      await repository.close();
    });
  }
}

for (const how of ['call', 'transaction'] as const) {
  for (const isRead of [true, false]) {
    test(`a pipe at a path that was ${isRead ? '' : 'never '}read: a ${how} is refused and recorded, and the path waits for a decision`, async (t) => {
      const place = scratch(t);
      const repository = await open(place);
      const turn = await repository.startTurn({ objective: 'edit', keeper: false });
      if (isRead) turn.read('file');
      place.run('mkfifo', ['file']);
      const write = () =>
        how === 'call'
          ? edit(turn, 'file')
          : turn.transaction([{ kind: 'write', path: 'file', bytes: Buffer.from(MINE) }]);
      await t.throwsAsync(write(), { code: 'conflict' });
      await t.throwsAsync(write(), { code: 'conflict-open' });
      const [listed] = await repository.conflicts();
      const id = listed?.conflict.id ?? '';
      t.like(listed?.conflict.detected.event, { path: 'file', base: null, theirs: 'special' });
      t.is((await repository.compareConflict(id)).mine.text, MINE);
      const mine = { choice: 'keep-mine', by: 'someone' } as const;
      await t.throwsAsync(turn.resolveConflict(id, mine), { code: 'path-refused', message: /remove it/ });
      rmSync(join(place.dir, 'file'));
      await turn.resolveConflict(id, mine);
      t.is(readFileSync(join(place.dir, 'file'), 'utf8'), MINE);
      await turn.finish({ outcome: 'completed' });
      await repository.close();
    });
  }
}

for (const [what, bytes] of [
  ['text', READ],
  ['no text', Buffer.from([0, 255, 1])],
] as const) {
  test(`a change of the mode alone is shown as that, of a file that is ${what}`, async (t) => {
    const place = scratch(t);
    writeFileSync(join(place.dir, 'file'), bytes);
    const repository = await open(place);
    const turn = await repository.startTurn({ objective: 'edit', keeper: false });
    turn.read('file');
    chmodSync(join(place.dir, 'file'), 0o755);
    await t.throwsAsync(edit(turn, 'file'), { code: 'conflict' });
    const [listed] = await repository.conflicts();
    const { diff } = await repository.compareConflict(listed?.conflict.id ?? '');
    t.is(diff.theirs, 'old mode 100644\nnew mode 100755\n');
    await turn.finish({ outcome: 'completed' });
    await repository.close();
  });
}

test('a path that somebody created since it was found missing is a conflict', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const turn = await repository.startTurn({ objective: 'create', keeper: false });
  t.is(turn.read('new'), null);
  place.write('new', 'theirs\n');
  await t.throwsAsync(edit(turn, 'new'), { code: 'conflict' });
  const [listed] = await repository.conflicts();
  const { base, theirs, mine, diff } = await repository.compareConflict(listed?.conflict.id ?? '');
  t.deepEqual([base.image, theirs.text, mine.text], [null, 'theirs\n', MINE]);
  t.is(diff.theirs, '+theirs\n');
  await turn.finish({ outcome: 'completed' });
  await repository.close();
});

test('what the turn itself wrote is no external change', async (t) => {
  const place = scratch(t);
  place.write('file', READ);
  const repository = await open(place);
  const turn = await repository.startTurn({ objective: 'edit', keeper: false });
  turn.read('file');
  for (const bytes of ['first\n', 'second\n']) {
    await turn.invoke(
      { tool: 'edit', args: bytes, paths: [{ path: 'file', expected: Buffer.from(bytes) }] },
      () => {
        place.write('file', bytes);
      },
    );
    await turn.transaction([
      { kind: 'write', path: 'file', bytes: Buffer.from(`${bytes}more\n`) },
      { kind: 'chmod', path: 'file', executable: true },
    ]);
  }
  t.is(readFileSync(join(place.dir, 'file'), 'utf8'), 'second\nmore\n');
  t.deepEqual(await repository.conflicts(), []);
  await turn.finish({ outcome: 'completed' });
  await repository.close();
});

test('an open conflict survives the process and blocks that path only, in later turns of other tasks too', async (t) => {
  const place = scratch(t);
  place.write('file', READ);
  place.write('other', READ);
  const first = await open(place);
  const turn = await first.startTurn({ objective: 'edit', keeper: false });
  turn.read('file');
  place.write('file', 'theirs\n');
  await t.throwsAsync(edit(turn, 'file'), { code: 'conflict' });
  await t.throwsAsync(edit(turn, 'file'), { code: 'conflict-open' });
  await turn.finish({ outcome: 'completed' });
  await first.close();

  const second = await open(place);
  t.is((await second.status()).conflicts, 1);
  const later = await second.startTurn({ objective: 'go on', task: 'another', keeper: false });
  await t.throwsAsync(edit(later, 'file'), { code: 'conflict-open' });
  await t.throwsAsync(later.transaction([{ kind: 'delete', path: 'file' }]), { code: 'conflict-open' });
  await t.throwsAsync(later.transaction([{ kind: 'rename', from: 'other', to: 'file' }]), {
    code: 'conflict-open',
  });
  await t.throwsAsync(edit(later, 'file/below'), { code: 'conflict-open' });
  await later.transaction([{ kind: 'write', path: 'other', bytes: Buffer.from('written\n') }]);
  t.is(readFileSync(join(place.dir, 'other'), 'utf8'), 'written\n');
  const [listed] = await second.conflicts();
  await second.resolveConflict(listed?.conflict.id ?? '', { choice: 'use-latest', by: 'someone' });
  t.is(readFileSync(join(place.dir, 'file'), 'utf8'), 'theirs\n');
  await later.transaction([{ kind: 'write', path: 'file', bytes: Buffer.from('after\n') }]);
  t.is(readFileSync(join(place.dir, 'file'), 'utf8'), 'after\n');
  await later.finish({ outcome: 'completed' });
  await second.close();
});

test('of many answers to one conflict one counts, and the others are told whose', async (t) => {
  const place = scratch(t);
  place.write('file', READ);
  const repository = await open(place);
  const turn = await repository.startTurn({ objective: 'edit', keeper: false });
  turn.read('file');
  place.write('file', 'theirs\n');
  await t.throwsAsync(edit(turn, 'file'), { code: 'conflict' });
  const id = (await repository.conflicts())[0]?.conflict.id ?? '';
  const clients = await Promise.all(Array.from({ length: 4 }, () => open(place)));
  const answers = await Promise.allSettled([
    ...clients.map((one, n) => one.resolveConflict(id, { choice: 'use-latest', by: `client-${String(n)}` })),
    turn.resolveConflict(id, { choice: 'keep-mine', by: 'the harness' }),
  ]);
  t.is(answers.filter(({ status }) => status === 'fulfilled').length, 1);
  for (const one of answers) if (one.status === 'rejected') t.like(one.reason, { code: 'conflict-settled' });
  const state = (await repository.conflicts())[0]?.conflict.state;
  t.is(readFileSync(join(place.dir, 'file'), 'utf8'), state === 'keep-mine' ? MINE : 'theirs\n');
  await turn.finish({ outcome: 'completed' });
  await Promise.all([repository, ...clients].map((one) => one.close()));
});

test("keep-mine is refused under another's turn, where nobody knows what was to come, and where a repository is in the way", async (t) => {
  const place = scratch(t);
  place.write('file', READ);
  place.write('shell', READ);
  const repository = await open(place);
  const turn = await repository.startTurn({ objective: 'edit', keeper: false });
  turn.read('file');
  turn.read('shell');
  rmSync(join(place.dir, 'file'));
  place.run('git', ['init', '-q', 'file']);
  place.write('shell', 'theirs\n');
  await t.throwsAsync(edit(turn, 'file'), { code: 'conflict' });
  const unknown = turn.invoke(
    { tool: 'shell', args: 'x', paths: [{ path: 'shell', expected: 'unknown' }] },
    () => undefined,
  );
  await t.throwsAsync(unknown, { code: 'conflict' });
  const keep = (path: string) => {
    const id = ids.get(path) ?? '';
    return repository.resolveConflict(id, { choice: 'keep-mine', by: 'someone' });
  };
  const ids = new Map(
    (await repository.conflicts()).map(({ conflict }) => [conflict.detected.event.path, conflict.id]),
  );
  await t.throwsAsync(keep('file'), { code: 'lease-held' });
  await t.throwsAsync(keep('shell'), { code: 'usage' });
  await turn.finish({ outcome: 'completed' });
  await t.throwsAsync(keep('file'), { code: 'path-refused' });
  t.true(statSync(join(place.dir, 'file/.git')).isDirectory());
  t.is((await repository.status()).conflicts, 2);
  await repository.close();
});

test('a deletion that met an edit: keep-mine deletes, and a later edit is in the checkpoint', async (t) => {
  const place = scratch(t);
  place.write('file', READ);
  const repository = await open(place);
  const turn = await repository.startTurn({ objective: 'delete', keeper: false });
  turn.read('file');
  place.write('file', 'theirs\n');
  await t.throwsAsync(turn.transaction([{ kind: 'delete', path: 'file' }]), { code: 'conflict' });
  await turn.finish({ outcome: 'completed' });
  place.write('file', 'edited once more\n');
  const id = (await repository.conflicts())[0]?.conflict.id ?? '';
  const { mine, now, diff } = await repository.compareConflict(id);
  t.deepEqual([mine.image, now.text], [null, 'edited once more\n']);
  t.is(diff.mine, '-one\n-two\n-three\n');
  const done = await repository.resolveConflict(id, { choice: 'keep-mine', by: 'someone' });
  t.false(existsSync(join(place.dir, 'file')));
  t.deepEqual(done.removed, ['file']);
  t.is(place.git('cat-file', 'blob', `${done.checkpoint ?? ''}:worktree/file`), 'edited once more');
  await repository.close();
});

/** A host that calls `look` at every fault point: between any two changes of the disk. */
const looking = (place: Scratch, look: () => void): Promise<Repository> => {
  const host = systemHost();
  return openRepository(place.dir, { ...host, env: place.env, faults: { ...host.faults, hit: look } });
};

for (const how of ['call', 'transaction'] as const) {
  test(`a save between what a ${how} of the turn wrote and its recorded end is not the turn's: its next write is a conflict`, async (t) => {
    const place = scratch(t);
    place.write('file', READ);
    const file = join(place.dir, 'file');
    let saved = false;
    const repository = await looking(place, () => {
      if (saved || !existsSync(file) || readFileSync(file, 'utf8') !== MINE) return;
      saved = true;
      writeFileSync(file, 'theirs\n');
    });
    const turn = await repository.startTurn({ objective: 'edit', keeper: false });
    turn.read('file');
    const write = (bytes: string): Promise<unknown> =>
      turn.transaction([{ kind: 'write', path: 'file', bytes: Buffer.from(bytes) }]);
    if (how === 'transaction') await write(MINE);
    else
      await turn.invoke(
        { tool: 'edit', args: 1, paths: [{ path: 'file', expected: Buffer.from(MINE) }] },
        () => {
          writeFileSync(file, MINE);
        },
      );
    t.true(saved);
    const refused = await t.throwsAsync(write('more\n'));
    t.true(hasCode(refused, 'conflict'));
    t.is(readFileSync(file, 'utf8'), 'theirs\n');
    t.is((await repository.conflicts()).length, 1);
    await turn.finish({ outcome: 'completed' });
    await repository.close();
  });
}

test('a restore of the turn leaves a path alone whose conflict nobody has settled, and takes nothing else either', async (t) => {
  const place = scratch(t);
  place.write('file', READ);
  place.write('other', 'as it was\n');
  const repository = await open(place);
  const turn = await repository.startTurn({ objective: 'edit', keeper: false });
  const { checkpoint } = await turn.checkpoint('before');
  turn.read('file');
  place.write('file', 'theirs\n');
  place.write('other', 'changed\n');
  await t.throwsAsync(edit(turn, 'file'), { code: 'conflict' });
  for (const paths of [['file'], undefined])
    await t.throwsAsync(turn.restore({ checkpoint, ...(paths && { paths }) }), { code: 'conflict-open' });
  t.is(readFileSync(join(place.dir, 'file'), 'utf8'), 'theirs\n');
  t.is(readFileSync(join(place.dir, 'other'), 'utf8'), 'changed\n');
  await turn.restore({ checkpoint, paths: ['other'] });
  t.is(readFileSync(join(place.dir, 'other'), 'utf8'), 'as it was\n');
  await turn.finish({ outcome: 'completed' });
  await repository.restore({ checkpoint, paths: ['file'] });
  t.is(readFileSync(join(place.dir, 'file'), 'utf8'), READ);
  await repository.close();
});
