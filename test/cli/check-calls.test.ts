import test from 'ava';
import { type Claim } from '../../lib/index.js';
import { codes, command, edit, open, start, told, withFiles } from '../helpers/checked.js';
import { scratch } from '../helpers/scratch.js';

test('a command that failed the last time makes the claim that it passes false; mended, it holds', async (t) => {
  const place = scratch(t);
  const end = { result: '`npm test` passes.' };
  const failed = await told(place, end, async (turn) => {
    await command(turn, 'npm test', 0);
    await command(turn, 'cd web && npm test -- --all 2>&1', 1);
  });
  t.deepEqual(codes(failed), ['command-failed npm test']);
  t.deepEqual(
    failed.ran.map((one) => [one.command, one.exit]),
    [
      ['npm test', 0],
      ['cd web && npm test -- --all 2>&1', 1],
    ],
  );
  const mended = await told(place, end, async (turn) => {
    await command(turn, 'npm test', 1);
    await command(turn, 'npm run test', 0);
  });
  t.deepEqual([mended.verdict, mended.commands[0]?.result], ['holds', 'passed']);
});

for (const [line, exit, result] of [
  ['npm run build && npm test', 1, 'not-judged'],
  ['npm run build && npm test', 0, 'passed'],
  ['npm test | tail -3', 0, 'not-judged'],
  ['npm test; true', 0, 'not-judged'],
  ['npm test || true', 0, 'not-judged'],
  ['CI=1 timeout 60 npm test 2>&1', 1, 'failed'],
  ["bash -lc 'npm test'", 1, 'not-judged'],
] as const) {
  test(`what the exit code ${String(exit)} of '${line}' says of npm test: ${result}`, async (t) => {
    const place = scratch(t);
    const found = await told(place, { result: '`npm test` passes.' }, (turn) => command(turn, line, exit));
    t.is(found.commands[0]?.result, result);
  });
}

test('a command that no call ran is found, unless a script could have run it', async (t) => {
  const place = scratch(t);
  const end = { result: 'I ran `npm run lint`, and all tests pass.' };
  const never = await told(place, end, (turn) => command(turn, 'git status', 0));
  t.deepEqual(codes(never), ['command-never-run npm run lint', 'tests-never-run the tests']);
  for (const line of ['./ci.sh', 'make all', 'npm run check']) {
    const found = await told(place, end, (turn) => command(turn, line, 0));
    t.deepEqual([found.findings, found.commands[0]?.result], [[], 'not-judged'], line);
  }
});

test('"all tests pass" is held to the last test run, and looking at a test is none', async (t) => {
  const place = scratch(t);
  const end = { result: 'All tests pass.' };
  const looked = await told(place, end, async (turn) => {
    await command(turn, 'pytest -q', 0);
    await command(turn, 'grep -rn todo test', 1);
  });
  t.deepEqual([looked.verdict, looked.tests], ['holds', 'passed']);
  const failed = await told(place, end, (turn) => command(turn, 'pytest -q', 1));
  t.deepEqual([codes(failed), failed.tests], [['tests-failed the tests'], 'failed']);
});

test('a structured claim is held to the letter: files, the whole list, commands, exit codes', async (t) => {
  const place = scratch(t);
  withFiles(place, 'a', 'b', 'c', 'd');
  const claim: Claim = {
    changed: ['a', './b'],
    unchanged: ['c'],
    complete: true,
    commands: [
      { command: 'npm test', exit: 0 },
      { command: 'npm run lint', exit: 2 },
      { command: 'npm run build' },
      { command: 'npm pack' },
    ],
  };
  const found = await told(place, { claim, result: 'Updated `d`.' }, async (turn) => {
    for (const path of ['a', 'c', 'd']) await edit(place, turn, path);
    await command(turn, 'npm test', 1);
    await command(turn, 'npm run lint', 2);
    await command(turn, 'npm run build', 1);
  });
  t.is(found.source, 'structured');
  t.deepEqual(codes(found), [
    'claimed-not-changed b',
    'changed-though-denied c',
    'changed-not-claimed c',
    'changed-not-claimed d',
    'command-failed npm test',
    'command-never-run npm pack',
  ]);
});

