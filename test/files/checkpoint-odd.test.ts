import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import {
  checkpointPlace,
  gitDirDigest,
  placeIn,
  settle,
  walk,
  type CheckpointPlace,
} from '../helpers/checkpoint-place.js';

const names = (place: CheckpointPlace, tree: string): string[] =>
  place.run('git', ['ls-tree', '-r', '-z', '--name-only', tree]).stdout.split('\0').slice(0, -1);

const reasons = (skipped: readonly { path: string; why: string }[]): string[] =>
  skipped.map(({ path, why }) => `${path}: ${why}`).sort();

test('filters, end-of-line settings, ident and encodings alter no byte, even when a filter is required and fails', async (t) => {
  const place = await checkpointPlace(t);
  place.git('config', 'core.autocrlf', 'true');
  place.git('config', 'filter.broken.clean', 'false');
  place.git('config', 'filter.broken.required', 'true');
  place.write(
    '.gitattributes',
    '* text=auto ident crlf\n*.crlf eol=crlf\n*.u16 text working-tree-encoding=UTF-16\n*.lfs filter=broken\n',
  );
  const mixed = 'a\r\nb\nc\r$Id$\n';
  for (const name of ['a.txt', 'a.crlf', 'a.u16', 'a.lfs', 'folder/b.lfs']) place.write(name, mixed);
  place.write('folder/.gitattributes', '* text eol=lf filter=broken\n');
  await settle();
  const taken = await place.checkpoint();
  for (const name of ['a.txt', 'a.crlf', 'a.u16', 'a.lfs', 'folder/b.lfs'])
    t.is(place.run('git', ['cat-file', 'blob', `${taken.tree}:${name}`]).stdout, mixed, name);
  const was = walk(place.dir);
  for (const name of was.keys()) unlinkSync(join(place.dir, name));
  await place.restore(taken.checkpoint);
  t.deepEqual(walk(place.dir), was);
});

test('a tracked file that .gitignore matches is held, also when it comes back after it was gone', async (t) => {
  const place = await checkpointPlace(t);
  place.write('.gitignore', '*.log\n');
  place.write('kept.log', 'one\n');
  place.git('add', '-f', '.');
  place.git('commit', '-q', '-m', 'second');
  t.true(names(place, (await place.checkpoint()).tree).includes('kept.log'));
  unlinkSync(join(place.dir, 'kept.log'));
  t.false(names(place, (await place.checkpoint()).tree).includes('kept.log'));
  place.write('kept.log', 'two\n');
  place.write('other.log', 'not tracked\n');
  const back = await place.checkpoint();
  t.deepEqual(names(place, back.tree), ['.gitignore', 'README', 'kept.log']);
  place.git('rm', '-q', '--cached', 'kept.log');
  t.deepEqual(names(place, (await place.checkpoint()).tree), ['.gitignore', 'README']);
});

test('what is ignored from now on leaves the next checkpoint, by any of the three ignore files', async (t) => {
  const place = await checkpointPlace(t, {
    prepare: ({ git, top }) => git('config', 'core.excludesFile', join(top, 'excluded')),
  });
  for (const name of ['a', 'b', 'c', 'd']) place.write(name, 'one\n');
  t.is((await place.checkpoint()).files, 5);
  place.write('.gitignore', 'a\n');
  t.deepEqual(names(place, (await place.checkpoint()).tree), ['.gitignore', 'README', 'b', 'c', 'd']);
  mkdirSync(join(place.dir, '.git/info'), { recursive: true });
  writeFileSync(join(place.dir, '.git/info/exclude'), 'b\n');
  t.deepEqual(names(place, (await place.checkpoint()).tree), ['.gitignore', 'README', 'c', 'd']);
  writeFileSync(join(place.top, 'excluded'), 'c\n');
  t.deepEqual(names(place, (await place.checkpoint()).tree), ['.gitignore', 'README', 'd']);
  unlinkSync(join(place.dir, '.gitignore'));
  t.deepEqual(names(place, (await place.checkpoint()).tree), ['README', 'a', 'd']);
});

