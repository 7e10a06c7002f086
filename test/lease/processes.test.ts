import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { digest } from '../../lib/canonical.js';
import { systemHost } from '../../lib/host.js';
import { endProcesses } from '../../lib/lease/ending.js';
import {
  entryOf,
  findProcesses,
  type ProcessEntry,
  type ProcessIdentity,
} from '../../lib/lease/processes.js';
import { isAlive } from '../helpers/holder-process.js';
import { stateOf, until } from '../helpers/processes.js';

/** A caller that is none of the processes here, so that descendants of this test are found. */
const NOBODY = 0;

/** Starts a shell that prints one line of pids when it is ready; it and they are killed at the end. */
async function shell(
  t: ExecutionContext,
  script: string,
  options: { env?: Record<string, string>; detached?: boolean } = {},
): Promise<{ child: ChildProcess; self: ProcessIdentity; pids: number[] }> {
  const child = spawn('sh', ['-c', script], {
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: options.detached ?? false,
    env: { PATH: process.env['PATH'], ...options.env },
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const pids = line.toString().trim().split(/\s+/).map(Number);
  child.stdout.destroy();
  t.teardown(() => {
    for (const pid of [child.pid ?? 0, ...pids]) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  });
  return { child, self: identity(child.pid ?? 0), pids };
}

const identity = (pid: number): ProcessIdentity => ({ pid, start: entryOf(pid)?.start ?? '' });

test('a process is found by the marker in its environment, wherever it was started', async (t) => {
  const marker = `marker ${String(process.pid)}`;
  const { self, pids } = await shell(t, 'setsid sleep 1000 & echo $!; wait', {
    env: { DURABLE_MARKER: marker },
  });
  const found = findProcesses({ markerHash: digest(marker), recorded: [], caller: NOBODY });
  t.deepEqual(
    found.map(({ pid }) => pid),
    [self.pid, ...pids].sort((a, b) => a - b),
  );
  t.deepEqual(findProcesses({ markerHash: digest('another'), recorded: [], caller: NOBODY }), []);
  t.true(found.some(({ command }) => command === 'sleep 1000'));
});

test('without a marker, what is in the group or session of a recorded process is found, also after it died', async (t) => {
  const { child, self, pids } = await shell(t, 'env -i sleep 1000 & echo $!; wait', { detached: true });
  child.kill('SIGKILL');
  await until('the leader is gone', () => stateOf(self.pid) === '');
  const found = findProcesses({ markerHash: null, recorded: [self], caller: NOBODY });
  t.deepEqual(
    found.map(({ pid }) => pid),
    pids,
  );
});

test('what names a dead holder as its agent is found, wherever it is; an older process names another one of that pid', async (t) => {
  const script = 'CLAUDE_PID=$$ setsid sleep 1000 & echo $!; wait';
  const { child, self, pids } = await shell(t, script, { detached: true });
  const search = { markerHash: null, recorded: [self], holders: [self], caller: NOBODY };
  const [left = 0] = pids;
  // By descent, while its parent lives.
  t.true(findProcesses(search).some(({ pid }) => pid === left));
  child.kill('SIGKILL');
  await until('the holder is gone', () => stateOf(self.pid) === '');
  t.deepEqual(
    findProcesses(search).map(({ pid }) => pid),
    pids,
  );
  const later = [{ pid: self.pid, start: String(Number(identity(left).start) + 1) }];
  t.deepEqual(findProcesses({ ...search, recorded: later, holders: later }), []);
});

test('descendants of a recorded process are found in other groups and sessions', async (t) => {
  const { self, pids } = await shell(t, 'setsid sh -c "sleep 1000 & echo \\$\\$ \\$!; wait" & wait');
  const found = findProcesses({ markerHash: null, recorded: [self], caller: NOBODY }).map(({ pid }) => pid);
  t.is(pids.length, 2);
  t.true([self.pid, ...pids].every((pid) => found.includes(pid)));
});

test('a process that only has the same pid as a recorded one is not found, nor what it leads', async (t) => {
  const { self } = await shell(t, 'sleep 1000 & echo $!; wait', { detached: true });
  const reused = { pid: self.pid, start: '1' };
  t.deepEqual(findProcesses({ markerHash: null, recorded: [reused], caller: NOBODY }), []);
  t.is((await endProcesses(systemHost(), [reused])).length, 0);
  t.true(isAlive(self.pid));
});

test('the caller, what it runs in, what it started, and its keeper are never found', async (t) => {
  const marker = `marker caller ${String(process.pid)}`;
  const { self, pids } = await shell(t, 'sh -c "sleep 1000 & echo \\$\\$ \\$!; wait" & wait', {
    env: { DURABLE_MARKER: marker },
  });
  const [caller = 0, started = 0] = pids;
  const outside = await shell(t, 'echo $$; exec sleep 1000', { env: { DURABLE_MARKER: marker } });
  const search = { markerHash: digest(marker), recorded: [self, identity(started)], caller };
  t.deepEqual(
    findProcesses(search).map(({ pid }) => pid),
    outside.pids,
  );
  t.deepEqual(findProcesses({ ...search, except: [outside.self] }), []);
});

test('a stopped process is alive and is ended by KILL at once, without being continued', async (t) => {
  const { self } = await shell(t, 'trap "echo late" TERM; echo $$; while :; do sleep 0.05; done');
  process.kill(self.pid, 'SIGSTOP');
  await until('it is stopped', () => stateOf(self.pid) === 'T');
  t.deepEqual(await endProcesses(systemHost(), [self], { termMs: 60_000, killMs: 5000 }), []);
  t.false(isAlive(self.pid));
});

/** As a shell with job control leaves it: `run` (200) leads the group of a pipeline, and was killed. */
const PIPELINE: readonly ProcessEntry[] = [
  { pid: 100, start: '900', parent: 1, group: 100, session: 100 },
  { pid: 201, start: '1001', parent: 100, group: 200, session: 100 },
  { pid: 210, start: '1040', parent: 1, group: 200, session: 100 },
  { pid: 220, start: '1100', parent: 1, group: 200, session: 100 },
  { pid: 221, start: '1200', parent: 220, group: 200, session: 100 },
  { pid: 230, start: '1300', parent: 1, group: 230, session: 230 },
].map((entry) => ({ ...entry, zombie: false, stopped: false }));

test("of the group that a dead holder led, what the turn left is found, and the user's pipeline is not", (t) => {
  const [run, command] = [
    { pid: 200, start: '1000' },
    { pid: 210, start: '1040' },
  ];
  const search = { markerHash: null, recorded: [run, command], holders: [run], caller: NOBODY };
  const found = (table: readonly ProcessEntry[]): number[] =>
    findProcesses(search, table, () => null).map(({ pid }) => pid);
  t.deepEqual(found(PIPELINE), [210, 220, 221]);
  const orphaned = PIPELINE.filter(({ pid }) => pid !== 100).map((entry) =>
    entry.parent === 100 ? { ...entry, parent: 1 } : entry,
  );
  t.deepEqual(found(orphaned), [210, 220, 221], 'with its shell gone');
});
