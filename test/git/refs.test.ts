import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'ava';
import { hasCode } from '../../lib/errors.js';
import { openStorage } from '../../lib/git/storage.js';
import { systemHost } from '../../lib/host.js';
import { LEASE, TASK, opened, fails, litter } from '../helpers/opened-refs.js';

test('a ref is made, moved, and seen by git', async (t) => {
  const at = await opened(t);
  const { storage, commits, place } = at;
  t.is(storage.refs.read(TASK), null);
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: null, to: commits[0] } }), {
    moved: true,
  });
  t.is(place.git('rev-parse', TASK), commits[0]);
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: commits[0], to: commits[1] } }), {
    moved: true,
  });
  t.is(place.git('rev-parse', TASK), commits[1]);
  t.is(storage.refs.read(TASK), commits[1]);
  t.deepEqual(litter(at), []);
  place.git('fsck', '--strict');
});

test('a ref that is not where the change expects it stays, and the refusal says where it is', async (t) => {
  const at = await opened(t);
  const { storage, commits, place } = at;
  const [a, b, c] = commits;
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: a, to: b } }), {
    moved: false,
    ref: TASK,
    was: null,
  });
  place.git('update-ref', TASK, a);
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: null, to: b } }), {
    moved: false,
    ref: TASK,
    was: a,
  });
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: c, to: b } }), {
    moved: false,
    ref: TASK,
    was: a,
  });
  t.is(place.git('rev-parse', TASK), a);
  t.deepEqual(litter(at), []);
});

test('one ref moves only while the others are where they were verified', async (t) => {
  const at = await opened(t);
  const { storage, commits, place } = at;
  const [a, b] = commits;
  const move = { ref: TASK, from: null, to: b };
  t.deepEqual(await storage.refs.update({ verify: [{ ref: LEASE, oid: a }], move }), {
    moved: false,
    ref: LEASE,
    was: null,
  });
  place.git('update-ref', LEASE, b);
  t.deepEqual(await storage.refs.update({ verify: [{ ref: LEASE, oid: a }], move }), {
    moved: false,
    ref: LEASE,
    was: b,
  });
  t.is(storage.refs.read(TASK), null);
  t.deepEqual(await storage.refs.update({ verify: [{ ref: LEASE, oid: b }], move }), { moved: true });
  t.is(place.git('rev-parse', LEASE), b);
  t.deepEqual(litter(at), []);
});

test('packed refs are read, moved and listed, and a loose one wins over its packed value', async (t) => {
  const { storage, commits, place } = await opened(t);
  const [a, b, c] = commits;
  for (const ref of [TASK, LEASE, 'refs/durable/tasks/b']) place.git('update-ref', ref, a);
  place.git('tag', '-m', 'annotated', 'tagged');
  place.git('pack-refs', '--all');
  t.is(storage.refs.read(TASK), a);
  t.is(storage.refs.read('refs/durable/tasks'), null);
  t.is(storage.refs.read('durable/tasks/a'), null);
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: null, to: b } }), {
    moved: false,
    ref: TASK,
    was: a,
  });
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: a, to: b } }), { moved: true });
  t.is(place.git('rev-parse', TASK), b);
  place.git('update-ref', 'refs/durable/tasks/c', c);
  for (const prefix of ['refs/', 'refs/durable/', 'refs/durable/tasks/', 'refs/tags/', 'refs/nothing/']) {
    const listed = [...storage.refs.list(prefix)].map(([ref, oid]) => `${ref} ${oid}`).join('\n');
    t.is(listed, place.git('for-each-ref', '--format=%(refname) %(objectname)', prefix), prefix);
  }
  t.deepEqual([...storage.refs.list('refs/durable/tasks/a').keys()], [TASK]);
  place.git('update-ref', '-d', TASK);
  t.is(storage.refs.read(TASK), null);
});

