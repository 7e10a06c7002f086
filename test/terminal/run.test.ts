import test from 'ava';
import { durable, PROGRAM, startDurable } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';
import { inTerminal } from '../helpers/terminal.js';

const NODE = `'${process.execPath}'`;
const RUN = `${NODE} '${PROGRAM}' run`;

const count = (text: string, word: string): number => text.split(`${word}\n`).length - 1;

/** Says each INT it gets, and `quiet` when none has come for a while: a second one would come within milliseconds. */
const COUNTS =
  "let timer; process.on('SIGINT', () => { console.log('SIGINT'); clearTimeout(timer); timer = setTimeout(() => console.log('quiet'), 300); }); process.stdin.once('data', () => process.exit(42)); console.log('ready')";

test('Ctrl-C reaches the command once, and once for each time', (t) => {
  const again = { until: 'quiet\\r', send: '\u0003' };
  const shown = inTerminal(scratch(t), [
    { until: '\\$ ', send: `${RUN} -- ${NODE} -e "${COUNTS}"\n` },
    { until: 'ready\\r', send: '\u0003' },
    ...[again, again, again],
    { until: 'quiet\\r', send: '\n' },
    { until: '\\$ ', send: 'echo "code $?"\n' },
    { until: 'code 42', send: 'exit\n' },
  ]);
  t.is(count(shown, 'SIGINT'), 4);
});

/** Sends INT to its parent, which is `run`, and says how often it gets it back. */
const ASKS_PARENT =
  "process.on('SIGINT', () => console.log('SIGINT')); process.stdin.once('data', () => process.exit(42)); process.kill(process.ppid, 'SIGINT')";

test('a signal to this program alone is passed on in a terminal as well', (t) => {
  const shown = inTerminal(scratch(t), [
    { until: '\\$ ', send: `${RUN} -- ${NODE} -e "${ASKS_PARENT}"\n` },
    { until: 'SIGINT\\r', send: '\n' },
    { until: '\\$ ', send: 'echo "code $?"; exit\n' },
  ]);
  t.is(count(shown, 'SIGINT'), 1);
  t.regex(shown, /code 42\n/);
});

test('Ctrl-Z gives the terminal back to the shell, and fg gives it to the command again', (t) => {
  const shown = inTerminal(scratch(t), [
    { until: '\\$ ', send: `${RUN} -- sh -c 'echo begun; read -r x; echo "got $x"'\n` },
    { until: 'begun\\r', send: '\u001a' },
    { until: 'Stopped', send: 'echo "at the $((1 + 1)) shell"\n' },
    { until: 'at the 2 shell', send: 'fg\n' },
    { until: 'run --', send: 'a line\n' },
    { until: 'got a line', send: 'echo "code $?"; exit\n' },
  ]);
  t.regex(shown, /code 0\n/);
});

/** Tidies up when told to stop, and stops then, as an editor does. */
const TIDIES =
  "process.on('SIGTSTP', () => setTimeout(() => { console.log('tidied'); process.kill(process.pid, 'SIGSTOP'); }, 600)); process.stdin.once('data', () => process.exit(42)); console.log('begun')";

test('Ctrl-Z gives the terminal back only when the command has stopped, which may tidy up first', (t) => {
  const shown = inTerminal(scratch(t), [
    { until: '\\$ ', send: `${RUN} -- ${NODE} -e "${TIDIES}"\n` },
    { until: 'begun\\r', send: '\u001a' },
    { until: 'Stopped', send: 'fg\n' },
    { until: 'run --', send: '\n' },
    { until: '\\$ ', send: 'echo "code $?"; exit\n' },
  ]);
  t.regex(shown, /tidied\n[^]*Stopped[^]*code 42\n/);
});

test('a command that ignores Ctrl-Z keeps the terminal', (t) => {
  const shown = inTerminal(scratch(t), [
    { until: '\\$ ', send: `${RUN} -- sh -c 'trap "" TSTP; echo begun; read -r x; echo "got $x"'\n` },
    { until: 'begun\\r', send: '\u001a' },
    { until: '\\^Z', send: 'a line\n' },
    { until: 'got a line', send: 'exit\n' },
  ]);
  t.false(shown.includes('Stopped'));
});

test('a command that stops itself stops the job, and goes on with it', (t) => {
  const shown = inTerminal(scratch(t), [
    { until: '\\$ ', send: `${RUN} -- sh -c 'echo begun; kill -STOP $$; echo resumed'\n` },
    { until: 'Stopped', send: 'fg\n' },
    { until: 'resumed\\r', send: 'echo "code $?"; exit\n' },
  ]);
  t.regex(shown, /code 0\n/);
});

test('the command is in the foreground of the terminal and reads it without echo when it says so', (t) => {
  const shown = inTerminal(scratch(t), [
    {
      until: '\\$ ',
      send: `${RUN} -- sh -c 'stty -echo; ps -o stat= -p $$; read -r x; stty echo; echo "$x" | rev'\n`,
    },
    { until: '\\S\\+\\r', send: 'secret\n' },
    { until: 'terces', send: 'exit\n' },
  ]);
  t.false(shown.includes('secret'));
});

test('on interrupted work a person is asked: no answer leaves with 3, an answer repairs and runs', async (t) => {
  const place = scratch(t);
  const running = startDurable(t, place, [
    'run',
    '--',
    'sh',
    '-c',
    'echo changed > README; echo $$; read -r _',
  ]);
  const pid = Number(await running.line());
  process.kill(running.pid, 'SIGKILL');
  process.kill(pid, 'SIGKILL');
  await running.ended;
  const shown = inTerminal(place, [
    { until: '\\$ ', send: `${RUN} -- cat README\n` },
    { until: 'else quit\\] ', send: '\n' },
    { until: '\\$ ', send: 'echo "code $?"\n' },
    { until: 'code 3', send: `${RUN} -- cat README\n` },
    { until: 'else quit\\] ', send: '\u0003' },
    { until: '\\$ ', send: 'echo "code $?"\n' },
    { until: 'code 3', send: `${RUN} -- cat README\n` },
    { until: 'else quit\\] ', send: 'back\n' },
    { until: 'hello', send: 'exit\n' },
  ]);
  t.regex(shown, /is recovered \(roll-back\)/);
  t.is(durable(place, ['recover']).code, 0);
});

test('colour is for a terminal, and NO_COLOR takes it away', (t) => {
  const place = scratch(t);
  const status = { until: '\\$ ', send: `${NODE} '${PROGRAM}' status\n` };
  const end = { until: 'next: ', send: 'exit\n' };
  t.true(inTerminal(place, [status, end], { TERM: 'xterm' }).includes('\u001b[32mfree'));
  t.false(inTerminal(place, [status, end], { TERM: 'xterm', NO_COLOR: '1' }).includes('\u001b[32m'));
});
