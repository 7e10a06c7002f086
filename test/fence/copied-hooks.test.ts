import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { killTurn } from '../helpers/keeper.js';
import { listing } from '../helpers/listing.js';
import { durable, startDurable, type Running } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

/** Where the user's own `pre-commit` lies, in front of which ours is put. */
const FOLDERS: readonly { name: string; folder: (place: Scratch) => string; setting: string | null }[] = [
  { name: 'in the git dir', folder: ({ dir }) => join(dir, '.git/hooks'), setting: null },
  { name: 'in the work tree', folder: ({ dir }) => join(dir, 'my hooks'), setting: 'my hooks' },
  { name: 'outside of both', folder: ({ top }) => join(top, 'all hooks'), setting: '../all hooks' },
];

for (const one of FOLDERS) {
  const { name } = one;
  test(`a copy made during a turn: uninstall takes the copy's hooks and none of the turn's, with hooks ${name}`, async (t) => {
    const { place, before, running } = await turnWithHooks(t, one);
    const copy = join(place.top, 'copy');
    place.run('cp', ['-a', '--', place.dir, copy]);
    const during = listing(one.folder(place));
    t.true(during.some((line) => line.includes('pre-commit.durable-prev')));
    const ran = durable(place, ['uninstall', '--json'], { cwd: copy });
    const said = JSON.parse(ran.stdout) as { removed: string[]; residue: string[] };
    t.deepEqual(listing(one.folder(place)), during);
    t.deepEqual(
      said.removed.filter((path) => !path.startsWith(`${copy}/`)),
      [],
    );
    t.true(said.residue.includes(join(copy, '.git/index.lock')), ran.stdout);
    if (name !== 'outside of both') t.deepEqual(listing(one.folder({ ...place, dir: copy })), before);
    running.child.stdin.end();
    t.is((await running.ended).code, 0);
    t.deepEqual(listing(one.folder(place)), before);
    t.is(durable(place, ['uninstall'], { cwd: copy }).code, 0);
  });

  test(`a repository that was moved with a dead turn's hooks in it: uninstall takes them, with hooks ${name}`, async (t) => {
    const { place, before, running } = await turnWithHooks(t, one);
    await killTurn(place, running);
    const moved = join(place.top, 'moved');
    renameSync(place.dir, moved);
    const ran = durable(place, ['uninstall', '--json'], { cwd: moved });
    t.is(ran.code, 0, ran.stdout);
    t.deepEqual(listing(one.folder({ ...place, dir: moved })), before);
  });
}

// One folder outside serves both, and each keeper puts back what the other's turn takes at its end.
for (const one of FOLDERS.filter(({ name }) => name !== 'outside of both')) {
  test(`a copy made during a turn: a turn of the copy takes none of the other's hooks, with hooks ${one.name}`, async (t) => {
    const { place, before, running } = await turnWithHooks(t, one);
    const copy = join(place.top, 'copy');
    place.run('cp', ['-a', '--', place.dir, copy]);
    const during = listing(one.folder(place));
    place.run('rm', ['--', join(copy, '.git/index.lock')]);
    const ran = durable(place, ['run', '--', 'true'], { cwd: copy });
    t.is(ran.code, 0, ran.stderr);
    t.deepEqual(listing(one.folder(place)), during);
    t.deepEqual(listing(one.folder({ ...place, dir: copy })), before);
    running.child.stdin.end();
    t.is((await running.ended).code, 0);
    // What was taken the keeper would have put back, and recorded.
    t.is(durable(place, ['log', '--type', 'git.observed']).stdout, '');
  });
}

async function turnWithHooks(
  t: ExecutionContext,
  { folder, setting }: (typeof FOLDERS)[number],
): Promise<{ place: Scratch; before: string[]; running: Running }> {
  const place = scratch(t);
  const dir = folder(place);
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'pre-commit'), '#!/bin/sh\nexit 0\n');
  chmodSync(join(dir, 'pre-commit'), 0o755);
  if (setting !== null) place.git('config', 'core.hooksPath', setting);
  t.is(durable(place, ['init']).code, 0);
  const before = listing(dir);
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', 'echo open; cat']);
  t.is(await running.line(), 'open', running.said);
  return { place, before, running };
}
