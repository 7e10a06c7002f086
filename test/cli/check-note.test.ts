import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { document, events, last, type Line } from '../helpers/events.js';
import { differences, listing } from '../helpers/listing.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const NOTES = 'refs/notes/durable';

/** `script` as a turn's agent; returns the turn's end. */
function turn(place: Scratch, script: string, env: Record<string, string> = {}): Line {
  const ran = durable(place, ['run', '--result', '../result.md', '--', 'sh', '-c', script], { env });
  if (ran.code !== 0) throw new Error(`${String(ran.code)} ${ran.stderr}`);
  return last(events(place), 'turn.finished') ?? {};
}

const note = (place: Scratch, commit = 'HEAD'): string =>
  place.run('git', ['notes', `--ref=${NOTES}`, 'show', commit]).stdout;

const turnsIn = (text: string): string[] =>
  [...text.matchAll(/^Durable-Turn: (\w+)$/gm)].map((match) => match[1] ?? '');

const checked = (place: Scratch, ...words: string[]): { note: { commit: string | null; written: boolean } } =>
  document(place, ['check', ...words], { codes: [0, 5] });

const CLAIM = "echo 'Updated `README`.' > ../result.md";

test('git log shows task, turn, agent, ledger position and verdict on the commit that the turn made', (t) => {
  const place = scratch(t);
  const end = turn(place, `echo 2 > README; git commit -qam two; ${CLAIM}`);
  const shown = place.git('log', '-1', '--notes=durable', '--format=%N');
  t.deepEqual(shown.trimEnd().split('\n'), [
    `Durable-Turn: ${String(end['turn'])}`,
    `Durable-Task: ${String(end['task'])}`,
    'Durable-Agent: sh',
    `Durable-Event: ${String(end['seq'])} ${String(end['commit'])}`,
    `Durable-Chain: sha256:${String(end['chain'])}`,
    'Durable-Outcome: completed',
    'Durable-Claim: holds (final text)',
  ]);
  t.deepEqual(checked(place).note, { commit: place.git('rev-parse', 'HEAD'), written: true });
  t.is(
    place.git('log', '-1', '--format=%an <%ae>', NOTES),
    'git-durable <git-durable@users.noreply.github.com>',
  );
  t.is(place.git('status', '--porcelain'), '');
});

test('a claim that does not hold is noted as that', (t) => {
  const place = scratch(t);
  place.write('other', '1\n');
  turn(place, `echo 2 > other; git add -A; git commit -qm two; ${CLAIM}`);
  t.regex(note(place), /^Durable-Claim: does-not-hold, 1 finding \(final text\)$/m);
});

test('of several commits of a turn the one that has all of its work is noted', (t) => {
  const place = scratch(t);
  turn(
    place,
    'echo a > a; git add a; git commit -qm a; echo b > b; git add b; git commit -qm b; git commit -q --allow-empty -m c',
  );
  t.is(turnsIn(note(place, 'HEAD~1')).length, 1);
  t.is(note(place, 'HEAD'), '');
  t.is(note(place, 'HEAD~2'), '');
});

test('a turn that leaves its work uncommitted has no note; once it is committed, check says so and writes nothing, --note writes it', (t) => {
  const place = scratch(t);
  const end = turn(place, `echo 2 > README; echo log > scratch.log; ${CLAIM}`);
  t.deepEqual(checked(place).note, { commit: null, written: false });
  place.git('commit', '-qam', 'by a person');
  place.git('commit', '-q', '--allow-empty', '-m', 'later');
  const commit = place.git('rev-parse', 'HEAD~1');
  const before = listing(place.dir);
  t.deepEqual(checked(place).note, { commit, written: false });
  t.regex(durable(place, ['check']).stdout, /\nnext: git durable check \w{12} --note\n$/);
  t.deepEqual(differences(before, listing(place.dir)), []);
  t.deepEqual(checked(place, '--note').note, { commit, written: true });
  t.deepEqual(turnsIn(note(place, commit)), [end['turn']]);
  const tip = place.git('rev-parse', NOTES);
  t.deepEqual(checked(place, '--note').note, { commit, written: true });
  t.is(place.git('rev-parse', NOTES), tip);
});

test('work that was committed in part, or changed again first, is in no commit', (t) => {
  const place = scratch(t);
  place.write('other', '1\n');
  place.git('add', '-A');
  place.git('commit', '-qm', 'other');
  turn(place, 'echo 2 > README; echo 2 > other');
  place.git('commit', '-qm', 'half', 'README');
  t.is(checked(place, '--note').note.commit, null);
  place.write('other', '3\n');
  place.git('commit', '-qam', 'something else');
  t.is(checked(place, '--note').note.commit, null);
});

test('the start of the next turn writes the note of the one before, once a person has committed its work', (t) => {
  const place = scratch(t);
  const first = turn(place, 'echo 2 > README');
  place.git('commit', '-qam', 'by a person');
  const second = turn(place, 'echo 3 > README; git commit -qam three');
  t.deepEqual(turnsIn(note(place, 'HEAD~1')), [first['turn']]);
  t.deepEqual(turnsIn(note(place)), [second['turn']]);
});

test('two turns in one commit have a paragraph each, beside what a person noted there', (t) => {
  const place = scratch(t);
  const first = turn(place, 'echo a > a');
  const second = turn(place, 'echo b > b');
  place.git('add', '-A');
  place.git('commit', '-qm', 'both');
  place.git('notes', `--ref=${NOTES}`, 'add', '-m', 'looked at it, fine');
  for (const end of [first, second]) checked(place, String(end['turn']), '--note');
  t.deepEqual(turnsIn(note(place)), [first['turn'], second['turn']]);
  t.regex(note(place), /^looked at it, fine\n\nDurable-Turn: /);
});

