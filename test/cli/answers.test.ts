import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { approvals, ARGS, ASK, pendingId, script } from '../helpers/asking.js';
import { events, last, type Line } from '../helpers/events.js';
import { until } from '../helpers/processes.js';
import { durable, PROGRAM, startDurable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

test('of 12 people who answer at once one decides, and the others leave with 4 and are told who and when', async (t) => {
  const place = scratch(t);
  const running = script(t, place, `${ASK}; echo "code $?"`);
  const id = await pendingId(place);
  const clients = Array.from({ length: 12 }, (_, n) =>
    startDurable(t, place, n % 2 === 0 ? ['approve', id] : ['reject', id, '--feedback', `no ${String(n)}`]),
  );
  const ends = await Promise.all(clients.map(({ ended }) => ended));
  t.deepEqual(ends.map(({ code }) => code).toSorted(), [0, ...Array<number>(11).fill(4)]);
  const [answer, ...more] = events(place).filter((line) => line['type'] === 'approval.resolved');
  t.deepEqual(more, []);
  const said = `approval ${id} is already ${String(answer?.['decision'])}, by ${String(answer?.['by'])} at ${String(answer?.['at'])};`;
  for (const [n, { code }] of ends.entries()) if (code === 4) t.true(clients[n]?.said.includes(said));
  const won = ends.findIndex(({ code }) => code === 0);
  t.is(answer?.['decision'], won % 2 === 0 ? 'approved' : 'rejected');
  t.is(await running.line(), won % 2 === 0 ? 'code 0' : `no ${String(won)}code 6`);
  await running.ended;
});

/** Every kind of character that a text can hold on a command line, up to `bytes` bytes of UTF-8. */
function everything(bytes: number): string {
  const kinds =
    '\ufeffé\r\n\t"\\\u202e\u200d\u{1f469}\u200d\u{1f680}\u0301\u0001\u007f\u0085\u2028\uffff\u{10ffff}\n\n';
  let text = '';
  while (Buffer.byteLength(text + kinds) <= bytes) text += kinds;
  return text + 'x'.repeat(bytes - Buffer.byteLength(text));
}

test('a rejection of 64 KiB of any Unicode comes out as the result of the tool, byte for byte; more is refused', async (t) => {
  const place = scratch(t);
  const running = script(t, place, `${ASK} -- touch ran > ../answer; echo "code $?"`);
  const id = await pendingId(place);
  const more = durable(place, ['reject', id, '--feedback', everything(65_537)]);
  t.is(more.code, 2, more.stderr);
  const feedback = everything(65_536);
  t.is(durable(place, ['reject', id, '--feedback', feedback]).code, 0);
  t.is(await running.line(), 'code 6');
  await running.ended;
  t.is(readFileSync(join(place.top, 'answer'), 'utf8'), feedback);
  const digest = createHash('sha256').update(feedback).digest('hex');
  t.is(last(events(place), 'invocation.finished')?.['state'], 'finished');
  const denied = events(place).find((line) => line['state'] === 'denied');
  t.is(denied?.['resultDigest'], digest);
  t.is((last(events(place), 'approval.resolved')?.['feedback'] as Line)['digest'], digest);
});

test('text that no bytes stand for is refused, not changed', async (t) => {
  const place = scratch(t);
  const running = script(t, place, `durable ask --tool deploy --args '${ARGS}'; echo asked; read -r _`);
  t.is(await running.line(), 'asked');
  const id = await pendingId(place);
  const words = `'${process.execPath}' '${PROGRAM.replaceAll("'", `'\\''`)}' reject ${id} --feedback "$(printf 'no \\377 way')"`;
  const ran = place.run('sh', ['-c', words]);
  t.deepEqual([ran.code, ran.stdout], [2, '']);
  t.regex(ran.stderr, /feedback must be valid Unicode/);
  t.is(approvals(place).pending.length, 1);
  writeFileSync(join(place.top, 'args'), Buffer.from([0x22, 0xff, 0x22]));
  running.child.stdin.end('\n');
  await running.ended;
  const asked = durable(place, [
    'run',
    '--',
    process.execPath,
    PROGRAM,
    'ask',
    '--tool',
    'x',
    '--args',
    `@${place.top}/args`,
  ]);
  t.is(asked.code, 2);
  t.regex(asked.stderr, /is not valid UTF-8/);
});

test('--expires: not answered in time it leaves with 1, nothing runs, and no answer counts any more', async (t) => {
  const place = scratch(t);
  const running = script(t, place, `${ASK} --expires 0.5 --json -- touch ran; echo "code $?"`);
  const told = JSON.parse((await running.line()) ?? '{}') as Line;
  t.is(told['state'], 'expired');
  t.is(await running.line(), 'code 1');
  await running.ended;
  const late = durable(place, ['approve', String(told['approval'])]);
  t.is(late.code, 4);
  t.regex(late.stderr, /is already expired, by the clock at /);
  t.deepEqual(approvals(place).pending, []);
  t.is(approvals(place).resolved[0]?.['state'], 'expired');
  t.is(place.run('test', ['-e', 'ran']).code, 1);
});

test('--invalid-on-change: in another tree it is refused to who answers, and who waits leaves with 1', async (t) => {
  const place = scratch(t);
  const running = script(t, place, `${ASK} --invalid-on-change -- touch ran; echo "code $?"`);
  const id = await pendingId(place);
  t.is(approvals(place).pending[0]?.['invalidOnChange'], true);
  t.regex(durable(place, ['approvals']).stdout, /until the work tree changes\n/);
  place.write('README', 'changed\n');
  const answer = durable(place, ['approve', id]);
  t.is(answer.code, 4);
  t.regex(answer.stderr, /is already invalidated, by a change of the work tree at /);
  t.is(await running.line(), 'code 1');
  await running.ended;
  t.is(place.run('test', ['-e', 'ran']).code, 1);
  t.is(durable(place, ['verify']).code, 0);
});

test('a tree that changes and changes back invalidates nothing while nobody has acted: what is shown is what is recorded', async (t) => {
  const place = scratch(t);
  place.write('kept', 'kept\n');
  const ask = `durable ask --tool deploy --args 1 --invalid-on-change`;
  const running = script(t, place, `${ask} -- echo ran; ${ask}; echo asked; read -r _; ${ask} -- echo ran`);
  t.is(await running.line(), 'asked');
  const states = (): unknown[] => {
    const { pending, resolved } = approvals(place);
    return [
      ...pending.map((one) => ['pending', one['lapsed']]),
      ...resolved.map((one) => [one['state'], one['lapsed']]),
    ];
  };
  const [first, second] = approvals(place).pending.map((one) => String(one['id']));
  t.is(durable(place, ['approve', String(second)]).code, 0);
  for (const [text, lapsed] of [
    ['other\n', 'invalidated'],
    ['kept\n', null],
    ['other\n', 'invalidated'],
  ] as const) {
    place.write('kept', text);
    t.deepEqual(states(), [
      ['pending', lapsed],
      ['approved', lapsed],
    ]);
    t.is(durable(place, ['status', '--exit-code']).code, 3);
    t.is(/the work tree has changed/.test(durable(place, ['approvals']).stdout), lapsed !== null);
  }
  t.is(durable(place, ['approve', String(first)]).code, 4);
  place.write('kept', 'kept\n');
  t.deepEqual(states(), [
    ['invalidated', null],
    ['approved', null],
  ]);
  t.is(durable(place, ['approve', String(first)]).code, 4);
  running.child.stdin.end('\n');
  await running.ended;
});

for (const words of [
  ['--expires', 'soon'],
  ['--expires', '-1'],
  ['--expires', '1e30'],
]) {
  test(`an end that is no time leaves with 2: ${words.join(' ')}`, async (t) => {
    const place = scratch(t);
    const running = script(t, place, `durable ask --tool x --args '{}' ${words.join(' ')}; echo "code $?"`);
    t.is(await running.line(), 'code 2');
    await running.ended;
    t.deepEqual(approvals(place).pending, []);
  });
}

test('requests are listed oldest first after every process of theirs is gone, and each change of what is asked is another one', async (t) => {
  const place = scratch(t);
  const asks = [
    `durable ask --tool deploy --args '{"n":1}'`,
    `durable ask --tool deploy --args '{"n": 1}'`,
    `durable ask --tool other --args '{"n":1}'`,
    `durable ask --tool deploy --args '{"n":1}' -- echo 1`,
    `cd ..; durable -C work ask --tool deploy --args '{"n":1}'; cd work; mkdir sub; cd sub; durable ask --tool deploy --args '{"n":1}'`,
  ];
  const first = script(t, place, `${asks.join('; ')}; echo asked; read -r _`);
  t.is(await first.line(), 'asked');
  process.kill(first.pid, 'SIGKILL');
  await first.ended;
  first.child.stdin.end('\n');
  t.is(durable(place, ['recover', '--keep']).code, 0);
  const second = script(t, place, asks.slice(0, 1).join('; '));
  t.is((await second.ended).code, 3);
  const { pending } = approvals(place);
  t.deepEqual(
    pending.map((one) => [one['tool'], one['command'], String(one['cwd']).slice(place.dir.length)]),
    [
      ['deploy', null, ''],
      ['deploy', null, ''],
      ['other', null, ''],
      ['deploy', ['echo', '1'], ''],
      ['deploy', null, '/sub'],
      ['deploy', null, ''],
    ],
  );
  const times = pending.map((one) => String(one['requestedAt']));
  t.deepEqual(times, times.toSorted());
  t.is(new Set(pending.map((one) => one['fingerprint'])).size, pending.length);
});

/** A background process of the turn, which answers once the turn is over and somebody writes into `go`. */
function leftBehind(place: Scratch, how: string): string {
  place.run('mkfifo', [join(place.top, 'go')]);
  return [
    `id=$(durable ask --tool deploy --args '${ARGS}' --json | sed 's/.*approval":"\\([a-z0-9]*\\).*/\\1/')`,
    `(read -r _ < ../go; ${how} "$0" '${PROGRAM}' approve "$id" > ../said 2>&1; echo "code $?" > ../end) < /dev/null > /dev/null 2>&1 &`,
  ].join('\n');
}

for (const [what, how] of [
  ['as it is', ''],
  ['without the marker', 'env -u DURABLE_MARKER'],
  ['with an empty environment', 'env -i PATH="$PATH" HOME="$HOME"'],
  ['in a session of its own', 'setsid -w'],
]) {
  test(`a process that a finished turn left running cannot answer: ${String(what)}`, async (t) => {
    const place = scratch(t);
    const running = script(t, place, leftBehind(place, String(how)));
    t.is((await running.ended).code, 0);
    t.is(last(events(place), 'turn.finished')?.['outcome'], 'completed');
    writeFileSync(join(place.top, 'go'), '\n');
    const end = (): string => place.run('cat', [join(place.top, 'end')]).stdout;
    await until('the process has tried', () => end() !== '');
    t.is(end(), 'code 4\n');
    t.regex(readFileSync(join(place.top, 'said'), 'utf8'), /'approve' is refused inside a turn/);
    t.is(approvals(place).pending.length, 1);
    t.is(durable(place, ['approve', String(approvals(place).pending[0]?.['id'])]).code, 0);
  });
}

test('an agent cannot answer what it asked for in another repository, from a turn of its own', (t) => {
  const here = scratch(t);
  const there = scratch(t);
  const inside = [
    'cd "$2"',
    '"$0" "$1" run --task new -- "$0" "$1" ask --tool deploy --args 1 > asked',
    'id=$("$0" "$1" approvals --json | sed "s/.*\\"id\\":\\"\\([a-z0-9]*\\)\\".*/\\1/")',
    '"$0" "$1" approve "$id"',
    'echo "$id $?"',
  ];
  const words = ['sh', '-c', inside.join('\n'), process.execPath, PROGRAM, there.dir];
  const ran = durable(here, ['run', '--', ...words]);
  const [request, ...more] = approvals(there).pending;
  t.deepEqual(more, []);
  const id = String(request?.['id']);
  t.is(ran.stdout, `${id} 4\n`, ran.stderr);
  const answered = durable(there, ['approve', id]);
  t.is(answered.code, 0, answered.stderr);
});