test('assume-unchanged and skip-worktree flags of the user hide no change', async (t) => {
  const place = await checkpointPlace(t);
  place.write('assumed', 'one\n');
  place.write('skipped', 'one\n');
  place.git('add', '.');
  place.git('update-index', '--assume-unchanged', 'assumed');
  place.git('update-index', '--skip-worktree', 'skipped');
  await place.checkpoint();
  place.write('assumed', 'two\n');
  place.write('skipped', 'two\n');
  const taken = await place.checkpoint();
  t.is(place.git('show', `${taken.tree}:assumed`), 'two');
  t.is(place.git('show', `${taken.tree}:skipped`), 'two');
  t.is(place.git('ls-files', '-v'), 'H README\nh assumed\nS skipped');
});

test('paths that a sparse checkout leaves out are neither deleted nor restored', async (t) => {
  const place = await checkpointPlace(t);
  place.write('in/file', 'one\n');
  place.write('out/file', 'one\n');
  place.git('add', '.');
  place.git('commit', '-q', '-m', 'second');
  const whole = await place.checkpoint();
  place.git('sparse-checkout', 'set', 'in');
  const sparse = await place.checkpoint();
  t.deepEqual(names(place, sparse.tree), ['README', 'in/file']);
  const scope: unknown = JSON.parse(place.git('show', `${sparse.checkpoint}:payload/scope`));
  t.like(scope, { absent: ['out/file'] });
  place.write('in/file', 'two\n');
  const done = await place.restore(whole.checkpoint);
  t.deepEqual(done.restored, ['in/file']);
  t.deepEqual(done.skipped, [{ path: 'out/file', why: 'absent' }]);
  t.false(existsSync(join(place.dir, 'out')));
  place.git('sparse-checkout', 'disable');
  const again = await place.restore(sparse.checkpoint);
  t.deepEqual(again.removed, []);
  t.true(existsSync(join(place.dir, 'out/file')));
});

test('without an index the names of HEAD are taken, ignored ones too, and no snapshot is empty', async (t) => {
  const place = await checkpointPlace(t);
  place.write('.gitignore', '*.log\n');
  place.write('kept.log', 'one\n');
  place.git('add', '-f', '.');
  place.git('commit', '-q', '-m', 'second');
  rmSync(join(place.dir, '.git/index'));
  t.deepEqual(names(place, (await place.checkpoint()).tree), ['.gitignore', 'README', 'kept.log']);
  t.false(existsSync(join(place.dir, '.git/index')));
  writeFileSync(join(place.dir, '.git/index'), 'torn');
  t.deepEqual(names(place, (await place.checkpoint()).tree), ['.gitignore', 'README', 'kept.log']);
});

test('nested repositories and submodules are named, not entered, and untouched', async (t) => {
  const place = await checkpointPlace(t);
  const inside = (folder: string, ...args: string[]): unknown =>
    place.run('git', args, { cwd: join(place.dir, folder) });
  mkdirSync(join(place.dir, 'fresh'));
  inside('fresh', 'init', '-q');
  place.write('fresh/file', 'theirs\n');
  place.run('git', ['clone', '-q', '.', 'cloned']);
  place.run('git', ['-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', place.dir, 'module']);
  place.write('module/edited', 'theirs\n');
  const before = walk(join(place.dir, '.git/modules'));
  const taken = await place.checkpoint();
  t.deepEqual(names(place, taken.tree), ['.gitmodules', 'README']);
  t.deepEqual(reasons(taken.skipped), [
    'cloned: nested-repository',
    'fresh: nested-repository',
    'module: nested-repository',
  ]);
  t.deepEqual(walk(join(place.dir, '.git/modules')), before);
  t.deepEqual(
    reasons((await place.checkpoint({ paths: ['module/edited', 'cloned'] })).skipped),
    reasons(taken.skipped),
  );
});

