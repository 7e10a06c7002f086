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
    ...['version', 'workspace', 'lease', 'turn', 'interrupted', 'approvals', 'conflicts', 'orphans', 'fence'],
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

test('from inside its turn lease release ends it, and the command is told by its own next step', (t) => {
  const place = scratch(t);
  const script = '"$0" "$1" lease release && "$0" "$1" ask --tool x --args "{}"; echo "code $?"';
  const ran = durable(place, ['run', '--', 'sh', '-c', script, process.execPath, PROGRAM]);
  t.is(ran.stdout, 'nobody holds this work tree\ncode 2\n');
  t.not(ran.code, 0);
  t.regex(ran.stderr, /its end is not recorded: /);
  t.is(last(events(place), 'turn.finished')?.['outcome'], 'abandoned');
  t.is(durable(place, ['run', '--', 'true']).code, 0);
});
