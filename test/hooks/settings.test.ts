/** Settings of ours in the repository's config: when they come, whose they leave alone, and that they go byte for byte. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const values = (place: Scratch): string[] =>
  place.run('git', ['config', '--get-all', 'notes.rewriteRef']).stdout.trim().split('\n').filter(Boolean);
const configFile = (place: Scratch): string => join(place.dir, '.git/config');
const config = (place: Scratch): string => readFileSync(configFile(place), 'utf8');

function init(t: ExecutionContext, place: Scratch, options: { cwd?: string; words?: string[] } = {}): void {
  const ran = durable(place, ['init', ...(options.words ?? [])], options);
  t.is(ran.code, 0, ran.stderr);
}

/** A turn whose work is committed, so that it has a note. */
function noted(t: ExecutionContext, place: Scratch, name = 'made'): void {
  const script = `echo ${name} > ${name}; git add ${name}; git commit -qm ${name}`;
  const ran = durable(place, ['run', '--', 'sh', '-ec', script]);
  t.is(ran.code, 0, ran.stderr);
  t.regex(place.git('notes', '--ref=durable', 'show', 'HEAD'), /^Durable-Turn: /);
}

test('git carries our notes along from the first one on, after init as after a later turn, and warns of nothing before and after', (t) => {
  const place = scratch(t);
  init(t, place);
  t.is(place.run('git', ['commit', '--amend', '-qm', 'again']).stderr, '');
  t.deepEqual(values(place), []);
  noted(t, place);
  t.deepEqual(values(place), ['refs/notes/durable']);
  t.is(place.run('git', ['commit', '--amend', '-qm', 'again']).stderr, '');
  t.regex(place.git('notes', '--ref=durable', 'show', 'HEAD'), /^Durable-Turn: /);
  t.is(durable(place, ['uninstall']).code, 0);
  t.deepEqual(values(place), []);
  init(t, place);
  t.deepEqual(values(place), ['refs/notes/durable']);
});

test('without init a turn with a note sets nothing', (t) => {
  const place = scratch(t);
  const before = config(place);
  noted(t, place);
  t.is(config(place), before);
});

test("our notes stand beside the user's own that git carries along, and uninstall takes only ours", (t) => {
  const place = scratch(t);
  place.git('config', '--add', 'notes.rewriteRef', 'refs/notes/review');
  place.git('config', 'notes.displayRef', 'refs/notes/review');
  const before = config(place);
  init(t, place);
  noted(t, place);
  init(t, place);
  t.deepEqual(values(place), ['refs/notes/review', 'refs/notes/durable']);
  place.git('config', '--add', 'notes.rewriteRef', 'refs/notes/later');
  t.is(durable(place, ['uninstall']).code, 0);
  t.deepEqual(values(place), ['refs/notes/review', 'refs/notes/later']);
  place.git('config', '--fixed-value', '--unset', 'notes.rewriteRef', 'refs/notes/later');
  t.is(config(place), before);
});

for (const own of ['refs/notes/durable', 'refs/notes/*']) {
  test(`what the user had set before init stays: notes.rewriteRef ${own}`, (t) => {
    const place = scratch(t);
    place.git('config', 'notes.rewriteRef', own);
    const before = config(place);
    init(t, place);
    noted(t, place);
    t.deepEqual(values(place), [own]);
    t.is(durable(place, ['uninstall']).code, 0);
    t.is(config(place), before);
  });
}

test('of two work trees the last one that is uninstalled takes the setting with it, whichever it is', (t) => {
  const place = scratch(t);
  const linked = join(place.top, 'linked tree');
  place.git('worktree', 'add', '-q', '--detach', linked);
  const before = config(place);
  for (const cwd of [place.dir, linked]) init(t, place, { cwd, words: ['--fence', 'hooks'] });
  noted(t, place);
  t.is(durable(place, ['uninstall']).code, 0);
  t.deepEqual(values(place), ['refs/notes/durable']);
  t.is(durable(place, ['uninstall'], { cwd: linked }).code, 0);
  t.is(config(place), before);
});

const WRITTEN: readonly (readonly [how: string, text: string])[] = [
  ['ends without a newline', '[mine]\n\tis = here'],
  ['has empty sections that we use', '[durable]\n[notes]\n[hook "durable-pre-push"]\n'],
  ['has a mode of the fence in a form of its own', '[DURABLE]\nFence=off ; for now\n[notes]\n# none\n'],
  ['has carriage returns', '[mine]\r\n\tis = here\r\n[durable]\r\n'],
];

for (const [how, text] of WRITTEN) {
  test(`a config that ${how} is the same, byte for byte, after init, a note, another init, a turn and uninstall`, (t) => {
    const place = scratch(t);
    writeFileSync(configFile(place), config(place) + text);
    const before = config(place);
    init(t, place, { words: ['--fence', 'strict'] });
    noted(t, place);
    init(t, place, { words: ['--fence', 'hooks'] });
    noted(t, place, 'again');
    t.not(config(place), before);
    t.is(durable(place, ['uninstall', '--purge']).code, 0);
    t.is(config(place), before);
  });
}

test('what somebody else sets meanwhile stays, and ours goes setting by setting', (t) => {
  const place = scratch(t);
  init(t, place, { words: ['--fence', 'strict'] });
  place.git('config', 'mine.later', 'stays');
  noted(t, place);
  const ran = durable(place, ['uninstall', '--purge', '--json']);
  t.is(ran.code, 0, ran.stdout);
  t.is(place.git('config', 'mine.later'), 'stays');
  t.is(place.run('git', ['config', '--local', '--get-regexp', 'durable|hook']).stdout, '');
});
