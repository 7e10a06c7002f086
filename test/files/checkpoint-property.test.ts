/**
 * Byte exactness: random trees with every odd thing a repository may do to bytes or names, random edits, checkpoints and
 * restores; judged by walking and hashing the work tree, and by the hash of each blob in the checkpoint.
 * DURABLE_TEST_SEED and DURABLE_TEST_RUNS change what is tried.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { isAbsence } from '../../lib/git/disk.js';
import {
  checkpointPlace,
  settle,
  walk,
  type CheckpointPlace,
  type Walk,
} from '../helpers/checkpoint-place.js';
import { seedOf } from '../helpers/random.js';
import type { Scratch } from '../helpers/scratch.js';

/** latin1 strings, each character one byte. Some are folders of others, two differ in case only, one is no UTF-8. */
const PATHS = [
  ...[
    'plain.txt',
    'a b',
    'quo"te\'s',
    'new\nline',
    '-dash',
    '--all',
    ':(glob)*',
    '*',
    '#x',
    '!x',
    ' lead',
    'tail ',
  ],
  ...[
    '\xff\xfe bytes',
    'dir \xff/file',
    'git~1',
    'GIT~2/x',
    'Case',
    'case',
    'back\\slash',
    'tab\there',
    '.hidden',
  ],
  ...[
    'p',
    'p/q',
    'p/q/r',
    'p/q/s.txt',
    'deep/er/and/deeper.crlf',
    'eol.crlf',
    'id.id',
    'sixteen.u16',
    'big.lfs',
  ],
  ...['assumed', 'skipped', 'tracked.ign', '.gitmodules', '.mailmap', 'sub/.gitattributes', 'sub/x.txt'],
];
const IGNORED = ['loose.ign', 'other.ign'];
const CONTENTS = [
  ...[
    '',
    'a\n',
    'b\n',
    'a\r\nb\nc\r',
    '$Id$\n',
    '$Id: 0123 $\r\n',
    'no newline',
    '\r\n\r\n',
    'abc',
    'xyz',
    '\0binary\r\n',
  ],
  ...[
    '\xff\xfea\0\r\0\n\0',
    '\xfe\xff\0a\0\n',
    '* -text\n',
    '* text eol=crlf\n',
    'lower case\n',
    'UPPER CASE\n',
  ],
  'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n',
];
const TARGETS = ['nowhere', 'plain.txt', 'p', '..', '/', 'deep/er', '\xff'];

type Edit = typeof edit extends fc.Arbitrary<infer T> ? T : never;
const path = fc.nat(PATHS.length - 1);
const edit = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant('write' as const), path, content: fc.nat(CONTENTS.length - 1) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('remove' as const), path }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('chmod' as const), path }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('link' as const), path, target: fc.nat(TARGETS.length - 1) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('twist' as const), path }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('ignored' as const), content: fc.nat(CONTENTS.length - 1) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('git' as const), command: fc.nat(3) }) },
);
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ edits: fc.array(edit, { minLength: 1, maxLength: 12 }), settled: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ restore: fc.nat(30) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

test('whatever the work tree holds and whatever git would do to it, a checkpoint and a restore are byte-exact', async (t) => {
  t.timeout(600_000);
  const seed = seedOf(process.env);
  const numRuns = Number(process.env['DURABLE_TEST_RUNS'] ?? 6);
  t.log(`seed ${String(seed)}, ${String(numRuns)} runs`);
  const property = fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 12 }), async (steps) => {
    const place = await checkpointPlace(t, { prepare });
    try {
      await play(place, steps);
    } catch (error) {
      t.log(error);
      throw error;
    } finally {
      await place.storage.close();
      rmSync(place.top, { recursive: true, force: true });
    }
  });
  await fc.assert(property, {
    seed,
    numRuns,
    endOnFailure: process.env['DURABLE_TEST_SHRINK'] === undefined,
  });
  t.pass();
});

function prepare(place: Scratch): void {
  const { git, write } = place;
  git('config', 'core.autocrlf', 'true');
  git('config', 'core.safecrlf', 'false');
  git('config', 'filter.loud.clean', 'tr a-z A-Z');
  git('config', 'filter.loud.smudge', 'tr A-Z a-z');
  git('config', 'filter.loud.required', 'true');
  git('config', 'filter.broken.clean', 'false');
  git('config', 'filter.broken.required', 'true');
  write(
    '.gitattributes',
    '* text=auto ident\n*.crlf text eol=crlf\n*.u16 working-tree-encoding=UTF-16 text\n*.lfs filter=loud\n*.lfs2 filter=broken\n',
  );
  write('.gitignore', '*.ign\n');
  for (const name of ['assumed', 'skipped', 'plain.txt', 'tracked.ign', 'p/q/r']) write(name, 'first\n');
  git('add', '-f', '.');
  git('commit', '-q', '-m', 'second');
  git('update-index', '--assume-unchanged', 'assumed');
  git('update-index', '--skip-worktree', 'skipped');
  mkdirSync(join(place.dir, 'nested/empty repository'), { recursive: true });
  place.run('git', ['init', '-q', 'nested/empty repository']);
  place.run('git', ['clone', '-q', '.', 'nested/clone']);
}

interface Moment {
  readonly checkpoint: string;
  readonly walk: Walk;
}

