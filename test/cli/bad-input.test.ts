import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { VerbDefinition } from '../../cli/verb.js';
import { VERBS } from '../../cli/verbs.js';
import { Ledger, openTask } from '../../lib/ledger/ledger.js';
import { document } from '../helpers/events.js';
import { openAs } from '../helpers/lease-place.js';
import { differences, listing } from '../helpers/listing.js';
import { durable, PROGRAM } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Place extends Scratch {
  readonly checkpoint: string;
}

/** Two tasks whose ids begin alike, and a checkpoint that shares all but its last digit with another one. */
async function place(t: ExecutionContext): Promise<Place> {
  const made = scratch(t);
  const { checkpoint, tree } = document<{ checkpoint: string; tree: string }>(made, ['checkpoint']);
  const twin = checkpoint.slice(0, -1) + (checkpoint.endsWith('0') ? '1' : '0');
  const storage = await openAs(t, made);
  for (const task of ['same-a', 'same-b'])
    await openTask(storage, { task, objective: 'x', agent: 'tester', workspace: null });
  await Ledger.open(storage, 'same-a').append(
    () => [
      {
        type: 'checkpoint.taken',
        turn: null,
        ...{ checkpoint: twin, tree, message: 'a twin', files: 1, changed: 0, skipped: 0, skippedList: [] },
        reason: 'manual',
      },
    ],
    { lease: null, agent: 'tester', workspace: null },
  );
  await storage.close();
  return { ...made, checkpoint };
}

/** Leaves with 2 and one line that says what to type or to change, nothing on standard output, and nothing written. */
function refused(t: ExecutionContext, at: Scratch, words: readonly string[], says: RegExp): void {
  const before = listing(at.top);
  const ran = durable(at, words);
  const what = `durable ${words.join(' ')}: ${ran.stderr}`;
  t.is(ran.code, 2, what);
  t.is(ran.stdout, '', what);
  t.regex(ran.stderr, /^git-durable: [^\n]+(?:; |: )[^\n]+\n$/, what);
  t.notRegex(ran.stderr, /defect/, what);
  t.regex(ran.stderr, says, what);
  t.deepEqual(differences(before, listing(at.top)), [], what);
}

/** What a verb needs besides the word in question. */
const NEEDS: Readonly<Record<string, readonly string[]>> = {
  resolve: ['--use-latest'],
  reject: ['--feedback', 'x'],
};

const takesIds = ({ positionals }: VerbDefinition): boolean =>
  positionals[0] !== undefined && positionals[0].name !== 'path' && positionals[0].choices === undefined;

const WITH_ID: readonly (readonly string[])[] = [
  ...VERBS.filter(takesIds).map(({ name }) => [name, ...(NEEDS[name] ?? [])]),
  ...[
    ['recover', '--turn'],
    ['recover', '--keep', '--turn'],
    ['log', '--turn'],
    ['rewind', '--task'],
  ],
];

