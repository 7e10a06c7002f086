import { chmodSync, existsSync, readFileSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { EventOf } from '../../lib/event.js';
import { hasCode, isDurableError } from '../../lib/errors.js';
import { revisionOf } from '../../lib/files/revision.js';
import { runTransaction, type Change } from '../../lib/files/transaction.js';
import { write } from '../helpers/changes.js';
import { openAs } from '../helpers/lease-place.js';
import { scratch } from '../helpers/scratch.js';
import { allEvents, eventTypes, openTurn, walk } from '../helpers/turn-place.js';

test('one transaction writes, deletes, renames, links and sets modes, and the ledger says intent, then commit', async (t) => {
  const place = scratch(t);
  place.write('edit', 'old\n');
  place.write('gone', 'gone\n');
  place.write('from', 'moved\n', 0o755);
  place.write('tool', '#!/bin/sh\n');
  const turn = await openTurn(await openAs(t, place));
  const { paths } = await runTransaction(turn, [
    write('edit', 'new\n'),
    write('deep/in a/new file', 'made\n'),
    { kind: 'delete', path: 'gone' },
    { kind: 'rename', from: 'from', to: 'to' },
    { kind: 'chmod', path: 'tool', executable: true },
    { kind: 'symlink', path: 'link', target: '../outside' },
  ]);
  t.deepEqual([...paths].sort(), ['deep/in a/new file', 'edit', 'from', 'gone', 'link', 'to', 'tool']);
  t.like(
    Object.fromEntries(
      Object.entries(walk(place.dir)).map(([path, what]) => [path, what.split(' ').slice(0, 2).join(' ')]),
    ),
    {
      edit: 'file 644',
      'deep/in a/new file': 'file 644',
      to: 'file 755',
      tool: 'file 755',
      link: 'link ../outside',
    },
  );
  t.false(existsSync(join(place.dir, 'gone')) || existsSync(join(place.dir, 'from')));
  t.is(readFileSync(join(place.dir, 'to'), 'utf8'), 'moved\n');
  t.deepEqual((await eventTypes(turn)).slice(-2), ['transaction.prepared', 'transaction.committed']);
  t.is(place.git('fsck', '--strict', '--no-dangling'), '');
  t.deepEqual(readdirSync(turn.held.stageDir), []);
});

test('changes of one path are taken in order: a write, a mode and a rename make one new file', async (t) => {
  const place = scratch(t);
  const turn = await openTurn(await openAs(t, place));
  const { paths } = await runTransaction(turn, [
    write('draft', 'one\n'),
    write('draft', 'two\n'),
    { kind: 'chmod', path: 'draft', executable: true },
    { kind: 'rename', from: 'draft', to: 'final' },
  ]);
  t.deepEqual(paths, ['final']);
  t.is(readFileSync(join(place.dir, 'final'), 'utf8'), 'two\n');
  t.is(walk(place.dir)['final']?.split(' ')[1], '755');
});

test('a rewrite keeps the permission bits, whatever the umask', async (t) => {
  const place = scratch(t);
  for (const [name, bits] of [
    ['secret', 0o600],
    ['shared', 0o664],
    ['run', 0o750],
    ['own', 0o744],
  ] as const) {
    place.write(name, 'old');
    chmodSync(join(place.dir, name), bits);
  }
  const turn = await openTurn(await openAs(t, place));
  await runTransaction(turn, [
    write('secret', 'new'),
    write('shared', 'new'),
    write('run', 'new'),
    write('own', 'new'),
  ]);
  const bits = ['secret', 'shared', 'run', 'own'].map((name) => walk(place.dir)[name]?.split(' ')[1]);
  t.deepEqual(bits, ['600', '664', '750', '744']);
});

test("files, folders and links take each other's place", async (t) => {
  const place = scratch(t);
  place.write('file', 'f');
  place.write('folder/a', 'a');
  place.write('folder/below/b', 'b');
  symlinkSync('README', join(place.dir, 'link'));
  const turn = await openTurn(await openAs(t, place));
  await runTransaction(turn, [
    { kind: 'delete', path: 'file' },
    write('file/inside', 'now a folder'),
    { kind: 'delete', path: 'folder/a' },
    { kind: 'delete', path: 'folder/below/b' },
    write('folder', 'now a file'),
    write('link', 'now a file'),
    { kind: 'symlink', path: 'README', target: 'folder' },
  ]);
  const tree = walk(place.dir);
  t.deepEqual(
    Object.keys(tree).map((path) => `${path} ${(tree[path] ?? '').split(' ')[0] ?? ''}`),
    ['README link', 'file folder', 'file/inside file', 'folder file', 'link file'],
  );
});

const REFUSED: readonly { path: string; code: string }[] = [
  { path: '/etc/passwd', code: 'path-outside' },
  { path: '../outside', code: 'path-outside' },
  { path: 'a/../../outside', code: 'path-outside' },
  { path: '.git/config', code: 'path-refused' },
  { path: '.GIT/hooks/pre-commit', code: 'path-refused' },
  { path: 'nested/.git/config', code: 'path-refused' },
  { path: 'nested/.Git', code: 'path-refused' },
  { path: 'nested/.g\u200cit/config', code: 'path-refused' },
  { path: 'a\0b', code: 'path-refused' },
  { path: '', code: 'path-refused' },
  { path: 'folder/', code: 'path-refused' },
  { path: 'folder', code: 'path-refused' },
  { path: 'README/below', code: 'path-refused' },
  { path: 'escape/file', code: 'path-outside' },
  { path: 'inside/file', code: 'path-refused' },
];

test('paths that leave the work tree, enter a git dir or lead through a link are refused, and what is beside them is not made', async (t) => {
  const place = scratch(t);
  place.write('folder/file', 'in the way');
  symlinkSync(place.top, join(place.dir, 'escape'));
  symlinkSync('folder', join(place.dir, 'inside'));
  const turn = await openTurn(await openAs(t, place));
  const [types, paths] = [await eventTypes(turn), readdirSync(place.dir)];
  for (const { path, code } of REFUSED) {
    const error = await t.throwsAsync(runTransaction(turn, [write('beside', 'x'), write(path, 'x')]));
    t.true(isDurableError(error) && error.code === code, `${JSON.stringify(path)}: ${String(error)}`);
  }
  t.deepEqual(await eventTypes(turn), types);
  t.deepEqual(readdirSync(place.dir), paths);
});

test('a git dir under another name is not written', async (t) => {
  const place = scratch(t);
  place.git('init', '-q', '--separate-git-dir', join(place.dir, 'meta'));
  const turn = await openTurn(await openAs(t, place));
  const error = await t.throwsAsync(runTransaction(turn, [write('meta/config', 'x')]));
  t.true(hasCode(error, 'path-refused'));
});

test('what is not there can be neither deleted nor renamed nor given a mode', async (t) => {
  const place = scratch(t);
  const turn = await openTurn(await openAs(t, place));
  const changes: Change[] = [
    { kind: 'delete', path: 'no' },
    { kind: 'rename', from: 'no', to: 'other' },
    { kind: 'chmod', path: 'no', executable: true },
  ];
  for (const change of changes)
    t.true(hasCode(await t.throwsAsync(runTransaction(turn, [change])), 'path-refused'));
});

test('a write against an older revision is a conflict before anything changes, and both sides are kept', async (t) => {
  const place = scratch(t);
  place.write('a', 'a\n');
  place.write('b', 'read\n');
  const storage = await openAs(t, place);
  const turn = await openTurn(storage);
  const expected = revisionOf(storage, 'b');
  place.write('b', 'changed by the user\n');
  const before = walk(place.dir);
  const error = await t.throwsAsync(
    runTransaction(turn, [write('a', 'A\n'), write('b', 'mine\n', { expected })]),
  );
  t.true(hasCode(error, 'conflict') && error.fields.path === 'b' && error.fields.expected === expected?.oid);
  t.deepEqual(walk(place.dir), before);
  const conflict = (await allEvents(turn)).at(-1)?.event;
  t.true(conflict?.type === 'conflict.detected' && conflict.why === 'changed-since-read');
  if (conflict?.type !== 'conflict.detected' || conflict.mine === 'unknown') return;
  t.is(place.git('cat-file', 'blob', oidOf(conflict.theirs) ?? ''), 'changed by the user');
  t.is(place.git('cat-file', 'blob', conflict.mine?.oid ?? ''), 'mine');
  t.is(
    place
      .git('rev-list', '--objects', 'refs/durable/checkpoints/task')
      .includes(oidOf(conflict.theirs) ?? '?'),
    true,
  );
});

test('a new file that somebody made meanwhile, and a rename onto a file, are conflicts', async (t) => {
  const place = scratch(t);
  place.write('there', 'theirs\n');
  place.write('here', 'theirs\n');
  const turn = await openTurn(await openAs(t, place));
  const changes: Change[] = [
    write('there', 'mine\n', { expected: null }),
    { kind: 'rename', from: 'README', to: 'here' },
  ];
  for (const change of changes)
    t.true(hasCode(await t.throwsAsync(runTransaction(turn, [change])), 'conflict'));
  t.is(readFileSync(join(place.dir, 'there'), 'utf8'), 'theirs\n');
});

const oidOf = (theirs: EventOf<'conflict.detected'>['theirs']): string | undefined =>
  typeof theirs === 'string' ? undefined : theirs?.oid;

for (const [what, change] of [
  ['a kind that there is not', { kind: 'wirte', path: 'file', bytes: Buffer.from('x') }],
  ['no kind', { path: 'file', executable: true }],
  ['a write of a text', { kind: 'write', path: 'file', bytes: 'x' }],
  ['a mode that no file has', { kind: 'write', path: 'file', bytes: Buffer.from('x'), mode: '755' }],
  ['a chmod that says not what', { kind: 'chmod', path: 'file' }],
  ['a rename to nowhere', { kind: 'rename', from: 'file' }],
  ['nothing', null],
] as const) {
  test(`what is no change is refused before anything is recorded: ${what}`, async (t) => {
    const place = scratch(t);
    place.write('file', 'kept\n');
    const turn = await openTurn(await openAs(t, place));
    const before = walk(place.dir);
    const events = place.git('rev-list', '--count', '--all');
    const changes = [{ kind: 'delete', path: 'file' }, change] as unknown as Change[];
    await t.throwsAsync(runTransaction(turn, changes), { code: 'usage', message: /^change 1 is none/ });
    t.deepEqual(walk(place.dir), before);
    t.is(place.git('rev-list', '--count', '--all'), events);
  });
}
