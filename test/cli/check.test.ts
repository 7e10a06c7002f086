import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { openRepository, systemHost, type Claim, type Repository, type Turn } from '../../lib/index.js';
import { document, events, last } from '../helpers/events.js';
import { differences, listing } from '../helpers/listing.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Check {
  readonly turn: string;
  readonly verdict: string;
  readonly source: string | null;
  readonly findings: readonly { readonly code: string; readonly subject: string }[];
  readonly files: readonly { readonly path: string; readonly as: string; readonly result: string }[];
  readonly commands: readonly {
    readonly command: string;
    readonly result: string;
    readonly exit: number | null;
  }[];
  readonly tests: string | null;
  readonly unclaimed: readonly string[];
  readonly unclaimedCount: number;
  readonly missing: readonly string[];
  readonly named: readonly string[];
  readonly ran: readonly { readonly command: string; readonly exit: number | null }[];
  readonly tree: { readonly changed: number | null; readonly since: number | null };
}

const check = (place: Scratch, ...words: string[]): Check =>
  document<Check>(place, ['check', ...words], { codes: [0, 5] });

const codes = ({ findings }: Check): string[] => findings.map(({ code, subject }) => `${code} ${subject}`);

/** `script` runs as a turn's agent, whose final text is `text`. */
function said(place: Scratch, text: string, script: string): Check {
  writeFileSync(join(place.top, 'final text.md'), text);
  const words = [
    'run',
    '--result',
    '../result.md',
    '--',
    'sh',
    '-c',
    `${script}\ncp ../'final text.md' ../result.md`,
  ];
  const ran = durable(place, words);
  if (ran.code !== 0) throw new Error(ran.stderr);
  return check(place);
}

function withFiles(place: Scratch, ...paths: string[]): void {
  for (const path of paths) place.write(path, `${path}\n`);
}

const open = (place: Scratch): Promise<Repository> =>
  openRepository(place.dir, { ...systemHost(), env: place.env });

const start = (repository: Repository): Promise<Turn> =>
  repository.startTurn({ objective: 'work', task: 'talk', keeper: false });

/** A call as an agent's hook records it: a command and its exit code. */
async function command(turn: Turn, line: string, exit: number): Promise<void> {
  const call = await turn.begin({ tool: 'Bash', args: { command: line }, mutates: false });
  await call.end({ state: exit === 0 ? 'finished' : 'failed', exit });
}

async function edit(place: Scratch, turn: Turn, path: string): Promise<void> {
  const bytes = Buffer.from(`${path} changed\n`);
  await turn.invoke({ tool: 'Edit', args: { path }, paths: [{ path, expected: bytes }] }, () => {
    place.write(path, bytes);
  });
}

/** One turn of a program that records its calls, checked through the binary. */
async function told(
  place: Scratch,
  end: { readonly result?: string; readonly claim?: Claim; readonly checkpoint?: boolean },
  work: (turn: Turn) => Promise<void> = () => Promise.resolve(),
): Promise<Check> {
  const repository = await open(place);
  const turn = await start(repository);
  await work(turn);
  await turn.finish({ outcome: 'completed', ...end });
  await repository.close();
  return check(place);
}

test('a final text whose files changed holds, and the exit code is 0', (t) => {
  const place = scratch(t);
  withFiles(place, 'lib/a.ts', 'lib/b.ts');
  const found = said(place, 'Updated `lib/a.ts`. I did not touch `lib/b.ts`.', 'echo 2 > lib/a.ts');
  t.deepEqual(
    [found.verdict, found.source, found.findings, found.tree],
    ['holds', 'text', [], { ...found.tree, changed: 1, since: 0 }],
  );
  t.is(durable(place, ['check']).code, 0);
});

