/**
 * Who this process is, and whether another one is proven dead (PROTOCOL.md 2).
 *
 * A process is named by host, boot, pid namespace, pid and start time together: any one of them alone comes back.
 *
 * | the other's                       | verdict  |
 * | --------------------------------- | -------- |
 * | host is not ours                  | unproven |
 * | boot is not ours (same host)      | dead     |
 * | pid namespace is not ours         | unproven |
 * | pid is gone                       | dead     |
 * | pid has another start time        | dead     |
 * | pid is a zombie (no thread left)  | dead     |
 * | pid is there, stopped or not      | alive    |
 * | pid is there, its start hidden    | unproven |
 *
 * "Gone" needs two witnesses on Linux: no /proc entry (it may be hidden, `hidepid`) and kill(pid, 0) saying ESRCH.
 * The host id covers the host name as well as the machine id, since images and clones share machine ids and a wrong
 * "same host, other boot" would be a wrong proof; a renamed host is therefore another host.
 *
 * Caveats: a virtual machine cloned while running has the boot id of its origin; two such clones on one shared
 * checkout are not told apart. Systems other than Linux and macOS have no boot id here: only a missing pid proves.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { errno } from './disk.js';
import type { Host, HostIdentity } from '../host.js';

/** A process as a lease record or a lock ticket names it. */
export interface NamedProcess {
  readonly host: string;
  readonly boot: string;
  readonly pidNamespace: string;
  readonly pid: number;
  /** As the system gives it; compared as text only. Linux: clock ticks since boot. */
  readonly start: string;
}

export interface Judgement {
  readonly verdict: 'dead' | 'alive' | 'unproven';
  /** For people: what the verdict rests on. */
  readonly why: string;
}

export interface Identity {
  here(): HostIdentity;
  self(): { readonly pid: number; readonly start: string };
  judge(other: NamedProcess): Judgement;
  /** The start time of a process of this pid namespace, null when there is none (a zombie counts as none). */
  startOf(pid: number): string | null;
}

export function identityOf(host: Host): Identity {
  const system = SYSTEMS[process.platform] ?? elsewhere;
  let known: HostIdentity | undefined;
  const here = (): HostIdentity => (known ??= { ...system.here(), ...host.identity });
  const look = (pid: number): Seen => system.look(pid);
  let start: string | undefined;
  return {
    here,
    self: () => {
      if (start === undefined) {
        const seen = look(host.pid);
        start = seen.is === 'running' ? seen.start : '';
      }
      return { pid: host.pid, start };
    },
    judge: (other) => judge(here(), other, look),
    startOf: (pid) => {
      const seen = look(pid);
      return seen.is === 'running' ? seen.start : null;
    },
  };
}

type Seen = { is: 'gone' | 'zombie' | 'hidden' } | { is: 'running'; start: string };

interface System {
  here(): HostIdentity;
  look(pid: number): Seen;
}

function judge(here: HostIdentity, other: NamedProcess, look: (pid: number) => Seen): Judgement {
  const pid = `process ${String(other.pid)}`;
  if (other.host !== here.hostId) return { verdict: 'unproven', why: 'it is on another host' };
  if (other.boot !== here.bootId) return { verdict: 'dead', why: 'the machine was started again since' };
  if (other.pidNamespace !== here.pidNamespace)
    return { verdict: 'unproven', why: 'it is in another pid namespace (a container)' };
  const seen = look(other.pid);
  switch (seen.is) {
    case 'gone':
      return { verdict: 'dead', why: `${pid} is gone` };
    case 'zombie':
      return { verdict: 'dead', why: `${pid} has ended` };
    case 'hidden':
      return { verdict: 'unproven', why: `the start time of ${pid} cannot be read` };
    case 'running':
      if (seen.start === other.start) return { verdict: 'alive', why: `${pid} is running` };
      if (other.start === '')
        return { verdict: 'unproven', why: `the start time of ${pid} was not recorded` };
      return { verdict: 'dead', why: `${pid} is another process by now` };
  }
}

const linux: System = {
  here: () => ({
    hostId: hostDigest(readOr('/etc/machine-id', '/var/lib/dbus/machine-id'), hostname()),
    bootId: readOr('/proc/sys/kernel/random/boot_id'),
    pidNamespace: linkOr('/proc/self/ns/pid'),
    hostname: hostname(),
  }),
  look: (pid) => {
    // A /proc of another pid namespace (unshare --pid without a new mount) shows other processes under these pids.
    const mine = linkOr('/proc/self') === String(process.pid);
    const stat = mine ? readOr(`/proc/${String(pid)}/stat`) : '';
    return stat === '' ? signalled(pid) : parseStat(stat);
  },
};

/** proc(5): state is field 3, num_threads 20, starttime 22; field 2 is a name in brackets that may hold anything. */
function parseStat(stat: string): Seen {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, threads, start] = [fields[0], fields[17], fields[19]];
  // A leader that ended before its other threads shows as a zombie while they still write.
  if ((state === 'Z' || state === 'X') && Number(threads) <= 1) return { is: 'zombie' };
  return start === undefined ? { is: 'hidden' } : { is: 'running', start };
}

const macos: System = {
  here: () => ({
    hostId: hostDigest(command('ioreg', ['-rd1', '-c', 'IOPlatformExpertDevice']).match(UUID)?.[1] ?? '', ''),
    bootId: command('sysctl', ['-n', 'kern.bootsessionuuid']),
    pidNamespace: '',
    hostname: hostname(),
  }),
  look: (pid) => {
    const line = command('ps', ['-o', 'stat=,lstart=', '-p', String(pid)]);
    const found = /^(\S+)\s+(.+)$/.exec(line);
    if (found === null) return signalled(pid);
    return found[1]?.startsWith('Z') === true ? { is: 'zombie' } : { is: 'running', start: found[2] ?? '' };
  },
};

const UUID = /"IOPlatformUUID" = "([^"]+)"/;

const elsewhere: System = {
  here: () => ({ hostId: hostDigest('', hostname()), bootId: '', pidNamespace: '', hostname: hostname() }),
  look: signalled,
};

const SYSTEMS: Partial<Record<NodeJS.Platform, System>> = { linux, darwin: macos };

/** Only what kill(2) with signal 0 tells: gone, or there with a start time that nobody gave. */
function signalled(pid: number): Seen {
  try {
    process.kill(pid, 0);
    return { is: 'hidden' };
  } catch (error) {
    return errno(error) === 'ESRCH' ? { is: 'gone' } : { is: 'hidden' };
  }
}

function hostDigest(machine: string, name: string): string {
  return createHash('sha256').update(`${machine}\0${name}`).digest('hex').slice(0, 32);
}

function readOr(...paths: readonly string[]): string {
  for (const path of paths) {
    try {
      const text = readFileSync(path, 'utf8').trim();
      if (text !== '') return text;
    } catch (error) {
      // Not there, hidden, or ended while it was read: the caller has a second witness.
      if (errno(error) === '') throw error;
    }
  }
  return '';
}

function linkOr(path: string): string {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (errno(error) === '') throw error;
    return '';
  }
}

function command(program: string, args: readonly string[]): string {
  const ran = spawnSync(program, args, {
    encoding: 'utf8',
    env: { PATH: '/usr/sbin:/sbin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
  });
  return ran.status === 0 ? ran.stdout.trim() : '';
}
