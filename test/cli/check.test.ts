import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { check, codes, edit, open, said, start, withFiles, type Check } from '../helpers/checked.js';
import { document, events, last } from '../helpers/events.js';
import { differences, listing } from '../helpers/listing.js';
import { durable } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';

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

test('under run, where the agent is one call, no command is said to be never run', (t) => {
  const place = scratch(t);
  const found = said(place, 'I ran `npm test`. All tests pass.', 'true');
  t.deepEqual([found.findings, found.tests], [[], 'not-judged']);
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

test('what is claimed and cannot be told from the record is not said to hold, in the note neither', (t) => {
  const place = scratch(t);
  const found = said(place, 'All tests pass.', 'echo 2 > README; git commit -qam two');
  t.deepEqual([found.verdict, found.tests, found.findings], ['not-judged', 'not-judged', []]);
  const ran = durable(place, ['check']);
  t.is(ran.code, 0);
  t.regex(ran.stdout, /^claim +cannot be told from the record \(final text\)\n/);
  t.regex(
    place.git('notes', '--ref=durable', 'show', 'HEAD'),
    /\nDurable-Claim: not-judged \(final text\)\n?/,
  );
});
