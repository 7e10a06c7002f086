import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { durable } from '../helpers/program.js';
import { scratch, type Ran, type Scratch } from '../helpers/scratch.js';

/** With nothing on PATH but these programs, which do nothing. */
function drillWith(place: Scratch, programs: readonly string[]): Ran {
  const folder = join(place.top, 'programs');
  mkdirSync(folder);
  for (const name of programs) {
    place.write(`../programs/${name}`, '');
    chmodSync(join(folder, name), 0o755);
  }
  return durable(place, ['drill', '--agent', 'codex', '--json'], { env: { PATH: folder } });
}

test('a drill with an agent that is not on PATH says what to install', (t) => {
  const { code, stdout, stderr } = drillWith(scratch(t, { repository: false }), []);
  t.is(code, 1);
  t.is(stdout, '');
  t.regex(stderr, /'codex' cannot be run: not found on PATH.*npm install -g @openai\/codex/);
});

test('a drill with an agent that cannot be kept off the network says what is missing', (t) => {
  const place = scratch(t, { repository: false });
  const { code, stderr } = drillWith(place, ['codex', 'unshare']);
  t.is(code, 1);
  t.regex(stderr, /'nsenter', which is not on PATH; install the package util-linux/);
});

test('without an agent there is no bare drill, and it says which agents there are', (t) => {
  const { code, stderr } = durable(scratch(t, { repository: false }), ['drill', '--bare']);
  t.is(code, 2);
  t.regex(stderr, /claude-code, codex, opencode, kilo/);
});
