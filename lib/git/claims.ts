/**
 * Locks that name their owner, and the only way to remove a dead owner's (PROTOCOL.md 25 to 27).
 *
 * `take(path)` is `link(ticket, path)`: exclusive against git's own O_EXCL, and complete from the first moment.
 * `release(path)` unlinks it, if it is still ours. `heal(path)` looks at a lock that stands in the way:
 *
 * - absent: 'gone'; not a ticket of ours (git's, or torn): 'foreign', never touched;
 * - owner alive or not proven dead: 'held', never touched, whatever its age;
 * - owner proven dead: the right to remove it is a chain of write-once files. `claims/<ticket>-<lock>` is linked from
 *   the healer's ticket; taken by another: alive, it is his to do ('held'); dead, `claims/<ticket>-<lock>.<claimant>`
 *   is next, and so on. Who holds the chain's end does `beforeUnlock`, reads the lock again, and unlinks it only if it
 *   is still that ticket's.
 *
 * One ticket may have owned several locks, so a claim names the lock's path too (16 hex of its SHA-256). Claims are
 * dropped after the unlink: a healer that claims afterwards reads the lock again and finds it changed for ever, since
 * a dead owner links no more.
 *
 * Crash points: any; a dead healer's claim is succeeded. What it leaves in `claims/` goes with the next healing of the
 * same lock, or with `sweep`.
 */
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Bits } from './bits.js';
import { errno, type Disk } from './disk.js';
import type { Identity } from './identity.js';
import type { Layout } from './layout.js';
import { readTicket, type Ticket, type Tickets } from './tickets.js';

/** What was found at a lock's path, and done about it. */
export type Healing =
  | { readonly state: 'gone' }
  | { readonly state: 'removed'; readonly owner: Ticket }
  | { readonly state: 'held'; readonly owner: Ticket; readonly why: string }
  | { readonly state: 'foreign' };

export class Locks {
  readonly #disk: Disk;
  readonly #claims: string;
  readonly #bits: Bits;
  readonly #tickets: Tickets;
  readonly #identity: Identity;

  constructor(parts: { disk: Disk; layout: Layout; tickets: Tickets; identity: Identity }) {
    this.#disk = parts.disk;
    this.#claims = join(parts.layout.shared, 'claims');
    this.#bits = parts.layout.bits;
    this.#tickets = parts.tickets;
    this.#identity = parts.identity;
  }

  /** 'missing': the folder of the lock is not there (git removes empty ref folders). */
  take(path: string): 'taken' | 'busy' | 'missing' {
    const ticket = this.#tickets.path;
    const outcome = this.#disk.link('ref.lock', ticket, path);
    if (outcome === 'done') return 'taken';
    return outcome === 'exists' ? 'busy' : 'missing';
  }

  /** False when the lock is not (any more) this process's; it is then left alone. */
  release(path: string): boolean {
    return this.#tickets.isMine(path) && this.#disk.unlink('ref.unlock', path);
  }

  /**
   * Removes the lock if its owner is proven dead. `beforeUnlock` runs under the claim, before the lock goes: it takes
   * away whatever the dead owner's orphans could still publish (a staging directory).
   */
  heal(path: string, beforeUnlock: (dead: Ticket) => void = () => undefined): Healing {
    const owner = readTicket(path);
    if (owner === null) return { state: 'gone' };
    if (owner === 'foreign') return { state: 'foreign' };
    const { verdict, why } = this.#identity.judge(owner);
    if (verdict !== 'dead') return { state: 'held', owner, why };
    const name = `${owner.id}-${lockDigest(path)}`;
    const claim = this.#claim(name);
    if (claim === 'changed') return { state: 'gone' };
    if (claim === 'foreign') return { state: 'foreign' };
    if (claim !== 'won') return { state: 'held', owner: claim.claimant, why: 'it is removing a dead lock' };
    beforeUnlock(owner);
    const still = readTicket(path);
    const removed = still !== null && still !== 'foreign' && still.id === owner.id;
    if (removed) this.#disk.unlink('claim.unlock', path);
    this.#dropClaims(name);
    return removed ? { state: 'removed', owner } : { state: 'gone' };
  }

  /**
   * Drops claims that are about no lock any more (their healer died after the unlink). `locks` are all the paths a
   * lock of ours can have; a claim whose lock still is that ticket's stays.
   */
  sweep(locks: readonly string[]): number {
    // Listed before the locks are read: a claim that is there now is about a lock whose owner is dead already, and
    // that is gone for good if it is not seen below.
    const names = this.#names();
    const wanted = new Set<string>();
    for (const path of locks) {
      const owner = readTicket(path);
      if (owner !== null && owner !== 'foreign') wanted.add(`${owner.id}-${lockDigest(path)}`);
    }
    let dropped = 0;
    for (const name of names) {
      if (wanted.has(name.split('.')[0] ?? '')) continue;
      if (this.#disk.unlink('claim.drop', join(this.#claims, name))) dropped += 1;
    }
    return dropped;
  }

  /** Follows the chain to its end. 'changed': a claim vanished under us, so the lock is gone. */
  #claim(first: string): 'won' | 'changed' | 'foreign' | { claimant: Ticket } {
    for (let name = first; ;) {
      const outcome = this.#disk.link('claim.link', this.#tickets.path, join(this.#claims, name));
      if (outcome === 'done') return 'won';
      if (outcome === 'missing') {
        this.#disk.makePassingDir('claim.link', this.#claims, this.#bits.privateDir);
        continue;
      }
      const claimant = readTicket(join(this.#claims, name));
      if (claimant === null) return 'changed';
      if (claimant === 'foreign') return 'foreign';
      if (claimant.id === this.#tickets.id) return 'won';
      if (this.#identity.judge(claimant).verdict !== 'dead') return { claimant };
      name = `${first}.${claimant.id}`;
    }
  }

  #dropClaims(first: string): void {
    for (const name of this.#names()) {
      if (name === first || name.startsWith(`${first}.`))
        this.#disk.unlink('claim.drop', join(this.#claims, name));
    }
  }

  #names(): string[] {
    try {
      return readdirSync(this.#claims);
    } catch (error) {
      if (errno(error) === 'ENOENT') return [];
      throw error;
    }
  }
}

/** A lock's path in a claim's name. */
function lockDigest(path: string): string {
  return createHash('sha256').update(path).digest('hex').slice(0, 16);
}
