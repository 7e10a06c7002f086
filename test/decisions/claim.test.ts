import { readFileSync, readdirSync } from 'node:fs';
import test from 'ava';
import { isCommand } from '../../lib/decisions/claim-commands.js';
import { KnownPaths } from '../../lib/decisions/claim-paths.js';
import { claimsIn, type TextClaim } from '../../lib/decisions/claim-text.js';

const FOLDER = new URL('../../../test/fixtures/claims/', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, FOLDER), 'utf8');
const NAMES = readdirSync(FOLDER).filter((name) => name.endsWith('.md'));
const TREE = JSON.parse(read('tree.json')) as string[];

const words = {
  known: new KnownPaths({ files: TREE, links: new Map(), workTree: '/somewhere/app' }),
  isCommand: (text: string) => isCommand(text, []),
};

interface Expected {
  readonly changed: readonly string[];
  readonly unchanged: readonly string[];
  readonly commands: readonly (readonly [string, string])[];
  readonly testsPass: boolean;
  readonly missing: readonly string[];
  readonly named: readonly string[];
}

function told(claim: TextClaim): Expected {
  const paths = (tokens: TextClaim['changed']): string[] =>
    tokens.map((one) => one.paths.join(' or ')).sort();
  return {
    changed: paths(claim.changed),
    unchanged: paths(claim.unchanged),
    commands: claim.commands.map(({ command, as }) => [command, as] as const),
    testsPass: claim.testsPass,
    missing: claim.missing,
    named: paths(claim.named),
  };
}

const sorted = (expected: Expected): Expected => ({
  ...expected,
  changed: expected.changed.toSorted(),
  unchanged: expected.unchanged.toSorted(),
  named: expected.named.toSorted(),
});

test('there are twenty recorded final texts', (t) => {
  t.is(NAMES.length, 20);
});

for (const name of NAMES) {
  test(`what a final text claims: ${name}`, (t) => {
    const expected = JSON.parse(read(name.replace(/\.md$/, '.json'))) as Expected;
    t.deepEqual(told(claimsIn(read(name), words)), sorted(expected));
  });
}

/** What a sentence claims: `+` changed, `=` unchanged, `$` passed, `>` ran. Nothing where it claims nothing. */
const SENTENCES: readonly (readonly [sentence: string, claims: string])[] = [
  ['Updated `lib/parse.ts` to use the helper from `lib/dates.ts`.', '+lib/parse.ts'],
  ['Changed how `lib/parse.ts` calls `lib/dates.ts`.', ''],
  ['Added `foo()` to `lib/parse.ts`, which is called from `lib/index.ts`.', '+lib/parse.ts'],
  ['Now `lib/parse.ts` imports `lib/dates.ts` instead of `lib/cache.ts`.', ''],
  ['Without touching `lib/parse.ts`, I changed `lib/dates.ts`.', '=lib/parse.ts'],
  ["I haven't modified `lib/parse.ts` beyond formatting.", ''],
  ["I didn't change `lib/parse.ts`'s public interface.", ''],
  ['I did not change the behaviour of `lib/parse.ts`.', ''],
  ['`lib/parse.ts` remains unchanged, apart from comments.', ''],
  ['`lib/parse.ts` has not been updated yet.', ''],
  ['I made no changes to `lib/parse.ts`.', '=lib/parse.ts'],
  ['Fixed the crash in `lib/parse.ts`.', ''],
  ['Read `lib/parse.ts` and then changed `lib/dates.ts`.', '+lib/dates.ts'],
  ['Updated `lib/parse.ts`, then restored it to its original state.', ''],
  ['I added a temporary script, `lib/parse.ts`, and removed it.', ''],
  ['I noticed `lib/parse.ts` was modified by another process.', ''],
  ['Updated lib/parse.ts and README.md', '+README.md +lib/parse.ts'],
  ['`npm test` passes now, but `npm run lint` does not.', '$npm test'],
  ['`npm test` passes except for one flaky test.', ''],
  ['`npm test` was green before my change.', ''],
  ['I ran `npm test` and it failed.', '>npm test'],
  ['Ran `npm test`, `npm run lint` – all green.', '$npm run lint $npm test'],
  ['Make sure `npm test` passes.', ''],
  ['All tests pass except one.', ''],
  ['All tests should pass.', ''],
  ['All 12 tests passed, 0 failed.', 'tests'],
];

/** True of another place or person, and read as the turn's own claim all the same: the README names these kinds. */
const MISREAD: readonly (readonly [sentence: string, claims: string])[] = [
  ['The commit message reads: updated `lib/parse.ts`.', '+lib/parse.ts'],
  ['The script ran, and wrote `lib/parse.ts`.', '+lib/parse.ts'],
  ['Updated `lib/parse.ts` on the other branch.', '+lib/parse.ts'],
  ['`npm test` passes on main.', '$npm test'],
];

for (const [sentence, claims] of [...SENTENCES, ...MISREAD]) {
  test(`what a sentence claims: ${sentence}`, (t) => {
    const { changed, unchanged, commands, testsPass } = told(claimsIn(sentence, words));
    const found = [
      ...changed.map((path) => `+${path}`),
      ...unchanged.map((path) => `=${path}`),
      ...commands.map(([command, as]) => `${as === 'passed' ? '$' : '>'}${command}`),
      ...(testsPass ? ['tests'] : []),
    ];
    t.is(found.sort().join(' '), claims);
  });
}

test('a text made to be slow is read all the same, and claims nothing', (t) => {
  const repeated = [
    '`',
    'I updated ',
    '[a',
    '**a',
    '"x ',
    "'a ",
    '`lib/parse.ts`, ',
    'lib/parse.ts, ',
    'In `lib/parse.ts`, ',
  ];
  for (const text of repeated)
    t.deepEqual(told(claimsIn(text.repeat(65_536 / text.length), words)).changed, [], text);
});
