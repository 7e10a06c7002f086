/** Appends and checkpoints beside git's own maintenance, as a user or a scheduler runs it. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { systemHost } from '../../lib/host.js';
import { openRepository } from '../../lib/repository.js';
import { Judge } from '../helpers/ledger-judge.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { placeTree, readTree, treeAt, treeDigest } from '../helpers/tree-state.js';

const CHILD = fileURLToPath(new URL('../helpers/race-child.js', import.meta.url));

const MAINTENANCE = [
  ['pack-refs', '--all'],
  ['gc', '--quiet', '--prune=now'],
  ['prune', '--expire=now'],
  ['repack', '-adq'],
];

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function start(place: Scratch, program: string, args: readonly string[]): Promise<Ended> {
  const child = spawn(program, args, { cwd: place.dir, env: place.env, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      resolve({ code, stdout, stderr });
    });
  });
}

/** Every acknowledged event and checkpoint is there, by the product's word first and then by git's alone. */
async function nothingLost(t: ExecutionContext, place: Scratch, said: readonly string[]): Promise<void> {
  const repository = await openRepository(place.dir, { ...systemHost(), env: place.env });
  for (const task of repository.tasks()) t.deepEqual((await repository.verify(task)).findings, []);
  const judge = new Judge(place.dir, place.env);
  for (const line of said.filter((text) => text.startsWith('checkpoint'))) {
    const [, commit = '', path = '', digest = ''] = line.split(' ');
    // The first reader puts back from the journal what a prune took (DESIGN.md, invariant 5); then git has it as well.
    await repository.restore({ checkpoint: commit });
    t.is(sha256(readFileSync(join(place.dir, path))), digest, `checkpoint ${commit}`);
    t.is(judge.checkpoint(commit), treeDigest(readTree(place.dir)));
  }
  await repository.close();
  const { events, faults } = judge.ledger('raced');
  t.deepEqual(faults, []);
  const appended = new Map(events.map(({ commit, key }) => [commit, key]));
  for (const line of said.filter((text) => text.startsWith('event'))) {
    const [, commit = '', ...key] = line.split(' ');
    t.is(appended.get(commit), key.join(' '));
  }
  const keys = events.flatMap(({ key }) => (key === null ? [] : [key]));
  t.is(new Set(keys).size, keys.length, 'no event twice');
  t.deepEqual(judge.fsck(), []);
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');

test('8 processes with 250 appends and 4 checkpoints each beside pack-refs, gc, prune and repack in a loop: nothing is lost', async (t) => {
  t.timeout(20 * 60 * 1000);
  const place = scratch(t);
  placeTree(place.dir, treeAt(0));
  place.git('add', '-A');
  place.git('commit', '-q', '-m', 'second');
  let racing = true;
  const rounds = MAINTENANCE.map(async (args) => {
    let runs = 0;
    for (; racing; runs += 1) await start(place, 'git', args);
    return runs;
  });
  const children = await Promise.all(
    Array.from({ length: 8 }, (_, number) =>
      start(place, execPath, [CHILD, place.dir, `runtime-${String(number)}`, '250', '4']),
    ),
  );
  racing = false;
  const runs = await Promise.all(rounds);
  t.log(MAINTENANCE.map(([name], index) => `${name ?? ''} ${String(runs[index])} times`).join(', '));
  for (const child of children) t.is(child.code, 0, child.stderr);
  t.true(runs.every((count) => count >= 1));
  const said = children.flatMap(({ stdout }) => lines(stdout));
  t.is(said.filter((line) => line.startsWith('event')).length, 2000);
  t.is(said.filter((line) => line.startsWith('checkpoint')).length, 32);
  await nothingLost(t, place, said);
});

/** A work tree file whose blob an old pack has, reachable from nothing: git would not write it again. */
function packUnreachable(place: Scratch): void {
  place.git('checkout', '-q', '-b', 'side');
  place.write('precious', 'in the old pack, and reachable from nothing\n');
  place.git('add', 'precious');
  place.git('commit', '-q', '-m', 'side');
  place.git('repack', '-adq');
  place.git('checkout', '-q', 'main');
  place.git('branch', '-q', '-D', 'side');
  place.git('reflog', 'expire', '--expire=now', '--all');
}

/** A blob that nothing reaches, in the first folder that prune looks into. */
function firstGarbage(place: Scratch): void {
  for (let number = 0; ; number += 1) {
    const input = `garbage ${String(number)}\n`;
    const named = place.run('git', ['hash-object', '--stdin'], { input }).stdout;
    if (!named.startsWith('00')) continue;
    place.run('git', ['hash-object', '-w', '--stdin'], { input });
    return;
  }
}

/**
 * Runs a git that stops itself at its first removal of `path`, after it has listed what is reachable; does `meanwhile`,
 * and lets it go on to its end.
 */
async function stoppedAtRemoval(
  t: ExecutionContext,
  place: Scratch,
  { args, paths, meanwhile }: { args: string[]; paths: string[]; meanwhile: () => Promise<void> },
): Promise<void> {
  const trace = join(place.top, 'trace');
  appendFileSync(trace, '');
  const only = paths.flatMap((path) => ['-P', path]);
  const inject = ['-e', 'trace=unlink,unlinkat', '-e', 'inject=unlink,unlinkat:signal=SIGSTOP:when=1'];
  const git = start(place, 'strace', ['-f', '-o', trace, ...inject, ...only, 'git', ...args]);
  const pid = await Promise.race([git.then(() => 0), stoppedPid(trace)]);
  t.not(pid, 0, `git ${args.join(' ')} never came to a removal: ${readFileSync(trace, 'utf8')}`);
  if (pid === 0) return;
  await meanwhile();
  process.kill(pid, 'SIGCONT');
  const { code, stderr } = await git;
  t.is(code, 0, stderr);
}

/** Resolves with the process that strace says has stopped. */
async function stoppedPid(trace: string): Promise<number> {
  for (;;) {
    const stopped = /^(\d+)\s+--- stopped by SIGSTOP ---$/m.exec(readFileSync(trace, 'utf8'));
    if (stopped !== null) return Number(stopped[1]);
    await pause(5);
  }
}

for (const maintenance of ['prune', 'repack']) {
  test(`git ${maintenance}, stopped between listing and deleting, takes nothing that was published meanwhile`, async (t) => {
    const place = scratch(t);
    placeTree(place.dir, treeAt(0));
    place.git('add', '-A');
    place.git('commit', '-q', '-m', 'second');
    packUnreachable(place);
    firstGarbage(place);
    const before = await start(place, execPath, [CHILD, place.dir, 'before', '3', '1']);
    t.is(before.code, 0, before.stderr);
    const said = lines(before.stdout);
    const meanwhile = async (): Promise<void> => {
      place.write('precious', 'in the old pack, and reachable from nothing\n');
      place.write('new', 'written while git stood still\n');
      const child = await start(place, execPath, [CHILD, place.dir, 'meanwhile', '3', '1']);
      t.is(child.code, 0, child.stderr);
      said.push(...lines(child.stdout));
    };
    const packs = place.run('sh', ['-c', 'ls .git/objects/pack/*.idx']).stdout;
    const first = lines(packs).filter((path) => !readKept(place, path));
    const args = maintenance === 'prune' ? ['prune', '--expire=now'] : ['repack', '-adq'];
    const paths = maintenance === 'prune' ? [] : first.flatMap((path) => [path, join(place.dir, path)]);
    await stoppedAtRemoval(t, place, { args, paths, meanwhile });
    const events = said.filter((line) => line.startsWith('event'));
    const newest = said.filter((line) => line.startsWith('checkpoint')).slice(-1);
    await nothingLost(t, place, [...events, ...newest]);
  });
}

function readKept(place: Scratch, idx: string): boolean {
  return place.run('test', ['-e', idx.replace(/\.idx$/, '.keep')]).code === 0;
}