test('every verb refuses an option it does not have, with its dashes, and a word too many', (t) => {
  const at = scratch(t);
  for (const { name, positionals } of VERBS) {
    refused(
      t,
      at,
      [name, '--no-such'],
      new RegExp(`'durable ${name}' has no option '--no-such'; type 'durable ${name} --help'`),
    );
    if (positionals.some(({ many }) => many)) continue;
    const words = [...positionals.map(({ choices }) => choices?.[0] ?? 'x'), 'one-more'];
    refused(t, at, [name, ...words], /does not take the word 'one-more'; type 'durable /);
  }
});

test('every number that is none is refused with what it takes', (t) => {
  const at = scratch(t);
  for (const { name, options } of VERBS) {
    for (const [option, { type }] of Object.entries(options)) {
      if (type !== 'number') continue;
      const needs = name === 'ask' ? ['--tool', 'x', '--args', '{}'] : [];
      for (const value of ['x', '-1', '1e400'])
        refused(t, at, [name, ...needs, `--${option}`, value], /takes a (?:whole )?number/);
    }
  }
});

test('every id that names nothing, is empty, or holds a newline is refused with where to look', async (t) => {
  const at = await place(t);
  for (const words of WITH_ID) {
    refused(
      t,
      at,
      [...words, 'nosuch'],
      /no [a-z ]+ 'nosuch'; type 'git durable [a-z]+' to see what there is/,
    );
    refused(t, at, [...words, ''], /must not be empty; type '|no [a-z ]+; type 'git durable /);
    refused(t, at, [...words, 'a\nb\u001b[2J'], /'a\\nb\\u001b\[2J'/);
  }
  for (const id of ['nosuch', '', 'a\nb'])
    refused(t, at, ['run', '--task', id, '--', 'true'], /no task(?: '|; type ')/);
  refused(t, at, ['log', '--type', 'nosuch'], /no event type 'nosuch'; the types are task\.opened, /);
});

test('every prefix that names two things is refused with both', async (t) => {
  const at = await place(t);
  for (const words of [
    ['log', 'same'],
    ['verify', 'same'],
    ['rewind', '--task', 'same'],
    ['run', '--task', 'same', '--', 'true'],
  ])
    refused(t, at, words, /'same' names more than one task: same-a, same-b; give more of it/);
  const prefix = at.checkpoint.slice(0, 8);
  const both = new RegExp(`'${prefix}' names more than one [a-z]+: .*${at.checkpoint}.*; give more of it`);
  for (const words of [
    ...[
      ['diff', prefix],
      ['diff', at.checkpoint, prefix],
      ['restore', prefix],
    ],
    ...[
      ['restore', prefix, '--dry-run'],
      ['show', prefix],
    ],
  ])
    refused(t, at, words, both);
  refused(t, at, ['diff', prefix.slice(0, 3)], /is too short for a checkpoint's id/);
});

test('every path that is not one of the work tree is refused', async (t) => {
  const at = await place(t);
  mkdirSync(join(at.dir, 'folder'));
  const rows: readonly (readonly [path: string, says: RegExp])[] = [
    ['..', /'\.\.' is outside the work tree; /],
    ['../elsewhere', /'\.\.\/elsewhere' is outside the work tree; /],
    ['folder/../../elsewhere', /is outside the work tree; /],
    ['/etc/passwd', /'\/etc\/passwd' is outside the work tree; /],
    ['', /an empty path names nothing; /],
    ['.git', /git's own folder/],
    ['.git/config', /git's own folder/],
    ['no such', /nothing is there|no path in checkpoint [0-9a-f]+ 'no such'; type 'git ls-tree /],
    ['new\nline', /\\n/],
  ];
  for (const [path, says] of rows)
    for (const words of [['checkpoint'], ['restore', at.checkpoint], ['restore', at.checkpoint, '--dry-run']])
      refused(t, at, [...words, '--', path], says);
});

test('what a verb cannot begin with is refused before anything is run or written', (t) => {
  const at = scratch(t);
  const rows: readonly (readonly [words: readonly string[], says: RegExp])[] = [
    [['run'], /takes a command after '--'/],
    [['run', '--report', '', '--', 'touch', 'ran'], /nothing was run/],
    [['run', '--report', 'no/such/folder', '--', 'touch', 'ran'], /nothing was run/],
    [['run', '--json', '--', 'touch', 'ran'], /use --report FILE/],
    [['op'], /takes git's arguments after '--'/],
    [['ask', '--args', '{}'], /name the tool/],
    [['ask', '--tool', 'x'], /give its exact arguments/],
    [['ask', '--tool', 'x', '--args', '{'], /is not JSON/],
    [['ask', '--tool', 'x', '--args', '{"a":1,"a":2}'], /can be read in two ways/],
    [['ask', '--tool', 'x', '--args', '@nosuch'], /cannot be read/],
    [['ask', '--tool', 'x', '--args', '{}', '--'], /-- CMD/],
    [['resolve', 'x'], /choose one/],
    [['reject', 'x'], /say why/],
    [['recover', '--keep', '--roll-back'], /choose one/],
    [['recover', '--keep', '--all'], /--all only reports/],
    [['drill', '--agent', 'nosuch'], /no agent is called 'nosuch'/],
    [['-C', 'nosuch', 'status'], /cannot change to 'nosuch'/],
    [['-C', 'README', 'status'], /'README' is no folder/],
  ];
  for (const [words, says] of rows) refused(t, at, words, says);
});

test('a folder whose path is not UTF-8 is refused with the reason, wherever it is named', (t) => {
  const at = scratch(t);
  const script =
    'd=$(printf "fold\\377er"); mkdir "$d" && ln -s "$d" plain && cd "$d" && git init -q . && "$@"';
  const from = (...words: readonly string[]): ReturnType<typeof durable> =>
    at.run('sh', ['-c', script, 'sh', ...words]);
  t.is(from('true').code, 0);
  const program = (words: readonly string[], cwd: string): ReturnType<typeof durable> =>
    at.run('sh', ['-c', `cd "$(printf '${cwd}')" && shift && "$@"`, 'sh', ...commandOf(words)]);
  const reason =
    /^git-durable: [^\n]* lies at a path that is not valid UTF-8, [^\n]*; rename it, or give another folder with -C DIR\n$/;
  for (const ran of [
    program(['status'], 'fold\\377er'),
    program(['run', '--', 'true'], 'fold\\377er'),
    durable(at, ['-C', 'plain', 'status']),
  ]) {
    t.is(ran.code, 2);
    t.regex(ran.stderr, reason);
  }
  t.is(program(['-C', at.dir, 'status'], 'fold\\377er').code, 0);
});

function commandOf(words: readonly string[]): readonly string[] {
  return ['-', process.execPath, PROGRAM, ...words];
}
