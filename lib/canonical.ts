/**
 * Bytes that are evidence: canonical JSON (RFC 8785) and the SHA-256 chain over it.
 *
 * chain(0) = SHA-256 of the task id; chain(n) = SHA-256 of the lower-case hex of chain(n-1), a newline, and the
 * event's JSON line. Six lines of shell in the README compute the same with sha256sum.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * RFC 8785: members sorted by UTF-16 code units, numbers and strings as ECMAScript prints them, no white space.
 * Members that are undefined are left out. A number that is not finite is a programming error.
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new RangeError('a number in canonical JSON must be finite');
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item)).join(',')}]`;
  if (typeof value === 'object') return canonicalObject(value);
  throw new TypeError(`a ${typeof value} has no canonical JSON`);
}

function canonicalObject(value: object): string {
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`).join(',')}}`;
}

/** Lower-case hex SHA-256. */
export function digest(bytes: Uint8Array | string): string {
  return bytesToHex(sha256(typeof bytes === 'string' ? utf8ToBytes(bytes) : bytes));
}

export const chainStart = (task: string): string => digest(task);

export const chainNext = (previous: string, line: string): string => digest(`${previous}\n${line}`);