test('claimed and not changed, denied and changed: exit 5, each with its path', (t) => {
  const place = scratch(t);
  withFiles(place, 'lib/a.ts', 'lib/b.ts');
  const found = said(
    place,
    'Updated `lib/a.ts`. I did not touch `lib/b.ts`.',
    'echo 2 > lib/b.ts; echo n > new.txt',
  );
  t.deepEqual(codes(found), ['claimed-not-changed lib/a.ts', 'changed-though-denied lib/b.ts']);
  t.deepEqual(found.unclaimed, ['lib/b.ts', 'new.txt']);
  const ran = durable(place, ['check']);
  t.is(ran.code, 5);
  t.regex(ran.stdout, /^claim +does not hold \(final text\)\n/);
  t.regex(ran.stdout, /\n {2}lib\/a\.ts +claimed as changed, and the same as at the start of the turn\n/);
  t.regex(ran.stdout, /\nnext: git durable diff [0-9a-f]{12} [0-9a-f]{12}\n$/);
});

test('the command that check names next shows the difference', (t) => {
  const place = scratch(t);
  said(place, 'Updated `README`.', 'echo 2 > other');
  const next = /next: git durable (diff .*)\n$/.exec(durable(place, ['check']).stdout)?.[1] ?? '';
  t.regex(durable(place, next.split(' ')).stdout, /^added +other/);
});

test('a turn that says nothing claims nothing, and neither does a text that was there before', (t) => {
  const place = scratch(t);
  writeFileSync(join(place.top, 'result.md'), 'Updated `README`.');
  const ran = durable(place, ['run', '--result', '../result.md', '--', 'true']);
  t.is(ran.code, 0);
  t.regex(ran.stderr, /left no final text in '\.\.\/result\.md'/);
  t.deepEqual([check(place).verdict, check(place).source], ['nothing-claimed', null]);
  t.is(last(events(place), 'turn.finished')?.['result'], null);
});

test('a path that no tree of the turn has is named and accuses nobody', (t) => {
  const place = scratch(t);
  const found = said(place, 'Created `src/nowhere.ts` and updated `README`.', 'echo 2 > README');
  t.deepEqual([found.verdict, found.missing], ['holds', ['src/nowhere.ts']]);
});

test('a path claimed through a symbolic link is what the link leads to', (t) => {
  const place = scratch(t);
  withFiles(place, 'lib/a.ts', 'lib/b.ts', 'docs/v2.md');
  symlinkSync('lib', join(place.dir, 'linked'));
  symlinkSync('docs/v2.md', join(place.dir, 'latest.md'));
  const found = said(
    place,
    'Updated `linked/a.ts`, `linked/b.ts` and `latest.md`.',
    'echo 2 > linked/a.ts; echo 2 > latest.md',
  );
  t.deepEqual(codes(found), ['claimed-not-changed lib/b.ts']);
});

test('a renamed file was changed under both names', (t) => {
  const place = scratch(t);
  withFiles(place, 'lib/old.ts', 'lib/kept.ts');
  const found = said(
    place,
    'Renamed `lib/old.ts` to `lib/new.ts`. I left `lib/kept.ts` alone.',
    'mv lib/old.ts lib/new.ts',
  );
  t.deepEqual([found.verdict, found.unclaimed], ['holds', []]);
});

test('names with newlines, quotes and other letters are claimed as git quotes them, or as they are', (t) => {
  const place = scratch(t);
  withFiles(place, 'two\nlines.txt', 'naïve café.md', 'it\'s "odd".md');
  const text = 'Updated `"two\\nlines.txt"`, "naïve café.md" and `"it\'s \\"odd\\".md"`.';
  const found = said(place, text, 'for f in *; do echo 2 >> "$f"; done');
  t.deepEqual(
    found.files.map(({ path, result }) => [path, result]),
    [
      ['two\nlines.txt', 'changed'],
      ['it\'s "odd".md', 'changed'],
      ['naïve café.md', 'changed'],
    ],
  );
});

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

