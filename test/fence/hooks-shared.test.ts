import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { killKeeper } from '../helpers/keeper.js';
import { durable, startDurable, type Running } from '../helpers/program.js';
import { stateOf, until } from '../helpers/processes.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const MINE = '#!/bin/sh\n# of a person\nexit 0\n';

/** Two repositories whose hooks lie in one folder, as `git config --global core.hooksPath` makes it. */
function shared(t: ExecutionContext): { readonly places: [Scratch, Scratch]; readonly folder: string } {
  const places: [Scratch, Scratch] = [scratch(t), scratch(t)];
  const folder = join(places[0].top, 'hooks of all');
  places[0].write('../hooks of all/pre-commit', MINE, 0o755);
  for (const place of places) {
    place.git('config', 'core.hooksPath', folder);
    t.is(durable(place, ['init']).code, 0);
  }
  return { places, folder };
}

async function open(t: ExecutionContext, place: Scratch): Promise<Running> {
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', 'echo open; read -r _']);
  t.is(await running.line(), 'open');
  return running;
}

async function close(running: Running): Promise<void> {
  running.child.stdin.end('\n');
  await running.ended;
}

const untouched = (t: ExecutionContext, folder: string): void => {
  t.deepEqual(readdirSync(folder), ['pre-commit']);
  t.is(readFileSync(join(folder, 'pre-commit'), 'utf8'), MINE);
};

test('two repositories with one hooks folder: the hooks stay until the last of their turns is over, and the folder is as it was', async (t) => {
  const { places, folder } = shared(t);
  const [first, second] = [await open(t, places[0]), await open(t, places[1])];
  await close(first);
  t.true(existsSync(join(folder, 'reference-transaction')));
  t.is(places[1].run('git', ['branch', 'of-a-person']).code, 128);
  t.is(places[0].run('git', ['branch', 'of-a-person']).code, 0);
  t.is(durable(places[0], ['uninstall']).code, 0);
  t.is(places[1].run('git', ['branch', 'of-a-person']).code, 128);
  await close(second);
  untouched(t, folder);
});

test('a repository whose turn is dead keeps no hook in a folder that others use', async (t) => {
  const { places, folder } = shared(t);
  places[0].git('config', 'durable.fence', 'hooks');
  const first = await open(t, places[0]);
  await killKeeper(places[0]);
  const second = await open(t, places[1]);
  first.child.kill('SIGKILL');
  await first.ended;
  await close(second);
  untouched(t, folder);
});

test('a lock that its dead owner has left in the folder is in nobody’s way', async (t) => {
  const { places, folder } = shared(t);
  const first = await open(t, places[0]);
  const ticket = readFileSync(join(places[0].dir, '.git', 'index.lock'), 'utf8');
  first.child.kill('SIGKILL');
  await first.ended;
  writeFileSync(join(folder, '.durable-lock'), ticket);
  const second = await open(t, places[1]);
  t.true(existsSync(join(folder, 'reference-transaction')));
  await close(second);
  t.is(durable(places[0], ['recover', '--keep']).code, 0);
  untouched(t, folder);
});

test('a turn that begins while another work tree’s turn is putting a hook in front of a person’s loses neither', async (t) => {
  const place = scratch(t);
  place.write('.git/hooks/pre-commit', MINE, 0o755);
  const [one = '', two = ''] = ['one', 'two'].map((name) => {
    place.git('worktree', 'add', '-q', `../${name}`);
    return join(place.top, name);
  });
  for (const cwd of [one, two]) {
    t.is(durable(place, ['init'], { cwd }).code, 0);
    t.is(durable(place, ['run', '--', 'true'], { cwd }).code, 0);
  }
  // Before the hook's second name is made, and after it was seen that there is a hook.
  const env = { DURABLE_FAULTS: 'fence.hook:unlink:before#2=stop' };
  const first = startDurable(t, place, ['-C', one, 'run', '--', 'true'], { env });
  await until('it is at work in the folder', () => stateOf(first.pid) === 'T');
  t.true(existsSync(join(place.dir, '.git/hooks/.durable-lock')));
  t.is(durable(place, ['run', '--', 'true'], { cwd: two }).code, 0);
  process.kill(first.pid, 'SIGCONT');
  t.is((await first.ended).code, 0, first.said);
  t.is(readFileSync(join(place.dir, '.git/hooks/pre-commit'), 'utf8'), MINE);
  t.deepEqual(
    readdirSync(join(place.dir, '.git/hooks')).filter((name) => name.includes('durable')),
    [],
  );
});
