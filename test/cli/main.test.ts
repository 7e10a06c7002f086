import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import test from 'ava';
import { VERBS } from '../../cli/verbs.js';
import { durable, PROGRAM } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';

const manifest = new URL('../../../package.json', import.meta.url);

test('--version prints the version of the package, before and after a verb', (t) => {
  const place = scratch(t, { repository: false });
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
  for (const words of [['--version'], ['status', '--version']]) {
    const ran = durable(place, words);
    t.deepEqual([ran.code, ran.stdout, ran.stderr], [0, `${version}\n`, '']);
  }
});

test('only help loads yargs, and no verb loads the library of objects before it is asked to', (t) => {
  const place = scratch(t);
  const tell =
    'export const resolve = async (name, context, next) => { const found = await next(name, context); process._rawDebug(found.url); return found; }';
  const hook = `import { register } from 'node:module'; register(${JSON.stringify(`data:text/javascript,${tell}`)});`;
  const loaded = (...words: string[]): string => {
    const ran = place.run(process.execPath, ['--import', `data:text/javascript,${hook}`, PROGRAM, ...words]);
    t.is(ran.code, 0);
    return ran.stderr;
  };
  t.regex(loaded('--help'), /program\/help-\w+\.js/);
  for (const verb of ['--version', 'status', 'checkpoint']) {
    t.regex(loaded(verb), /program\/cli\/main\.js/);
    t.notRegex(loaded(verb), /program\/help-|yargs|isomorphic-git|fs-extra/);
  }
});

const WRONG: readonly (readonly [words: readonly string[], says: RegExp])[] = [
  [[], /name a verb/],
  [['--frobnicate'], /'durable' has no option '--frobnicate'; type 'durable --help'/],
  [['frobnicate'], /there is no verb 'frobnicate'; type 'durable --help'/],
  [['help', 'frobnicate'], /there is no verb 'frobnicate'/],
  [['status', '--frobnicate'], /'durable status' has no option '--frobnicate'; type 'durable status --help'/],
  [['status', '-z'], /has no option '-z'/],
  [['log', '-zn', '2'], /has no option '-zn'/],
  [['show', '--frobnicate=x'], /has no option '--frobnicate'/],
  [['status', 'extra'], /does not take the word 'extra'; type 'durable status'/],
  [['run', 'make', 'all'], /does not take the word 'make'; type 'durable run -- make all'/],
  [['status', '--', 'extra'], /takes nothing after '--'; type 'durable status --help'/],
  [['restore'], /needs CHECKPOINT; type 'durable restore CHECKPOINT \[PATH\.\.\.\]'/],
  [['lease', 'seize'], /takes 'release', not 'seize'/],
  [['log', '-n'], /-n needs a value; type 'durable log -n N'/],
  [['log', '-n', '--json'], /-n needs a value/],
  [['reject', 'id', '--feedback', '--x'], / type 'durable reject --feedback TEXT'; .*: --feedback=--x$/m],
  [['checkpoint', '-m', "- don't"], / type 'durable checkpoint -m TEXT'; .*: -m='- don'\\''t'$/m],
  [['init', '--fence', 'tall'], /--fence takes strict, hooks or off, not 'tall'/],
  [['status', '--json=no'], /--json takes no value/],
  [['recover', '--keep=false'], /--keep takes no value/],
  [['status', '--help=yes'], /--help takes no value/],
  [['-C', '/nonexistent/folder', 'status'], /cannot change to '\/nonexistent\/folder'; give a folder/],
  [['-C', '/dev/null', 'status'], /'\/dev\/null' is no folder/],
];

for (const [words, says] of WRONG) {
  test(`wrong usage leaves with 2 and one sentence on standard error: durable ${words.join(' ')}`, (t) => {
    const ran = durable(scratch(t, { repository: false }), words);
    t.is(ran.code, 2);
    t.is(ran.stdout, '');
    t.regex(ran.stderr, /^git-durable: [^\n]+\n$/);
    t.regex(ran.stderr, says);
  });
}

test('--json neither moves the message to standard output nor changes the code', (t) => {
  const ran = durable(scratch(t, { repository: false }), ['status', '--json', '--frobnicate']);
  t.deepEqual([ran.code, ran.stdout], [2, '']);
  t.regex(ran.stderr, /^git-durable: /);
});

test('--help of the program names every verb, and of a verb every option of it', (t) => {
  const place = scratch(t, { repository: false });
  const help = durable(place, ['--help']).stdout;
  t.true(VERBS.length > 15);
  for (const verb of VERBS) t.regex(help, new RegExp(`durable ${verb.name}\\b`));
  const recover = durable(place, ['help', 'recover']).stdout;
  for (const option of ['roll-back', 'roll-forward', 'keep', 'take-over', 'turn', 'all', 'json', 'C'])
    t.regex(recover, new RegExp(`-${option}\\b`));
});

test('of an option given twice the last one counts', (t) => {
  const place = scratch(t);
  const twice = durable(place, ['init', '--fence', 'strict', '--fence', 'off', '--agent', 'none']);
  t.regex(twice.stdout, /durable\.fence is 'off'/);
});

test('the command line of a user with another language is answered the same', (t) => {
  const place = scratch(t, { repository: false });
  const ran = durable(place, ['restore'], { env: { LC_ALL: 'de_DE.UTF-8', LANG: 'de_DE.UTF-8' } });
  t.regex(ran.stderr, /needs CHECKPOINT/);
});

test('a reader that goes away is no crash', async (t) => {
  const place = scratch(t, { repository: false });
  const child = spawn(process.execPath, [PROGRAM, '--help'], {
    env: place.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.destroy();
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number];
  t.deepEqual([code, said], [0, '']);
});

test('output that cannot be written is a failure with a sentence', (t) => {
  const full = openSync('/dev/full', 'w');
  t.teardown(() => {
    closeSync(full);
  });
  const place = scratch(t, { repository: false });
  const ran = spawnSync(process.execPath, [PROGRAM, '--help'], {
    env: place.env,
    stdio: ['ignore', full, 'pipe'],
    encoding: 'utf8',
  });
  t.is(ran.status, 1);
  t.regex(ran.stderr, /^git-durable: standard output cannot be written: ENOSPC/);
});

test('closed standard streams are no crash', (t) => {
  const place = scratch(t, { repository: false });
  const ran = place.run('/bin/sh', ['-c', '"$@" <&- >&- 2>&-', 'sh', process.execPath, PROGRAM, '--help']);
  t.is(ran.code, 0);
});
