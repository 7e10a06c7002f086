import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { approvals, ARGS, ASK, pendingId, script } from '../helpers/asking.js';
import { events, last } from '../helpers/events.js';
import { stateOf, until } from '../helpers/processes.js';
import { durable, PROGRAM } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';

test('an approval waited for lets the command run once, and its end is recorded', async (t) => {
  const place = scratch(t);
  const running = script(t, place, `${ASK} -- sh -c 'echo ran >> ran; exit 9'; echo "code $?"`);
  const id = await pendingId(place);
  const [pending] = approvals(place).pending;
  t.deepEqual(Object.keys(pending ?? {}), [
    'id',
    'task',
    'turn',
    'tool',
    'args',
    'command',
    'cwd',
    'fingerprint',
    'requestedAt',
    'expiresAt',
    'invalidOnChange',
    'lapsed',
  ]);
  t.deepEqual(pending?.['args'], { path: 'a b', n: 1 });
  t.false(existsSync(join(place.dir, 'ran')));
  t.is(durable(place, ['status', '--exit-code']).code, 3);
  t.is(durable(place, ['approve', id.slice(0, 8)]).code, 0);
  t.is(await running.line(), 'code 9');
  t.is((await running.ended).code, 0);
  t.is(readFileSync(join(place.dir, 'ran'), 'utf8'), 'ran\n');
  const all = events(place);
  t.is(last(all, 'approval.consumed')?.['approval'], id);
  const call = last(all, 'approval.consumed')?.['invocation'];
  const end = all.find((line) => line['type'] === 'invocation.finished' && line['invocation'] === call);
  t.deepEqual([end?.['state'], end?.['exit']], ['failed', 9]);
  t.is(durable(place, ['verify']).code, 0);
});

test('a rejection leaves with 6, its text on standard output as it was given, and nothing runs', async (t) => {
  const place = scratch(t);
  const running = script(t, place, `${ASK} -- touch ran > answer; echo "code $?"`);
  const id = await pendingId(place);
  const feedback = '  use the "other" one\n\tplease — \u{1f64f}\n';
  t.is(durable(place, ['reject', id, '--feedback', feedback]).code, 0);
  t.is(await running.line(), 'code 6');
  await running.ended;
  t.is(readFileSync(join(place.dir, 'answer'), 'utf8'), feedback);
  t.false(existsSync(join(place.dir, 'ran')));
  const [resolved] = approvals(place).resolved;
  t.deepEqual([resolved?.['id'], resolved?.['feedback']], [id, feedback]);
});

test('without a command the answer is only reported and stays unused; unanswered is 3', async (t) => {
  const place = scratch(t);
  const ask = `durable ask --tool deploy --args '${ARGS}'`;
  const running = script(t, place, `${ask}; echo "code $?"; read -r _; ${ask}; echo "code $?"`);
  t.is(await running.line(), 'code 3');
  const id = await pendingId(place);
  t.is(durable(place, ['approve', id]).code, 0);
  running.child.stdin.write('\n');
  t.is(await running.line(), 'code 0');
  await running.ended;
  t.is(events(place).filter((line) => line['type'] === 'approval.requested').length, 1);
  t.is(approvals(place).resolved[0]?.['state'], 'approved');
});

test('an approval is of one command: another command with the same arguments has to be asked for', async (t) => {
  const place = scratch(t);
  const ask = (command: string): string =>
    `durable ask --tool deploy --args '${ARGS}' -- ${command}; echo "code $?"`;
  const running = script(
    t,
    place,
    `${ask("echo 'a b'")}; read -r _; ${ask('echo other')}; ${ask("echo 'a b'")}`,
  );
  t.is(await running.line(), 'code 3');
  const id = await pendingId(place);
  t.deepEqual(approvals(place).pending[0]?.['command'], ['echo', 'a b']);
  t.true(durable(place, ['approvals']).stdout.includes(`${ARGS} -- echo 'a b'`));
  t.is(durable(place, ['approve', id]).code, 0);
  running.child.stdin.write('\n');
  t.is(await running.line(), 'code 3');
  t.is(await running.line(), 'a b');
  t.is(await running.line(), 'code 0');
  await running.ended;
  t.deepEqual(approvals(place).pending[0]?.['command'], ['echo', 'other']);
});

test('arguments are shown as they were recorded: no number is rounded, none becomes null', async (t) => {
  const place = scratch(t);
  const exact = '{"id":9007199254740993,"rate":1.10,"tiny":1e-400,"text":"a\\u00e9\\u202e"}';
  const running = script(t, place, `durable ask --tool pay --args '${exact}'; echo "code $?"`);
  t.is(await running.line(), 'code 3');
  await running.ended;
  const json = durable(place, ['approvals', '--json']).stdout;
  t.true(json.includes(`"args":${exact},`), json);
  t.is(approvals(place).pending.length, 1);
  t.true(durable(place, ['approvals']).stdout.includes(exact));
});