test('a restore names what its checkpoint left out and is gone now: nothing can put it back', async (t) => {
  const place = await checkpointPlace(t);
  place.run('git', ['-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', place.dir, 'module']);
  place.write('kept/file', 'one\n');
  const { checkpoint } = await place.checkpoint();
  rmSync(join(place.dir, 'module'), { recursive: true });
  rmSync(join(place.dir, 'kept/file'));
  t.deepEqual((await place.restore(checkpoint, ['kept'])).skipped, []);
  const all = await place.restore(checkpoint);
  t.deepEqual(reasons(all.skipped), ['module: nested-repository']);
});

test('fifos and sockets in a tracked place, links git refuses and folders named like .git are named', async (t) => {
  const place = await checkpointPlace(t);
  for (const name of ['fifo', 'socket']) place.write(name, 'a file\n');
  place.git('add', '.');
  await place.checkpoint();
  for (const name of ['fifo', 'socket']) unlinkSync(join(place.dir, name));
  place.run('mkfifo', ['fifo']);
  const server = createServer();
  // Relative, since a socket's path is limited to some hundred bytes.
  const back = process.cwd();
  process.chdir(place.dir);
  server.listen('socket');
  process.chdir(back);
  await once(server, 'listening');
  t.teardown(() => server.close());
  symlinkSync('README', join(place.dir, '.gitmodules'));
  place.write('.GIT/config', 'odd\n');
  const taken = await place.checkpoint({ paths: ['fifo'] });
  t.deepEqual(names(place, taken.tree), ['README']);
  t.deepEqual(reasons(taken.skipped), [
    '.GIT/config: special',
    '.gitmodules: special',
    'fifo: special',
    'socket: special',
  ]);
});

test('an event names 100 of what was left out at most, and the checkpoint all of it', async (t) => {
  const place = await checkpointPlace(t, {
    prepare: ({ git }) => git('config', 'durable.maxFileSize', '10'),
  });
  for (let index = 0; index < 130; index += 1) place.write(`large/${String(index)}`, 'more than ten bytes');
  const taken = await place.checkpoint();
  t.is(taken.skipped.length, 130);
  t.is(taken.event.event.skipped, 130);
  t.is(taken.event.event.skippedList.length, 100);
  t.deepEqual(names(place, taken.tree), ['README']);
});

test('an unreadable file is named and ends nothing, and its path is not a deletion', async (t) => {
  const place = await checkpointPlace(t);
  place.write('secret', 'one\n');
  const first = await place.checkpoint();
  place.write('secret', 'two\n');
  chmodSync(join(place.dir, 'secret'), 0o000);
  place.write('other', 'one\n');
  // root reads everything: as another user, in a process of its own.
  const child = join(import.meta.dirname, '../helpers/checkpoint-child.js');
  place.run('chmod', ['-R', 'a+rwX', place.top]);
  chmodSync(join(place.dir, 'secret'), 0o000);
  const asUser = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--clear-groups'] : [];
  const [program, ...args] = [...asUser, process.execPath, child, place.dir];
  const env = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' };
  place.run('git', ['config', '--global', 'safe.directory', '*']);
  const ran = place.run(program, args, { env });
  t.is(ran.code, 0, ran.stderr);
  const said = JSON.parse(ran.stdout) as {
    tree: string;
    skipped: { path: string; why: string }[];
    checkpoint: string;
  };
  t.deepEqual(reasons(said.skipped), ['secret: unreadable']);
  t.deepEqual(
    place.run('git', ['-c', 'safe.directory=*', 'ls-tree', '-r', '--name-only', said.tree]).stdout,
    'README\nother\n',
  );
  chmodSync(join(place.dir, 'secret'), 0o644);
  const done = await place.restore(first.checkpoint, ['secret']);
  t.deepEqual(done.restored, ['secret']);
});