test('a name that would be a folder of another ref is refused, loose or packed', async (t) => {
  const at = await opened(t);
  const { storage, commits, place } = at;
  const [a] = commits;
  const make = (ref: string) => () => storage.refs.update({ move: { ref, from: null, to: a } });
  place.git('update-ref', 'refs/durable/tasks/one', a);
  place.git('update-ref', 'refs/durable/tasks/two/x', a);
  for (const how of ['loose', 'packed']) {
    if (how === 'packed') place.git('pack-refs', '--all');
    t.true(
      (await fails(t, 'ref-conflict', make('refs/durable/tasks/one/x'))).includes('refs/durable/tasks/one'),
    );
    await fails(t, 'ref-conflict', make('refs/durable/tasks/one/x/y'));
    await fails(t, 'ref-conflict', make('refs/durable/tasks/two'));
  }
  t.deepEqual(litter(at), []);
});

test('folders that git left empty are in nobody’s way', async (t) => {
  const { storage, commits, path } = await opened(t);
  mkdirSync(path(`${TASK}/empty/deeper`), { recursive: true });
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: null, to: commits[0] } }), {
    moved: true,
  });
});

test('ref folders that git removed are made again', async (t) => {
  const { storage, commits, path, place } = await opened(t);
  const [a, b] = commits;
  await storage.refs.update({ move: { ref: TASK, from: null, to: a } });
  place.git('pack-refs', '--all');
  if (existsSync(dirname(path(TASK)))) rmdirSync(dirname(path(TASK)));
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: a, to: b } }), { moved: true });
  t.is(place.git('rev-parse', TASK), b);
});

test('no reflog is written, whatever core.logAllRefUpdates says', async (t) => {
  const { storage, commits, place, path } = await opened(t);
  place.git('config', 'core.logAllRefUpdates', 'always');
  await storage.refs.update({ move: { ref: TASK, from: null, to: commits[0] } });
  t.false(existsSync(path('logs/refs/durable')));
});

test('a ref whose file is empty or torn is damaged, not absent', async (t) => {
  const { storage, commits, path } = await opened(t);
  mkdirSync(dirname(path(TASK)), { recursive: true });
  for (const torn of ['', '\n', commits[0].slice(1), `${commits[0]}0`, 'x'.repeat(40)]) {
    writeFileSync(path(TASK), torn);
    const error = t.throws(() => storage.refs.read(TASK));
    t.true(hasCode(error, 'ref-damaged'), JSON.stringify(torn));
    await fails(t, 'ref-damaged', () =>
      storage.refs.update({ move: { ref: TASK, from: null, to: commits[0] } }),
    );
  }
  t.false(existsSync(path(`${TASK}.lock`)));
});

test('symbolic refs are followed, a circle is damage', async (t) => {
  const { storage, place } = await opened(t);
  t.is(storage.refs.read('HEAD'), place.git('rev-parse', 'HEAD'));
  place.git('symbolic-ref', 'refs/durable/a', 'refs/durable/b');
  t.is(storage.refs.read('refs/durable/a'), null);
  place.git('symbolic-ref', 'refs/durable/b', 'refs/durable/a');
  t.true(
    hasCode(
      t.throws(() => storage.refs.read('refs/durable/a')),
      'ref-damaged',
    ),
  );
});

test('a linked work tree has its own HEAD and shares the other refs', async (t) => {
  const { place, commits } = await opened(t);
  place.git('worktree', 'add', '-q', '--detach', '../linked', commits[3]);
  const linked = await openStorage(join(place.top, 'linked'), { ...systemHost(), env: place.env });
  t.teardown(() => linked.close());
  t.is(linked.refs.read('HEAD'), commits[3]);
  await linked.refs.update({ move: { ref: TASK, from: null, to: commits[0] } });
  t.is(place.git('rev-parse', TASK), commits[0]);
});

test('a name that git would not take is refused as a mistake of the caller', async (t) => {
  const { storage, commits } = await opened(t);
  const wrong = [
    'HEAD',
    'refs/a/../b',
    'refs/a//b',
    'refs/a.lock',
    'refs/.a',
    'refs/a b',
    'refs/a/',
    'refs/a~1',
    'refs/a\n',
  ];
  for (const ref of wrong) {
    await t.throwsAsync(storage.refs.update({ move: { ref, from: null, to: commits[0] } }), {
      instanceOf: RangeError,
    });
  }
});