for (const [what, args] of [
  ['one name twice', '{"to":"staging","to":"production"}'],
  ['one name twice, escaped', '[{"a":{"to":1,"t\\u006f":2}}]'],
  ['a number beyond any', '{"n":[1,-1e400]}'],
] as const) {
  test(`arguments that two readers could take differently are refused: ${what}`, async (t) => {
    const place = scratch(t);
    const running = script(t, place, `durable ask --tool pay --args '${args}' 2>&1; echo "code $?"`);
    t.regex((await running.line()) ?? '', /--args can be read in two ways/);
    t.is(await running.line(), 'code 2');
    await running.ended;
    t.deepEqual(approvals(place).pending, []);
  });
}

test('of two answers the first counts, the second leaves with 4 and is told who did', async (t) => {
  const place = scratch(t);
  const running = script(t, place, `durable ask --tool deploy --args '${ARGS}'; echo asked; read -r _`);
  t.is(await running.line(), 'asked');
  const id = await pendingId(place);
  t.is(durable(place, ['approve', id]).code, 0);
  for (const words of [
    ['approve', id],
    ['reject', id, '--feedback', 'no'],
  ]) {
    const second = durable(place, words);
    t.is(second.code, 4);
    t.regex(second.stderr, /^git-durable: approval \S+ is already approved, by \S+ at /);
  }
  running.child.stdin.end('\n');
  await running.ended;
});

test('no process of the turn can answer: not with its environment, and not with an empty one', async (t) => {
  const place = scratch(t);
  const answer = (how: string): string => `${how} "$0" '${PROGRAM}' approve "$id" 2>&1; echo "code $?"`;
  const text = [
    `id=$(durable ask --tool deploy --args '${ARGS}' --json | sed 's/.*approval":"\\([a-z0-9]*\\).*/\\1/')`,
    answer(''),
    answer('env -u DURABLE_MARKER'),
    answer('env -i PATH="$PATH" HOME="$HOME"'),
  ].join('\n');
  const running = script(t, place, text);
  for (let time = 0; time < 3; time += 1) {
    t.regex((await running.line()) ?? '', /^git-durable: 'approve' is refused inside a turn/);
    t.is(await running.line(), 'code 4');
  }
  await running.ended;
  t.is(approvals(place).pending.length, 1);
});

test('ask finds its turn by ancestry when the environment was cleared', async (t) => {
  const place = scratch(t);
  const ask = `env -i PATH="$PATH" HOME="$HOME" "$0" '${PROGRAM}' ask --tool deploy --args '${ARGS}'; echo "code $?"`;
  const running = script(t, place, ask);
  t.is(await running.line(), 'code 3');
  await running.ended;
});

test('an answer given while the agent was dead is honoured when the same is asked again', async (t) => {
  const place = scratch(t);
  const first = script(
    t,
    place,
    `durable ask --tool deploy --args '${ARGS}' -- echo ran; echo asked; read -r _`,
  );
  t.is(await first.line(), 'asked');
  process.kill(first.pid, 'SIGKILL');
  await first.ended;
  first.child.stdin.end('\n');
  const id = await pendingId(place);
  t.is(durable(place, ['approve', id]).code, 0);
  t.is(durable(place, ['recover', '--keep']).code, 0);
  const task = String(events(place)[0]?.['task']);
  const words = ['ask', '--tool', 'deploy', '--args', ARGS, '--', 'echo', 'ran'];
  const ran = durable(place, ['run', '--task', task, '--', process.execPath, PROGRAM, ...words]);
  t.deepEqual([ran.code, ran.stdout], [0, 'ran\n'], ran.stderr);
  t.is(last(events(place), 'approval.consumed')?.['approval'], id);
});

test('killed while it waits, the request stays and is listed', async (t) => {
  const place = scratch(t);
  const running = script(t, place, `echo $$; ${ASK}`);
  const pid = Number(await running.line());
  const id = await pendingId(place);
  process.kill(running.pid, 'SIGKILL');
  process.kill(pid, 'SIGKILL');
  await running.ended;
  await until('the command is gone', () => ['', 'Z'].includes(stateOf(pid)));
  t.is(approvals(place).pending[0]?.['id'], id);
});

const WRONG: readonly (readonly [words: readonly string[], says: RegExp])[] = [
  [['ask', '--tool', 'x', '--args', '{}'], /no turn is open here/],
  [['ask', '--args', '{}'], /name the tool/],
  [['ask', '--tool', 'x'], /exact arguments/],
  [['ask', '--tool', 'x', '--args', '{'], /is not JSON/],
  [['ask', '--tool', 'x', '--args', '@nowhere'], /cannot be read/],
  [['ask', '--tool', 'x', '--args', '{}', '--wait', 'long'], /number of seconds/],
  [['approve', 'nothing'], /no approval 'nothing'/],
  [['reject', 'nothing'], /say why/],
];

for (const [words, says] of WRONG) {
  test(`wrong usage leaves with 2: ${words.join(' ')}`, (t) => {
    const ran = durable(scratch(t), words);
    t.deepEqual([ran.code, ran.stdout], [2, '']);
    t.regex(ran.stderr, says);
  });
}
