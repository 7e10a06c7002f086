import { spawn } from 'node:child_process';
import { once } from 'node:events';
import test from 'ava';
import { alive, end, find, processes, until } from '../../../cli/drill/processes.js';

test('a process is found with its parent, and is not alive under another start time', (t) => {
  const self = find(process.pid);
  t.is(self?.parent, process.ppid);
  t.true(alive({ pid: process.pid, start: self?.start ?? '' }));
  t.false(alive({ pid: process.pid, start: '1' }));
  t.true(processes().some((one) => one.pid === process.pid));
});

test('a process that has ended is dead although nobody has waited for it', async (t) => {
  // The shell turns into a sleep that never collects its child: the child stays a zombie.
  const shell = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  t.teardown(() => shell.kill('SIGKILL'));
  const [chunk] = (await once(shell.stdout, 'data')) as [Buffer];
  const pid = Number(chunk.toString('utf8'));
  t.true(await until(() => find(pid) === undefined, 10_000));
});

test('end kills exactly the process that was meant', async (t) => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  const pid = child.pid ?? 0;
  const seen = find(pid);
  end({ pid, start: '1' });
  t.true(alive({ pid, start: seen?.start ?? '' }));
  end({ pid, start: seen?.start ?? '' });
  const [, signal] = (await once(child, 'exit')) as [number | null, string | null];
  t.is(signal, 'SIGKILL');
});
