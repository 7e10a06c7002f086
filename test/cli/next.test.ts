import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import test from 'ava';
import { interruptedRun } from '../helpers/interrupted-run.js';
import { durable, PROGRAM } from '../helpers/program.js';
import { scratch, type Ran, type Scratch } from '../helpers/scratch.js';

/** What the last `next:` and the lines under it say to type. */
function said(text: string): string[] {
  const lines = text.split('\n');
  const from = lines.findLastIndex((line) => line.startsWith('next: '));
  return lines
    .slice(from)
    .map((line) => /^(?:next: | {5}) *(git durable .*?)(?: {2}.*)?$/.exec(line)?.[1])
    .filter((line) => line !== undefined);
}

/** Typed into a shell with `git durable` on PATH. */
function typed(place: Scratch, line: string): Ran {
  const bin = join(place.top, 'bin');
  mkdirSync(bin, { recursive: true });
  const script = `#!/bin/sh\nexec '${process.execPath}' '${PROGRAM}' "$@"\n`;
  writeFileSync(join(bin, 'git-durable'), script, { mode: 0o755 });
  return place.run('sh', ['-c', line], { env: { PATH: `${bin}${delimiter}${place.env['PATH'] ?? ''}` } });
}

test('what status and recover say to type next works as it stands, from an idle work tree to a repaired one', async (t) => {
  const place = scratch(t);
  t.deepEqual(said(durable(place, ['status']).stdout), ['git durable run -- CMD']);
  t.deepEqual(said(durable(place, ['recover']).stdout), ['git durable status']);
  await interruptedRun(t, place, 'echo changed > README');
  const [next = ''] = said(durable(place, ['status']).stdout);
  t.is(next, 'git durable recover');
  const report = typed(place, next);
  t.is(report.code, 3);
  t.deepEqual(
    said(report.stdout),
    // Of a command nobody knows what it was going to write: there is nothing to roll forward to.
    ['--keep', '--roll-back'].map((how) => `git durable recover ${how}`),
  );
  const repaired = typed(place, said(report.stdout)[1] ?? '');
  t.is(repaired.code, 0, repaired.stderr);
  t.is(readFileSync(join(place.dir, 'README'), 'utf8'), 'hello\n');
  const [show = ''] = said(repaired.stdout);
  t.regex(typed(place, show).stdout, /recovered/);
  const undo = /^undo: (git durable restore [0-9a-f]+)$/m.exec(repaired.stdout)?.[1] ?? '';
  t.is(typed(place, undo).code, 0);
  t.is(readFileSync(join(place.dir, 'README'), 'utf8'), 'changed\n');
});

test('of an interrupted turn in another work tree recover says what to type there', async (t) => {
  const place = scratch(t);
  const linked = join(place.top, 'linked');
  place.git('worktree', 'add', '-q', linked);
  await interruptedRun(t, place, 'echo changed > README', linked);
  const here = durable(place, ['recover']).stdout;
  t.regex(here, /^in another work tree a turn was: git durable recover --all$/m);
  t.deepEqual(said(here), ['git durable status']);
  const [, back = ''] = said(durable(place, ['recover', '--all']).stdout);
  t.regex(back, /^git durable -C .* recover --roll-back$/);
  const repaired = typed(place, back);
  t.is(repaired.code, 0, repaired.stderr);
  t.is(readFileSync(join(linked, 'README'), 'utf8'), 'hello\n');
});

test('where no turn ever was, check and a takeover say so in one clean sentence, with what to type', (t) => {
  const place = scratch(t);
  const check = durable(place, ['check']);
  t.deepEqual(
    [check.code, check.stderr],
    [2, "git-durable: no finished turn of this work tree; type 'git durable log' to see what there is\n"],
  );
  for (const words of [['--take-over'], ['--keep', '--take-over'], ['--roll-back']]) {
    const { code, stdout, stderr } = durable(place, ['recover', ...words]);
    t.deepEqual([code, stdout, stderr], [0, 'nothing was interrupted\nnext: git durable status\n', '']);
  }
});

test('a roll forward with nothing to go to is not offered, and says so when it is asked for', async (t) => {
  const place = scratch(t);
  await interruptedRun(t, place, 'echo changed > README');
  t.notRegex(durable(place, ['recover']).stdout, /roll-forward/);
  const { code, stdout } = durable(place, ['recover', '--roll-forward']);
  t.is(code, 0);
  t.regex(stdout, /^no file had an intended content left to go to: all are as they were\n/);
  t.is(readFileSync(join(place.dir, 'README'), 'utf8'), 'changed\n');
});

test('damage is told in one sentence with one advice, not with a second one inside of it', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['run', '--', 'true']).code, 0);
  const [ref = ''] = place.git('for-each-ref', '--format=%(refname)', 'refs/durable/tasks').split('\n');
  const message = place.git('log', '-1', '--format=%B', ref).replace(/"seq":\d+/, '"seq":"none"');
  place.git('update-ref', ref, place.git('commit-tree', '-p', ref, '-m', message, `${ref}^{tree}`));
  for (const verb of ['status', 'doctor', 'verify', 'log']) {
    const { stdout, stderr } = durable(place, [verb]);
    const said = stdout
      .split('\n')
      .concat(stderr.split('\n'))
      .filter((line) => line.includes('"none"'));
    t.is(said.length, 1, verb);
    t.true((said[0] ?? '').split("; type '").length <= 2, said[0]);
    t.true((said[0] ?? '').split('event of ours').length <= 2, said[0]);
  }
});

test('recover says of an open turn that its holder lives, and init of a mode what it was', (t) => {
  const place = scratch(t);
  const open = durable(place, ['run', '--', process.execPath, PROGRAM, 'recover']);
  t.is(open.code, 0, open.stderr);
  t.regex(open.stdout, /^nothing was interrupted: the turn is open, and who holds it lives$/m);
  t.is(durable(place, ['init']).code, 0);
  t.regex(
    durable(place, ['init', '--fence', 'hooks']).stdout,
    /^durable\.fence is 'hooks' \(it was 'strict'\)$/m,
  );
  t.is(place.git('config', 'durable.fence'), 'hooks');
  t.regex(durable(place, ['init', '--fence', 'hooks']).stdout, /^nothing to do/m);
});
