import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { killTurn } from '../helpers/keeper.js';
import { listing } from '../helpers/listing.js';
import { durable, PROGRAM, startDurable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

test('init gives the work tree an id, prints each file it touches, and twice is once', (t) => {
  const place = scratch(t);
  const first = durable(place, ['init', '--json']);
  t.is(first.code, 0);
  const said = JSON.parse(first.stdout) as { workspace: string; created: boolean; files: string[] };
  t.regex(said.workspace, /^[a-z2-7]{26}$/);
  t.deepEqual(said.files.slice(0, 2), [
    join(place.dir, '.git/durable/'),
    join(place.dir, '.git/durable/workspace'),
  ]);
  for (const file of said.files) t.true(existsSync(file), file);
  const before = listing(place.dir);
  const second = JSON.parse(durable(place, ['init', '--json']).stdout) as typeof said;
  t.deepEqual([second.workspace, second.created, second.files], [said.workspace, false, []]);
  t.deepEqual(listing(place.dir), before);
});

test('init --dry-run names the same files and writes nothing', (t) => {
  const place = scratch(t);
  const before = listing(place.dir);
  const dry = JSON.parse(durable(place, ['init', '--dry-run', '--json']).stdout) as { files: string[] };
  t.deepEqual(listing(place.dir), before);
  const wet = JSON.parse(durable(place, ['init', '--json']).stdout) as { files: string[] };
  t.deepEqual(dry.files, wet.files);
});

for (const words of [[], ['--purge']]) {
  test(`init and uninstall ${words.join(' ')} leave the git dir and its config byte for byte as they were`, (t) => {
    const place = scratch(t);
    const before = listing(place.dir);
    t.is(durable(place, ['init']).code, 0);
    t.notDeepEqual(listing(place.dir), before);
    const ran = durable(place, ['uninstall', '--json', ...words]);
    t.is(ran.code, 0);
    t.deepEqual((JSON.parse(ran.stdout) as { residue: string[] }).residue, []);
    t.deepEqual(listing(place.dir), before);
  });
}

test('uninstall twice, or where nothing was installed, is done', (t) => {
  const place = scratch(t);
  const before = listing(place.dir);
  t.is(durable(place, ['uninstall', '--purge']).code, 0);
  t.is(durable(place, ['uninstall']).code, 0);
  t.deepEqual(listing(place.dir), before);
});

test('what all work trees share goes with the last one', (t) => {
  const place = scratch(t);
  const linked = join(place.top, 'linked tree');
  place.git('worktree', 'add', '-q', '--detach', linked);
  const before = listing(place.dir);
  for (const cwd of [place.dir, linked]) t.is(durable(place, ['init'], { cwd }).code, 0);
  const shared = join(place.dir, '.git/durable');
  place.write('.git/durable/journal/kept', 'of the other work tree');
  t.is(durable(place, ['uninstall']).code, 0);
  t.deepEqual(readdirSync(shared).sort(), ['config', 'hooks', 'journal']);
  t.is(durable(place, ['uninstall'], { cwd: linked }).code, 0);
  t.deepEqual(listing(place.dir), before);
});

test('uninstall in a git dir that cannot be written says which place, and is no defect', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['init']).code, 0);
  place.run('chmod', ['-R', 'a+rwX', place.top]);
  place.run('git', ['config', '--global', 'safe.directory', '*']);
  place.run('chmod', ['-R', 'a-w', join(place.dir, '.git')]);
  // root writes everywhere: as another user.
  const asUser = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--clear-groups'] : [];
  const [program, ...args] = [...asUser, process.execPath, PROGRAM, 'uninstall'];
  const ran = place.run(program, args);
  t.is(ran.code, 1);
  t.regex(ran.stderr, /^git-durable: permission denied on '[^\n]+\n$/);
  place.run('chmod', ['-R', 'a+rwX', place.top]);
  t.is(durable(place, ['uninstall']).code, 0);
});

/** A turn whose agent, keeper and command were killed while it had changed a file. */
async function killed(t: ExecutionContext, place: Scratch): Promise<void> {
  const running = startDurable(t, place, [
    'run',
    '--',
    'sh',
    '-c',
    'echo changed > README; echo $$; exec cat',
  ]);
  const command = Number(await running.line());
  await killTurn(place, running, command);
}

for (const words of [[], ['--purge', '--interrupted']]) {
  test(`uninstall ${words.join(' ')} takes the lock of a dead turn away, and git stages again`, async (t) => {
    const place = scratch(t);
    await killed(t, place);
    t.true(existsSync(join(place.dir, '.git/index.lock')));
    const gone = durable(place, ['uninstall', ...words]);
    t.is(gone.code, 0, gone.stderr);
    t.deepEqual(
      readdirSync(join(place.dir, '.git')).filter((name) => /lock/.test(name)),
      [],
    );
    t.is(place.git('add', 'README'), '');
  });
}

test('a work tree that is initialised again, or whose lease was deleted, still starts no turn on interrupted work', async (t) => {
  const place = scratch(t);
  await killed(t, place);
  t.is(durable(place, ['uninstall']).code, 0);
  for (const attempt of ['the first', 'the second']) {
    const refused = durable(place, ['run', '--', 'touch', 'ran']);
    t.is(refused.code, 3, `${attempt}: ${refused.stderr}`);
    t.false(existsSync(join(place.dir, 'ran')));
  }
  t.is(durable(place, ['recover', '--roll-back']).code, 0);
  t.is(readFileSync(join(place.dir, 'README'), 'utf8'), place.git('show', 'HEAD:README') + '\n');
  t.is(durable(place, ['run', '--', 'true']).code, 0);
});
