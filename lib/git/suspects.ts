/**
 * Files whose stat cannot show every later edit to git, which compares whole seconds (private-index.ts says when); we compare
 * nanoseconds.
 */
import type { BigIntStats } from 'node:fs';

export interface Suspect {
  readonly path: string;
  /** inode, size, mtime and ctime in nanoseconds; '' matches nothing. */
  readonly stat: string;
}

/** True for a suspect that stays one: a change in the second that has begun could still hide behind it. */
export function isStillSuspect(suspect: Suspect, since: bigint): boolean {
  const changed = BigInt(suspect.stat.split(' ')[3] ?? since);
  return second(changed) >= second(since);
}

export const second = (ns: bigint): bigint => ns / 1_000_000_000n;

export function statText(stat: BigIntStats): string {
  return [stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].join(' ');
}