test('what a person wrote right above and below the lines of a turn stays when these are written again', (t) => {
  const place = scratch(t);
  const end = turn(place, 'echo 2 > README; git commit -qam two');
  const own = note(place).trimEnd();
  const edited = `above\n${own.replace(/^Durable-Claim: .*$/m, 'Durable-Claim: edited')}\nbelow`;
  place.git('notes', `--ref=${NOTES}`, 'add', '-f', '-m', edited);
  t.true(checked(place, String(end['turn']), '--note').note.written);
  t.is(note(place), `above\n${own}\nbelow\n`);
});

/** `init` puts the setting there; what git itself does with it is held here. */
function followed(t: ExecutionContext, rewrite: (place: Scratch) => void): void {
  const place = scratch(t);
  t.is(durable(place, ['init']).code, 0);
  place.git('commit', '-q', '--allow-empty', '-m', 'between');
  const end = turn(place, 'echo 2 > README; git commit -qam two');
  const before = place.git('rev-parse', 'HEAD');
  rewrite(place);
  t.not(place.git('rev-parse', 'HEAD'), before);
  t.deepEqual(turnsIn(note(place)), [end['turn']]);
  t.deepEqual(checked(place).note, { commit: place.git('rev-parse', 'HEAD'), written: true });
}

test('after init a note follows git commit --amend', (t) => {
  followed(t, (place) => {
    place.git('commit', '-q', '--amend', '-m', 'two, said better');
  });
});

test('after init a note follows git rebase', (t) => {
  followed(t, (place) => {
    place.git('checkout', '-q', '-b', 'other', 'HEAD~2');
    place.write('elsewhere', '1\n');
    place.git('add', 'elsewhere');
    place.git('commit', '-qm', 'elsewhere');
    place.git('rebase', '-q', 'other', 'main');
  });
});

test('after init the notes of commits that are squashed are all on the one', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['init']).code, 0);
  const first = turn(place, 'echo a > a; git add a; git commit -qm a');
  const second = turn(place, 'echo b > b; git add b; git commit -qm b');
  const env = { GIT_SEQUENCE_EDITOR: 'sed -i 2s/^pick/squash/', GIT_EDITOR: 'true' };
  t.is(place.run('git', ['rebase', '-q', '-i', 'HEAD~2'], { env }).code, 0);
  t.deepEqual(turnsIn(note(place)), [first['turn'], second['turn']]);
});

test('no hook and no signing of the user has a part in a note', (t) => {
  const place = scratch(t);
  turn(place, 'echo 2 > README');
  place.git('commit', '-qam', 'two');
  place.git('config', 'commit.gpgSign', 'true');
  place.git('config', 'gpg.program', 'false');
  for (const name of ['reference-transaction', 'post-commit', 'commit-msg'])
    place.write(`.git/hooks/${name}`, '#!/bin/sh\necho ran >> ../hooks-ran\nexit 1\n', 0o755);
  t.true(checked(place, '--note').note.written);
  t.false(existsSync(join(place.top, 'hooks-ran')));
});

test('in a SHA-256 repository a turn is noted as well, and in a linked work tree', (t) => {
  const place = scratch(t, { objectFormat: 'sha256' });
  turn(place, 'echo 2 > README; git commit -qam two');
  t.is(turnsIn(note(place)).length, 1);
  const linked = join(place.top, 'linked');
  place.git('worktree', 'add', '-q', '-b', 'linked', linked);
  const ran = durable(place, ['run', '--', 'sh', '-c', 'echo 3 > README; git commit -qam three'], {
    cwd: linked,
  });
  t.is(ran.code, 0);
  t.is(turnsIn(note(place, 'linked')).length, 1);
});

test('killed anywhere between the end of the turn and its note, the next turn or check --note writes it, once', (t) => {
  let completed = 0;
  for (let nth = 1; nth < 60; nth += 1) {
    const place = scratch(t);
    const script = 'echo 2 > README; git commit -qam two';
    const env = { DURABLE_FAULTS: `ref.move:rename:before#${String(nth)}=kill` };
    const ran = durable(place, ['run', '--', 'sh', '-c', script], { env });
    if (ran.signal === null) break;
    const finished = last(events(place), 'turn.finished');
    if (finished === undefined) continue;
    t.is(note(place), '', 'nothing is noted before the ref moves');
    if (nth % 2 === 0) t.true(checked(place, '--note').note.written);
    else t.is(durable(place, ['run', '--', 'true']).code, 0);
    t.deepEqual(turnsIn(note(place)), [finished['turn']]);
    t.is(durable(place, ['verify']).code, 0);
    completed += 1;
  }
  // The lease's own release, and the note.
  t.true(completed >= 2, String(completed));
});

test('a note that cannot be written fails no turn, and check --note says why', (t) => {
  const place = scratch(t);
  place.write(`.git/${NOTES}.lock`, '');
  t.is(turn(place, 'echo 2 > README; git commit -qam two')['outcome'], 'completed');
  const ran = durable(place, ['check', '--note']);
  t.is(ran.code, 1);
  t.regex(ran.stderr, /^git-durable: 'refs\/notes\/durable' stayed locked by git, or another program/);
  rmSync(join(place.dir, '.git', `${NOTES}.lock`));
  t.true(checked(place, '--note').note.written);
});

test('uninstall --purge takes our notes, and no ref that only begins like them', (t) => {
  const place = scratch(t);
  turn(place, 'echo 2 > README; git commit -qam two');
  place.git('notes', '--ref=refs/notes/durable-goods', 'add', '-m', 'mine');
  t.is(durable(place, ['uninstall', '--purge']).code, 0);
  t.is(
    place.git('for-each-ref', '--format=%(refname)', 'refs/notes', 'refs/durable'),
    'refs/notes/durable-goods',
  );
});
