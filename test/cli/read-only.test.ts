import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { messageOf } from '../../lib/errors.js';
import { diskError } from '../../lib/git/disk.js';
import { document, events } from '../helpers/events.js';
import { interruptedRun } from '../helpers/interrupted-run.js';
import { PROGRAM } from '../helpers/program.js';
import { scratch, type Ran, type Scratch } from '../helpers/scratch.js';

/** Mounts its first argument read-only, for itself alone, and runs the rest. */
const MOUNTED = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && cd "$1" && shift && exec "$@"';
const asMounted = (dir: string): string[] => ['unshare', '-rm', 'sh', '-c', MOUNTED, 'sh', dir];

/** A work tree with an interrupted turn, an untracked file, and a checkpoint. */
async function interruptedPlace(t: ExecutionContext): Promise<Scratch & { readonly checkpoint: string }> {
  const place = scratch(t);
  const { checkpoint } = document<{ checkpoint: string }>(place, ['checkpoint']);
  await interruptedRun(t, place, 'echo changed > README; echo made > made');
  const tmp = join(place.top, 'tmp');
  mkdirSync(tmp, { mode: 0o777 });
  return { ...place, env: { ...place.env, TMPDIR: tmp }, checkpoint };
}

function readers(place: Scratch, checkpoint: string): (readonly string[])[] {
  const event = String(events(place).at(-1)?.['commit']);
  return [
    ...[['status'], ['status', '--exit-code'], ['lease'], ['recover'], ['recover', '--all']],
    ...[['log'], ['log', '-n', '1'], ['log', '--usage'], ['show', event], ['show', checkpoint], ['verify']],
    ...[['checkpoints'], ['diff', checkpoint], ['diff', checkpoint, checkpoint], ['rewind']],
    ...[['restore', checkpoint, '--dry-run'], ['approvals'], ['conflicts'], ['init', '--dry-run']],
  ];
}

/** Says of each reading verb what it says where it could write, of doctor that nothing can be written, and leaves nothing in TMPDIR. */
function readsAll(
  t: ExecutionContext,
  place: Scratch & { readonly checkpoint: string },
  closed: (words: readonly string[]) => Ran,
  close: () => void,
): void {
  const asked = readers(place, place.checkpoint);
  const before = asked.map((words) => place.run(process.execPath, [PROGRAM, ...words]));
  close();
  asked.forEach((words, index) => {
    t.deepEqual(closed(words), before[index], words.join(' '));
  });
  t.deepEqual(readdirSync(join(place.top, 'tmp')), []);
  const { code, stdout } = closed(['doctor', '--json']);
  t.is(code, 3);
  const { problems } = JSON.parse(stdout) as { problems: readonly { code: string; detail: string }[] };
  const named = problems.filter((one) => one.code === 'not-writable').map(({ detail }) => detail);
  t.is(named.length, 1);
  t.true(named[0]?.includes(`'${join(place.dir, '.git')}'`), named[0]);
  t.true(named[0]?.includes(`'${join(place.dir, '.git/objects')}'`), named[0]);
}

test('every reading verb says on a read-only file system what it says on any other, doctor names it, and writing ones say which it is', async (t) => {
  const place = await interruptedPlace(t);
  const [unshare = '', ...mounting] = asMounted(place.dir);
  if (place.run(unshare, [...mounting, 'true']).code !== 0) {
    // No right to mount here: what is left to hold is the sentence. The next test reads in a closed git dir.
    const error = diskError(Object.assign(new Error('EROFS'), { code: 'EROFS' }), '/x');
    t.regex(messageOf(error), /^'\/x' lies on a read-only file system; /);
    return;
  }
  const closed = (words: readonly string[]): Ran =>
    place.run(unshare, [...mounting, process.execPath, PROGRAM, ...words]);
  readsAll(t, place, closed, () => undefined);
  for (const words of [
    ['checkpoint'],
    ['recover', '--keep'],
    ['run', '--recover', 'keep', '--', 'true'],
    ['init'],
  ]) {
    const { code, stderr } = closed(words);
    t.is(code, 1, words.join(' '));
    t.regex(
      stderr,
      /^git-durable: '[^\n]*' lies on a read-only file system; [^\n]*mount it writable[^\n]*\n$/,
    );
  }
});

test('every reading verb says in a git dir that may not be written what it says in any other, and doctor names it', async (t) => {
  const place = await interruptedPlace(t);
  const isRoot = process.getuid?.() === 0;
  t.teardown(() => {
    place.run('chmod', ['-R', 'u+w', '.git']);
  });
  // Permission bits do not hold root back: another user, to whom it all belongs.
  const user = isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : [];
  const closed = (words: readonly string[]): Ran => {
    const [program = '', ...args] = [...user, process.execPath, PROGRAM, ...words];
    return place.run(program, args);
  };
  readsAll(t, place, closed, () => {
    if (isRoot) place.run('chown', ['-R', '65534:65534', place.top]);
    place.run('chmod', ['-R', 'a-w', '.git']);
  });
  const { code, stderr } = closed(['checkpoint']);
  t.is(code, 1);
  t.regex(
    stderr,
    /^git-durable: permission denied on '[^\n]*type the same again after: chmod u\+rwx '[^\n]*\n$/,
  );
});

test('what belongs to another user is refused in one sentence, and read where it may be', async (t) => {
  const place = await interruptedPlace(t);
  if (process.getuid?.() !== 0) {
    // An ordinary user has no other one at hand: bits that keep the owner out stand for it.
    place.run('chmod', ['0', '.git/durable']);
    t.teardown(() => {
      place.run('chmod', ['700', '.git/durable']);
    });
  }
  place.run('git', ['config', '--global', 'safe.directory', '*']);
  place.run('chmod', ['-R', 'a+rX', join(place.top, 'home')]);
  place.run('chmod', ['755', place.top]);
  const user = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--clear-groups'] : [];
  for (const words of [
    ...readers(place, place.checkpoint),
    ['doctor', '--fix'],
    ['checkpoint'],
    ['uninstall'],
  ]) {
    const [program = '', ...args] = [...user, process.execPath, PROGRAM, ...words];
    const { code, stderr } = place.run(program, args);
    t.true([0, 1, 3].includes(code ?? -1), `${words.join(' ')}: ${stderr}`);
    t.regex(stderr, /^(?:git-durable: permission denied on '[^\n]*\n)?$/, words.join(' '));
  }
});