test('under run, where the agent is one call, no command is said to be never run', (t) => {
  const place = scratch(t);
  const found = said(place, 'I ran `npm test`. All tests pass.', 'true');
  t.deepEqual([found.findings, found.tests], [[], 'not-judged']);
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

test('what changes after the turn is said and does not change its verdict; neither does a restore', async (t) => {
  const place = scratch(t);
  withFiles(place, 'a');
  const before = document<{ checkpoint: string }>(place, ['checkpoint']).checkpoint;
  const first = said(place, 'Updated `a` and `./a`.\n\nChanged files:\n- `./a`\n', 'echo 2 > a');
  t.is(first.tree.since, 0);
  t.is(durable(place, ['restore', before]).code, 0);
  const found = check(place, first.turn);
  t.deepEqual([found.verdict, found.tree.changed, found.tree.since], ['holds', 1, 1]);
  await Promise.resolve();
});

test('an interrupted turn that was rolled back has said nothing, and an older turn is still found', async (t) => {
  const place = scratch(t);
  withFiles(place, 'a');
  const first = said(place, 'Changed `./a`.', 'echo 2 > a');
  const repository = await open(place);
  const turn = await start(repository);
  await edit(place, turn, 'a');
  await turn.interrupt('stopped');
  await repository.close();
  t.is(durable(place, ['recover', '--roll-back']).code, 0);
  const rolled = document<Check & { state: string }>(place, ['check', turn.id.slice(0, 10)]);
  t.deepEqual([rolled.state, rolled.verdict, rolled.source], ['recovered', 'nothing-claimed', null]);
  t.is(check(place).turn, first.turn);
});

test('any id prefix of which a turn is told names it; one that names nothing is code 2', (t) => {
  const place = scratch(t);
  const { turn, ran } = said(place, 'Updated `README`.', 'echo 2 > README') as Check & {
    ran: { invocation: string }[];
  };
  said(place, '', 'true');
  const call = ran[0]?.invocation ?? '';
  const { task, checkpoint } = last(events(place, '--turn', turn), 'turn.finished') ?? {};
  for (const word of [turn, turn.slice(0, 6), call, String(task), String(checkpoint).slice(0, 12)])
    t.is(check(place, word).turn, turn, word);
  t.is(durable(place, ['check', 'nothing-like-it']).code, 2);
});

test('where no turn has finished, check says so with code 2', (t) => {
  const place = scratch(t);
  const ran = durable(place, ['check']);
  t.is(ran.code, 2);
  t.regex(ran.stderr, /^git-durable: no finished turn of this work tree/);
});

test('the lists are bounded and their lengths said when 10,000 files changed', (t) => {
  const place = scratch(t);
  const found = said(
    place,
    'Updated `README`.',
    'mkdir many; cd many; seq -f file-%g 10000 | xargs touch; cd ..',
  );
  t.deepEqual([found.unclaimed.length, found.unclaimedCount, found.tree.changed], [1000, 10000, 10000]);
  t.deepEqual(codes(found), ['claimed-not-changed README']);
  const { stdout } = durable(place, ['check']);
  t.true(stdout.split('\n').length < 60);
  t.regex(stdout, /\n {2}and 9980 more; --json has 1,000 of them\n/);
});

test('a final text of 64 KiB and more is read whole, and is kept whole', (t) => {
  const place = scratch(t);
  withFiles(place, 'lib/a.ts', 'lib/b.ts');
  const text = `${'- `lib/a.ts` is where the parser lives, and (`x.y`) is called by `z`.\n'.repeat(1000)}\nUpdated \`lib/b.ts\`.\n`;
  const found = said(place, text, 'echo 2 > lib/a.ts');
  t.deepEqual([codes(found), found.named], [['claimed-not-changed lib/b.ts'], ['lib/a.ts']]);
  const finished = last(events(place), 'turn.finished') as { result: { oid: string; bytes: number } };
  t.is(finished.result.bytes, Buffer.byteLength(text));
  t.is(`${place.git('cat-file', 'blob', finished.result.oid)}\n`, text);
});

test('in a SHA-256 repository check is the same, and in a linked work tree it is of that one', (t) => {
  const place = scratch(t, { objectFormat: 'sha256' });
  t.is(said(place, 'Updated `README`.', 'echo 2 > README').verdict, 'holds');
  const linked = join(place.top, 'linked');
  place.git('worktree', 'add', '-q', '--detach', linked);
  t.is(durable(place, ['check'], { cwd: linked }).code, 2);
  mkdirSync(join(linked, 'x'));
});

test('check writes nothing', (t) => {
  const place = scratch(t);
  said(place, 'Updated `README`.', 'echo 2 > other');
  const before = listing(place.dir);
  t.is(durable(place, ['check']).code, 5);
  t.deepEqual(differences(before, listing(place.dir)), []);
});