/** The version numbers of eight digits, each once where it begins. */
const versionsIn = (text: string): string[] =>
  (text.match(/.{8}/g) ?? []).filter((version, index, all) => version !== all[index - 1]);

test('a file that is written to all the time ends no checkpoint, and is held as it was at one moment or named', async (t) => {
  const place = await checkpointPlace(t);
  place.write('swapped', '00000000'.repeat(500_000));
  place.write('log', 'line\n');
  const script = `
    const fs = require('node:fs');
    const fd = fs.openSync('swapped', 'r+');
    for (let n = 0; ; n += 1) {
      fs.writeSync(fd, Buffer.alloc(4000000, String(n).padStart(8, '0')), 0, 4000000, 0);
      if (n % 50 === 0) fs.appendFileSync('log', 'line\\n');
      if (n % 97 === 0) { fs.writeFileSync('comes', 'x'.repeat(n % 5000)); fs.rmSync('comes'); }
    }`;
  const child = spawn(process.execPath, ['-e', script], { cwd: place.dir, stdio: 'ignore' });
  t.teardown(() => child.kill('SIGKILL'));
  for (let round = 0; round < 6; round += 1) {
    const taken = await place.checkpoint();
    const there = names(place, taken.tree);
    if (there.includes('swapped')) {
      const versions = versionsIn(place.git('show', `${taken.tree}:swapped`));
      // One write replaces the old version from the front: a newer one behind an older one was never on disk.
      t.true(versions.length <= 2, versions.join(' '));
      t.deepEqual(versions, [...versions].sort().reverse());
    } else t.true(reasons(taken.skipped).includes('swapped: unreadable'));
    t.regex(place.run('git', ['show', `${taken.tree}:log`]).stdout, /^(?:line\n)+$/);
  }
  child.kill('SIGKILL');
  await once(child, 'exit');
  const last = await place.checkpoint();
  t.is(place.run('git', ['show', `${last.tree}:log`]).stdout, readFileSync(join(place.dir, 'log'), 'utf8'));
  t.true(names(place, last.tree).includes('swapped'));
});

for (const settled of [true, false]) {
  const when = settled ? 'a moment after' : 'right after';
  test(`a change that keeps size and times is seen, ${when} a checkpoint in the same second`, async (t) => {
    const place = await checkpointPlace(t);
    const file = join(place.dir, 'README');
    for (let round = 0; round < 10; round += 1) {
      writeFileSync(file, `round ${String(round)}\n`);
      utimesSync(file, 1_000_000_000, 1_000_000_000);
      if (settled) await settle();
      const taken = await place.checkpoint();
      t.is(place.git('show', `${taken.tree}:README`), `round ${String(round)}`);
    }
  });
}

test('many new small files become one pack: no loose objects, no temporary files', async (t) => {
  const place = await checkpointPlace(t);
  const loose = place.git('count-objects').split(' ')[0];
  for (let index = 0; index < 3000; index += 1)
    place.write(`many/${String(index % 30)}/${String(index)}`, `file ${String(index)}\n`);
  const taken = await place.checkpoint();
  t.is(taken.files, 3001);
  const now = Number(place.git('count-objects').split(' ')[0]);
  t.true(now - Number(loose) < 20, `${String(now)} loose objects`);
  t.is(readdirSync(join(place.dir, '.git/objects/pack')).filter((name) => name.endsWith('.pack')).length, 1);
  t.deepEqual(readdirSync(join(place.dir, '.git/durable/quarantine')), []);
  t.is(place.run('git', ['fsck', '--strict', '--full']).code, 0);
});

