/**
 * What the library may not read by itself: clock, randomness, process identity and environment are handed in as one
 * `Host`, so that a test can step a wall clock by a day or be another host. `systemHost` is the real one.
 */
import { randomBytes } from 'node:crypto';
import { uptime } from 'node:os';
import { noFaults, type Faults } from './git/fault.js';

export interface Host {
  /** Wall clock, for people: nothing is decided by it but the expiry of a request that was given one. */
  readonly now: () => Date;
  /** Monotonic milliseconds of this process, for waiting. */
  readonly monotonicMs: () => number;
  /** Milliseconds since boot, counting suspend where the system does. */
  readonly uptimeMs: () => number;
  readonly random: (bytes: number) => Uint8Array;
  readonly pid: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly faults: Faults;
  /** Who this machine, boot, pid namespace and process are; replaced in tests to play another host. */
  readonly identity?: Partial<HostIdentity>;
}

export interface HostIdentity {
  readonly hostId: string;
  readonly bootId: string;
  readonly pidNamespace: string;
  readonly hostname: string;
}

export function systemHost(faults: Faults = noFaults): Host {
  return {
    now: () => new Date(),
    monotonicMs: () => performance.now(),
    uptimeMs: () => uptime() * 1000,
    random: (bytes) => randomBytes(bytes),
    pid: process.pid,
    env: process.env,
    faults,
  };
}

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** A fresh id: lower-case base32 (RFC 4648 alphabet), 26 characters hold 128 bits and 2 spare ones. */
export function freshId(host: Host, characters = 26): string {
  let text = '';
  for (const byte of host.random(characters)) text += BASE32.charAt(byte & 31);
  return text;
}
