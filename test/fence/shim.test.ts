import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** Starts `git add slow` in the turn, with INT as a terminal has it, waits until it stands still, sends `signal` to it alone, and stages `mine`. */
const killed = (signal: string): string => `
  env --default-signal=INT git add slow & pid=$!
  until [ -e ../still ]; do sleep 0.02; done
  kill -${signal} $pid; wait $pid 2>/dev/null; echo "ended with $?"
  /usr/bin/env -u DURABLE_STAGE git diff --cached --name-only
  : <> ../gate
  ls .git/durable/stage/1 | grep -E 'lock|shim' || echo 'no lock'
  rm .git/hooks/post-index-change 2>/dev/null
  git add mine && git commit -qm mine`;

/** Where git stands still: it says so, and what git has started goes on once the pipe is opened. */
const STILL = 'echo > "$TOP/still"; cat "$TOP/gate" >&2';

const STAGES: readonly (readonly [when: string, prepare: (place: Scratch) => void, staged: string])[] = [
  [
    'before it has written the index: the old one stays',
    (place) => {
      place.git('config', 'filter.slow.clean', `${STILL}; cat`);
      place.write('.git/info/attributes', 'slow filter=slow\n');
    },
    '',
  ],
  [
    'after it has written the index: the new one is public, whole',
    (place) => {
      place.write('.git/hooks/post-index-change', `#!/bin/sh\n${STILL}\n`, 0o755);
    },
    'slow\n',
  ],
];

for (const [when, prepare, staged] of STAGES) {
  for (const [signal, code] of [
    ['TERM', 143],
    ['INT', 130],
    ['HUP', 129],
  ] as const) {
    test(`${signal} to a git of the turn alone ends it ${when}, no lock stays, and the next one works`, (t) => {
      const place = scratch(t);
      place.run('mkfifo', [join(place.top, 'gate')]);
      prepare(place);
      for (const name of ['slow', 'mine']) place.write(name, `${name}\n`);
      const agent = ['sh', '-c', `TOP=${quoted(place.top)}; export TOP${killed(signal)}`];
      const ran = durable(place, ['run', '--', ...agent]);
      t.is(ran.stdout, `ended with ${String(code)}\n${staged}no lock\n`, ran.stderr);
      t.is(ran.code, 0, ran.stderr);
      t.deepEqual(
        readdirSync(join(place.dir, '.git')).filter((name) => name.includes('lock')),
        [],
      );
      t.is(place.git('show', '--format=', '--name-only').split('\n').at(0), 'mine');
      t.is(place.git('diff', '--cached', '--name-only'), '');
      t.is(place.git('fsck', '--strict', '--no-dangling'), '');
      t.true(existsSync(join(place.dir, 'slow')));
    });
  }
}

test("a git of the turn has the caller's standard input, none where it is closed, and its exit code", (t) => {
  const place = scratch(t);
  for (const name of ['one', 'two']) place.write(name, `${name}\n`);
  const script = [
    "printf 'one\\0' | git update-index --add -z --stdin; echo $?",
    'git add two <&-; echo $?',
    'git add two 9</dev/null; echo $?',
    'git add nowhere 2>/dev/null; echo $?',
    'git diff --cached --name-only',
  ];
  const ran = durable(place, ['run', '--', 'sh', '-c', script.join('\n')]);
  t.deepEqual([ran.code, ran.stdout], [0, '0\n0\n0\n128\none\ntwo\n'], ran.stderr);
});