test('the first checkpoint of many tracked files is as exact as that of a few', async (t) => {
  const place = await checkpointPlace(t, {
    prepare: ({ git }) => git('config', 'durable.maxFileSize', '1k'),
  });
  for (let index = 0; index < 2200; index += 1)
    place.write(`many/${String(index % 20)}/${String(index)}`, `file ${String(index)}\r\n`);
  for (const name of ['grown', 'piped', 'gone', 'folder', 'linked/file', 'edited'])
    place.write(name, 'one\n');
  place.git('config', 'core.autocrlf', 'true');
  place.git('add', '.');
  place.write('grown', 'x'.repeat(2000));
  place.write('edited', 'two\n');
  for (const name of ['piped', 'gone', 'folder', 'linked/file']) unlinkSync(join(place.dir, name));
  place.run('mkfifo', ['piped']);
  place.write('folder/below', 'one\n');
  rmSync(join(place.dir, 'linked'), { recursive: true });
  symlinkSync('many/1', join(place.dir, 'linked'));
  symlinkSync('circle', join(place.dir, 'circle'));
  // Copied with its times, in the second of the checkpoint.
  utimesSync(join(place.dir, 'edited'), 1_000_000_000, 1_000_000_000);
  await settle();
  const taken = await place.checkpoint();
  t.deepEqual(reasons(taken.skipped), ['grown: too-large', 'piped: special']);
  const there = names(place, taken.tree).filter((name) => !name.startsWith('many/'));
  t.deepEqual(there, ['README', 'circle', 'edited', 'folder/below', 'linked']);
  t.is(taken.files, 2205);
  t.is(place.run('git', ['cat-file', 'blob', `${taken.tree}:many/7/7`]).stdout, 'file 7\r\n');
  place.write('edited', 'two!');
  utimesSync(join(place.dir, 'edited'), 1_000_000_000, 1_000_000_000);
  t.is(place.git('show', `${(await place.checkpoint()).tree}:edited`), 'two!');
});

test('a linked work tree has checkpoints of its own, and the main one stays as it is', async (t) => {
  const main = await checkpointPlace(t);
  main.write('only here', 'main\n');
  main.git('worktree', 'add', '-q', '../linked');
  const linked = await placeIn(
    t,
    { ...main, dir: join(main.top, 'linked') },
    { dir: join(main.top, 'linked') },
  );
  writeFileSync(join(main.top, 'linked/there'), 'linked\n');
  const before = gitDirDigest(join(main.dir, '.git'));
  const taken = await linked.checkpoint();
  t.deepEqual(names(main, taken.tree), ['README', 'there']);
  unlinkSync(join(main.top, 'linked/there'));
  await linked.restore(taken.checkpoint);
  t.true(existsSync(join(main.top, 'linked/there')));
  t.deepEqual(gitDirDigest(join(main.dir, '.git')), before);
  t.true(existsSync(join(main.dir, 'only here')));
});

test('a repository without a commit, and one with SHA-256 ids, are held as exactly', async (t) => {
  const place = await checkpointPlace(t, { objectFormat: 'sha256', commit: false });
  const empty = await place.checkpoint();
  t.deepEqual([empty.files, names(place, empty.tree)], [0, []]);
  place.write('a', 'one\n');
  const taken = await place.checkpoint();
  t.is(taken.tree.length, 64);
  place.write('a', 'two\n');
  place.write('b', 'two\n');
  const done = await place.restore(taken.checkpoint);
  t.deepEqual([done.restored, done.removed], [['a'], ['b']]);
  await place.restore(empty.checkpoint);
  t.deepEqual([...walk(place.dir)], []);
  t.is(place.run('git', ['fsck', '--full']).code, 0);
});

test('a log that only grows is held as it was at some moment', async (t) => {
  const place = await checkpointPlace(t);
  place.write('log', 'x\n');
  appendFileSync(join(place.dir, 'log'), 'y\n');
  const taken = await place.checkpoint();
  t.is(place.git('show', `${taken.tree}:log`), 'x\ny');
  t.true(lstatSync(join(place.dir, 'log')).isFile());
});
