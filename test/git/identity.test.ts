import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import test, { type ExecutionContext } from 'ava';
import { identityOf, type NamedProcess } from '../../lib/git/identity.js';
import { systemHost, type HostIdentity } from '../../lib/host.js';
import { stateOf, until } from '../helpers/processes.js';

const identity = identityOf(systemHost());
const playing = (other: Partial<HostIdentity>): ReturnType<typeof identityOf> =>
  identityOf({ ...systemHost(), identity: other });

/** A real process with everything that names it. */
async function named(t: ExecutionContext, child: ChildProcess): Promise<NamedProcess> {
  t.teardown(() => child.kill('SIGKILL'));
  await once(child, 'spawn');
  return name(child.pid ?? 0);
}

function name(pid: number): NamedProcess {
  const { hostId, bootId, pidNamespace } = identity.here();
  return { host: hostId, boot: bootId, pidNamespace, pid, start: identity.startOf(pid) ?? '' };
}

const sleeper = (): ChildProcess => spawn('sleep', ['60'], { stdio: 'ignore' });

test('this process is alive to itself, by the names that it gives itself', (t) => {
  const { hostId, bootId, pidNamespace } = identity.here();
  t.regex(bootId, /./);
  t.is(identity.self().pid, process.pid);
  const me = { host: hostId, boot: bootId, pidNamespace, ...identity.self() };
  t.is(identity.judge(me).verdict, 'alive');
});

test('a process that runs is alive, and one that is stopped is alive too', async (t) => {
  const child = sleeper();
  const other = await named(t, child);
  t.is(identity.judge(other).verdict, 'alive');
  child.kill('SIGSTOP');
  await until('stopped', () => stateOf(other.pid) === 'T');
  t.is(identity.judge(other).verdict, 'alive');
});

test('a process that ended is dead', async (t) => {
  const child = sleeper();
  const other = await named(t, child);
  child.kill('SIGKILL');
  await once(child, 'exit');
  t.is(identity.judge(other).verdict, 'dead');
  t.is(identity.startOf(other.pid), null);
});

test('a zombie is dead: nobody has waited for it, but it writes no more', async (t) => {
  // The shell becomes another program, which never waits for the shell's child.
  const parent = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 60'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await named(t, parent);
  const [line] = (await once(createInterface({ input: parent.stdout }), 'line')) as [string];
  const child = name(Number(line));
  t.is(identity.judge(child).verdict, 'alive');
  process.kill(child.pid, 'SIGKILL');
  await until('zombie', () => stateOf(child.pid) === 'Z');
  t.is(identity.judge(child).verdict, 'dead');
});

test('a pid that another process has by now proves its first owner dead', async (t) => {
  const other = await named(t, sleeper());
  t.is(identity.judge({ ...other, start: `${other.start}0` }).verdict, 'dead');
});

test('a running process whose start time was never recorded is not proven dead', async (t) => {
  const other = await named(t, sleeper());
  t.is(identity.judge({ ...other, start: '' }).verdict, 'unproven');
});

test('another boot of the same host proves everything before it dead, whatever runs under the pid now', (t) => {
  const before = { ...name(process.pid), boot: 'an-earlier-boot' };
  t.is(identity.judge(before).verdict, 'dead');
  t.is(identity.judge({ ...before, pidNamespace: 'pid:[1]' }).verdict, 'dead');
});

test('nothing is proven about another host, its other boot and its missing pids included', (t) => {
  const other = { ...name(process.pid), host: 'elsewhere' };
  t.is(identity.judge(other).verdict, 'unproven');
  t.is(identity.judge({ ...other, boot: 'an-earlier-boot' }).verdict, 'unproven');
  t.is(identity.judge({ ...other, pid: 2 ** 22 + 1 }).verdict, 'unproven');
});

test('nothing is proven about another pid namespace: its pids mean other processes', (t) => {
  const other = { ...name(2 ** 22 + 1), pidNamespace: 'pid:[1]' };
  t.is(identity.judge(other).verdict, 'unproven');
});

test('a process of another user is judged as well as our own', (t) => {
  t.is(identity.judge(name(1)).verdict, 'alive');
});

test('a host can be played: what is handed in wins over what the system says', (t) => {
  const played = playing({ hostId: 'elsewhere', bootId: 'b' });
  t.like(played.here(), { hostId: 'elsewhere', bootId: 'b', hostname: identity.here().hostname });
  t.is(played.judge(name(process.pid)).verdict, 'unproven');
});