test('a structured claim that holds, and one of nothing changed', async (t) => {
  const place = scratch(t);
  const whole = await told(place, { claim: { changed: ['a'], complete: true } }, (turn) =>
    edit(place, turn, 'a'),
  );
  t.deepEqual([whole.verdict, whole.findings], ['holds', []]);
  const none = await told(place, { claim: { complete: true } });
  t.deepEqual([none.verdict, none.findings], ['holds', []]);
});

test('a claim that leads out of the work tree, or is none, is refused, and the turn is still open', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const turn = await start(repository);
  await t.throwsAsync(turn.finish({ outcome: 'completed', claim: { changed: ['../x'] } }), {
    code: 'path-outside',
  });
  t.is((await repository.state('talk')).turn?.state, 'open');
  await repository.close();
});

test('a structured claim that says of one path both that it was changed and that it was not is refused with its name, and the turn is still open', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const turn = await start(repository);
  const claim: Claim = { changed: ['b', 'a'], unchanged: ['./a'] };
  t.throws(
    () => {
      turn.conclude({ claim });
    },
    { code: 'usage', message: /'a'/ },
  );
  await t.throwsAsync(turn.finish({ outcome: 'completed', claim }), { code: 'usage', message: /'a'/ });
  t.is((await repository.state('talk')).turn?.state, 'open');
  await repository.close();
});

test('what an ignored file became nobody knows; other files that are nowhere were not changed', async (t) => {
  const place = scratch(t);
  place.write('.gitignore', 'out/\n');
  const claim = { changed: ['out/bundle.js', 'nowhere.js'] };
  const found = await told(place, { claim }, () => {
    place.write('out/bundle.js', '1\n');
    return Promise.resolve();
  });
  t.deepEqual(codes(found), ['claimed-not-changed nowhere.js']);
  t.is(found.files[0]?.result, 'not-judged');
});

test('a turn without checkpoints is judged by what its calls say, which proves no claim wrong', async (t) => {
  const place = scratch(t);
  withFiles(place, 'a', 'b');
  const end = { checkpoint: false, result: 'Updated `README`. Updated "a" and `./b`.' };
  const found = await told(place, end, (turn) => edit(place, turn, 'a'));
  t.deepEqual([found.findings, found.tree.changed, found.tree.since], [[], null, null]);
  t.deepEqual(Object.fromEntries(found.files.map(({ path, result }) => [path, result])), {
    README: 'not-judged',
    a: 'changed',
    b: 'not-judged',
  });
});

test("somebody else's change does not make the agent's word false where its calls name what they write", async (t) => {
  const place = scratch(t);
  withFiles(place, 'lib/a.ts', 'lib/b.ts');
  const found = await told(place, { result: 'I did not touch `lib/b.ts`.' }, async (turn) => {
    await edit(place, turn, 'lib/a.ts');
    place.write('lib/b.ts', 'by a person\n');
  });
  t.deepEqual([found.findings, found.files[0]?.result], [[], 'not-judged']);
});

test('a text that sums up the session is not held to this turn alone', async (t) => {
  const place = scratch(t);
  withFiles(place, 'lib/a.ts', 'lib/b.ts');
  await told(place, {}, (turn) => edit(place, turn, 'lib/a.ts'));
  const text = 'Changes:\n\n- `lib/a.ts`: a guard\n- `lib/b.ts`: a test\n';
  const found = await told(place, { result: text }, (turn) => edit(place, turn, 'lib/b.ts'));
  t.deepEqual(
    found.files.map(({ path, result }) => [path, result]),
    [
      ['lib/a.ts', 'earlier'],
      ['lib/b.ts', 'changed'],
    ],
  );
  t.is(found.verdict, 'holds');
});
