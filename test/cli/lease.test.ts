import test from 'ava';
import { document, events, last, type Line } from '../helpers/events.js';
import { stateOf, until } from '../helpers/processes.js';
import { durable, PROGRAM, startDurable } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';

test('lease --json has the fields of the contract while a turn holds, and is null when nobody does', async (t) => {
  const place = scratch(t);
  t.is(document<Line | null>(place, ['lease']), null);
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', 'echo began; read -r _']);
  t.is(await running.line(), 'began');
  const lease = document(place, ['lease']);
  t.deepEqual(Object.keys(lease), [
    ...['holder', 'task', 'turn', 'epoch', 'acquiredAt', 'alive'],
    ...['ttlMs', 'renewedAt', 'host', 'bootId'],
  ]);
  const { holder, alive } = lease as { holder: Line; alive: boolean };
  t.deepEqual(Object.keys(holder), ['agent', 'host', 'pid']);
  t.deepEqual([holder['pid'], alive], [running.pid, true]);
  const status = document(place, ['status']);
  t.deepEqual(Object.keys(status), [
    ...[
      'version',
      'workspace',
      'lease',
      'turn',
      'interrupted',
      'approvals',
      'conflicts',
      'orphans',
      'inbox',
      'fence',
    ],
  ]);
  t.deepEqual(Object.keys(status['lease'] as Line), [
    'holder',
    'task',
    'turn',
    'epoch',
    'acquiredAt',
    'alive',
  ]);
  t.deepEqual(Object.keys(status['turn'] as Line), [
    'id',
    'task',
    'state',
    'objective',
    'agent',
    'startedAt',
  ]);
  running.child.stdin.end('\n');
  await running.ended;
});

test("a live holder's lease is nobody else's to release, and a dead one's turn needs recovery first", async (t) => {
  const place = scratch(t);
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', 'echo $$; read -r _']);
  const pid = Number(await running.line());
  t.is(durable(place, ['lease', 'release']).code, 4);
  process.kill(running.pid, 'SIGKILL');
  process.kill(pid, 'SIGKILL');
  await running.ended;
  await until('the command is gone', () => ['', 'Z'].includes(stateOf(pid)));
  t.is(durable(place, ['lease', 'release']).code, 3);
  t.is(durable(place, ['recover', '--keep']).code, 0);
  t.is(durable(place, ['lease', 'release']).code, 0);
});

test('from inside a live turn lease release is refused with 4, and the turn ends as if it had not been asked', (t) => {
  const place = scratch(t);
  const script = '"$0" "$1" lease release; echo "code $?"; exit 0';
  const ran = durable(place, ['run', '--', 'sh', '-c', script, process.execPath, PROGRAM]);
  t.deepEqual([ran.stdout, ran.code], ['code 4\n', 0]);
  t.is(last(events(place), 'turn.finished')?.['outcome'], 'completed');
  t.is(durable(place, ['run', '--', 'true']).code, 0);
});

for (const code of [0, 7]) {
  test(`run passes the code ${String(code)} on though the end cannot be recorded, and says so`, (t) => {
    const place = scratch(t);
    // The command takes away what the end is recorded in.
    const script = `rm -rf .git/refs/durable/leases .git/packed-refs; exit ${String(code)}`;
    const ran = durable(place, ['run', '--', 'sh', '-c', script]);
    t.is(ran.code, code);
    t.regex(ran.stderr, /^git-durable: the command has ended \(exit \d\), its end is not recorded: /);
  });
}
