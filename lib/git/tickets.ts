/**
 * Who owns the locks of this process: one ticket file a process (PROTOCOL.md 10, 25).
 *
 * A lock of ours is a hard link of the ticket, so it is complete and flushed the moment it exists, and whoever meets it
 * can judge its owner. The file is written and flushed once, at the first lock; `drop` removes it at orderly exit.
 * Temporary files of this process lie beside it (`temp`), so that what a killed process left is found by its ticket.
 *
 * States of `tickets/<id>`: absent (nothing written yet, or ended) · there, owner alive · there, owner dead (litter;
 * `sweep` removes it and its temporary files; never a lock, which has its own name and the claim chain).
 *
 * The ticket is flushed even with `durable.fsync=false`: a lock that a power cut left empty could never be attributed.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { freshId, type Host } from '../host.js';
import type { Bits } from './bits.js';
import { Disk, errno } from './disk.js';
import type { Identity, NamedProcess } from './identity.js';
import type { Layout } from './layout.js';

const ticketSchema = v.object({
  v: v.literal(1),
  id: v.pipe(v.string(), v.regex(/^[a-z2-7]{26}$/)),
  pid: v.pipe(v.number(), v.integer(), v.minValue(0)),
  start: v.string(),
  boot: v.string(),
  pidNamespace: v.string(),
  host: v.string(),
  hostname: v.string(),
  text: v.string(),
  /** The turn whose fence a lock is; absent in a process's own ticket. */
  turn: v.optional(v.string()),
});

/** What a lock of ours says about its owner. */
export type Ticket = NamedProcess & v.InferOutput<typeof ticketSchema>;

/** Decodes a lock's or ticket's bytes; null when they are not a whole ticket of ours. */
export function parseTicket(bytes: Uint8Array): Ticket | null {
  try {
    const parsed = v.safeParse(ticketSchema, JSON.parse(Buffer.from(bytes).toString('utf8')));
    return parsed.success ? parsed.output : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** The ticket in a file: null when the file is gone, 'foreign' when it is no ticket of ours. */
export function readTicket(path: string): Ticket | 'foreign' | null {
  try {
    return parseTicket(readFileSync(path)) ?? 'foreign';
  } catch (error) {
    const code = errno(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    if (code === 'EACCES' || code === 'EISDIR') return 'foreign';
    throw error;
  }
}

export class Tickets {
  readonly #dir: string;
  readonly #bits: Bits;
  readonly #host: Host;
  readonly #identity: Identity;
  readonly #disk: Disk;
  #mine: { id: string; path: string; inode: bigint } | undefined;
  #temps = 0;

  constructor(parts: { layout: Layout; host: Host; identity: Identity }) {
    this.#dir = join(parts.layout.shared, 'tickets');
    this.#bits = parts.layout.bits;
    this.#host = parts.host;
    this.#identity = parts.identity;
    this.#disk = new Disk(parts.host.faults, true);
  }

  get id(): string {
    return this.#ticket().id;
  }

  /** The file to link as a lock; written at the first call, and again when somebody removed it. */
  get path(): string {
    return this.#ticket().path;
  }

  /** True when the file at `path` is a link of this process's ticket. */
  isMine(path: string): boolean {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    return found !== undefined && found.ino === this.#mine?.inode;
  }

  /** A fresh name for a temporary file of this process, on the file system of the git dir. */
  temp(): string {
    this.#temps += 1;
    return `${this.path}.${String(this.#temps)}`;
  }

  /**
   * A ticket of its own for one lock that outlives this process: owned by `owner`, whose death frees it. The caller links it
   * and drops the file, since the lock itself is the ticket then.
   */
  issueFor(owner: { pid: number; start: string }, more: { text: string; turn: string }): string {
    return this.#write(freshId(this.#host), owner, more).path;
  }

  /** Orderly exit. Locks that are still held keep their owner's name and are healed by others. */
  drop(): void {
    if (this.#mine !== undefined) this.#disk.unlink('ticket.drop', this.#mine.path);
    this.#mine = undefined;
  }

  /** Removes tickets and temporary files of proven-dead processes; returns how many owners went. */
  sweep(): number {
    const names = this.#names();
    let swept = 0;
    for (const name of names) {
      if (name.includes('.') || name === this.#mine?.id) continue;
      const ticket = readTicket(join(this.#dir, name));
      if (ticket === null || ticket === 'foreign') continue;
      if (this.#identity.judge(ticket).verdict !== 'dead') continue;
      for (const temp of names)
        if (temp.startsWith(`${name}.`)) this.#disk.unlink('ticket.drop', join(this.#dir, temp));
      this.#disk.unlink('ticket.drop', join(this.#dir, name));
      swept += 1;
    }
    return swept;
  }

  #ticket(): { id: string; path: string; inode: bigint } {
    if (this.#mine !== undefined && this.isMine(this.#mine.path)) return this.#mine;
    this.#mine = this.#issue();
    this.sweep();
    return this.#mine;
  }

  #issue(): { id: string; path: string; inode: bigint } {
    const self = this.#identity.self();
    const { hostname } = this.#identity.here();
    const text = `a lock of git-durable, held by process ${String(self.pid)} on ${hostname}; it goes when that process lets go or is dead`;
    const { id, path } = this.#write(freshId(this.#host), self, { text });
    return { id, path, inode: statSync(path, { bigint: true }).ino };
  }

  #write(
    id: string,
    { pid, start }: { pid: number; start: string },
    more: { text: string; turn?: string },
  ): { id: string; path: string } {
    const { hostId: host, bootId: boot, pidNamespace, hostname } = this.#identity.here();
    const ticket: Ticket = { v: 1, ...more, id, pid, start, boot, pidNamespace, host, hostname };
    const path = join(this.#dir, id);
    this.#disk.makePassingDir('ticket.write', this.#dir, this.#bits.privateDir);
    const bytes = Buffer.from(`${JSON.stringify(ticket)}\n`, 'utf8');
    this.#disk.create('ticket.write', path, bytes, this.#bits.privateFile);
    return { id, path };
  }

  #names(): string[] {
    try {
      return readdirSync(this.#dir);
    } catch (error) {
      if (errno(error) === 'ENOENT') return [];
      throw error;
    }
  }
}