async function play(place: CheckpointPlace, steps: readonly Step[]): Promise<void> {
  const moments: Moment[] = [];
  for (const one of steps) {
    if ('edits' in one) {
      for (const change of one.edits) perform(place, change);
      const before = scoped(place);
      if (one.settled) await settle();
      const { checkpoint, tree, files } = await place.checkpoint();
      demandSame(treeWalk(place, tree), before, 'the checkpoint against the work tree');
      demandSame(scoped(place), before, 'the work tree after a checkpoint');
      if (files !== before.size) throw new Error(`${String(files)} files said, ${String(before.size)} there`);
      moments.push({ checkpoint, walk: before });
      continue;
    }
    const moment = moments[one.restore % Math.max(1, moments.length)];
    if (moment === undefined) continue;
    const before = scoped(place);
    const ignored = strays(place);
    const done = await place.restore(moment.checkpoint);
    demandSame(scoped(place), moment.walk, 'the work tree after a restore');
    demandSame(strays(place), ignored, 'ignored files and nested repositories after a restore');
    if (done.checkpoint !== null) moments.push({ checkpoint: done.checkpoint, walk: before });
  }
}

const isStray = (path: string): boolean => path.startsWith('nested/') || IGNORED.includes(path);
const scoped = (place: Scratch): Walk => walk(place.dir, isStray);

function strays(place: Scratch): Walk {
  const all = walk(place.dir);
  return new Map([...all].filter(([path]) => isStray(path)));
}

/** A tree's files as `walk` describes them. */
function treeWalk(place: Scratch, tree: string): Walk {
  const listing = spawnSync('git', ['ls-tree', '-r', '-z', tree], { cwd: place.dir, env: place.env }).stdout;
  const found = new Map<string, string>();
  for (const line of listing.toString('latin1').split('\0')) {
    if (line === '') continue;
    const [mode = '', , oid = ''] = line.slice(0, line.indexOf('\t')).split(' ');
    const bytes = spawnSync('git', ['cat-file', 'blob', oid], { cwd: place.dir, env: place.env }).stdout;
    const digest = createHash('sha256').update(bytes).digest('hex');
    const kind = mode === '100755' ? `program ${digest}` : `file ${digest}`;
    found.set(
      line.slice(line.indexOf('\t') + 1),
      mode === '120000' ? `link ${bytes.toString('latin1')}` : kind,
    );
  }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function demandSame(found: Walk, wanted: Walk, what: string): void {
  const wrong = [...new Set([...found.keys(), ...wanted.keys()])].filter(
    (key) => found.get(key) !== wanted.get(key),
  );
  if (wrong.length === 0) return;
  const lines = wrong.map(
    (key) => `${JSON.stringify(key)}: ${String(found.get(key))} and not ${String(wanted.get(key))}`,
  );
  throw new Error(`${what} differs:\n${lines.join('\n')}`);
}

function perform(place: Scratch, change: Edit): void {
  if (change.do === 'git') runGit(place, change.command);
  else if (change.do === 'ignored')
    writeFileSync(join(place.dir, 'loose.ign'), bytes(CONTENTS[change.content]));
  else {
    const target = placeOf(place, PATHS[change.path] ?? '');
    if (change.do === 'write') {
      makeRoom(place, PATHS[change.path] ?? '');
      writeFileSync(target, bytes(CONTENTS[change.content]));
    } else if (change.do === 'link') {
      // Named as skipped, by a test of its own.
      if (PATHS[change.path] === '.gitmodules') return;
      makeRoom(place, PATHS[change.path] ?? '');
      symlinkSync(bytes(TARGETS[change.target]), target);
    } else if (change.do === 'remove') remove(target);
    else disturb(target, change.do);
  }
}

/** Below a file or beyond a circle of links there is nothing to remove. */
function remove(target: Buffer): void {
  try {
    rmSync(target, { force: true, recursive: true });
  } catch (error) {
    if (!isAbsence(error)) throw error;
  }
}

/** Flips an exec bit, or changes bytes so that neither size nor time of change shows it. */
function disturb(target: Buffer, how: 'chmod' | 'twist'): void {
  if (!existsSync(target)) return;
  const stat = lstatSync(target);
  if (!stat.isFile()) return;
  if (how === 'chmod') {
    chmodSync(target, (stat.mode ^ 0o111) & 0o777);
    return;
  }
  const content = readFileSync(target);
  writeFileSync(
    target,
    content.map((byte) => byte ^ 1),
  );
  utimesSync(target, stat.atime, stat.mtime);
}

function runGit(place: Scratch, command: number): void {
  const commands = [
    // Were its removal staged, the file would be an ignored one when it comes back.
    ['add', '--ignore-errors', '-A', '--', '.', ':(exclude)tracked.ign'],
    ['commit', '-q', '--allow-empty', '-m', 'more'],
    ['reset', '-q'],
    ['status', '--short'],
  ];
  // Whatever it answers: a user's git may fail on such a tree, ours may not.
  place.run('git', commands[command] ?? []);
}

/** Removes what is where the path or its folders are to be. */
function makeRoom(place: Scratch, name: string): void {
  const target = placeOf(place, name);
  for (let at = name.indexOf('/'); at !== -1; at = name.indexOf('/', at + 1)) {
    const folder = placeOf(place, name.slice(0, at));
    if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() === false) rmSync(folder);
  }
  rmSync(target, { force: true, recursive: true });
  const parent = placeOf(place, dirname(name));
  if (!existsSync(parent)) mkdirSync(parent, { recursive: true });
}

const placeOf = (place: Scratch, name: string): Buffer =>
  Buffer.concat([Buffer.from(`${place.dir}/`), bytes(name)]);
const bytes = (text: string | undefined): Buffer => Buffer.from(text ?? '', 'latin1');
