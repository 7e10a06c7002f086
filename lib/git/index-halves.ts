/**
 * Two indexes of git as one, and what an index says of its files.
 *
 * An index in version 2 without extensions is its entries one after another (gitformat-index(5)), so two of them whose names follow
 * each other are one: header, entries of the first, entries of the second, checksum. Anything else (another version, names
 * that do not follow each other) is refused with null. Read and written are private indexes of a quarantine alone, never
 * the user's.
 */
import { createHash } from 'node:crypto';
import { decodePath } from './path.js';

/** One index of both; null when these are not two halves of one. `hashSize`: bytes of an object id. */
export function joinIndexes(first: Buffer, second: Buffer, hashSize: number): Buffer | null {
  const [before, after] = [entriesOf(first, hashSize), entriesOf(second, hashSize)];
  if (before === null || after === null) return null;
  const follow = before.last === null || after.first === null || before.last.compare(after.first) < 0;
  if (!follow) return null;
  const header = Buffer.from(first.subarray(0, HEADER));
  header.writeUInt32BE(before.count + after.count, 8);
  const body = Buffer.concat([header, before.bytes, after.bytes]);
  return Buffer.concat([
    body,
    createHash(hashSize === 32 ? 'sha256' : 'sha1')
      .update(body)
      .digest(),
  ]);
}

/** What git saw of a file when it read it. Times in milliseconds since 1970; `size` modulo 2^32. */
export interface SeenEntry {
  readonly isRepository: boolean;
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly name: () => string;
}

/** The entries of an index as `joinIndexes` makes it. */
export function* entriesSeen(index: Buffer, hashSize: number): Generator<SeenEntry> {
  let at = HEADER;
  for (let left = entriesIn(index); left > 0; left -= 1) {
    const from = at;
    const name = nameAt(index, from + STAT + hashSize) ?? Buffer.of();
    const ms = (field: number): number =>
      index.readUInt32BE(from + field) * 1000 + index.readUInt32BE(from + field + 4) / 1e6;
    yield {
      isRepository: index.readUInt32BE(from + 24) >>> 12 === 0o16,
      size: index.readUInt32BE(from + 36),
      mtimeMs: ms(8),
      ctimeMs: ms(0),
      name: () => decodePath(name),
    };
    at = entryEnd(from, name, hashSize);
  }
}

/** How many entries an index has that is not split. */
export function entriesIn(index: Buffer): number {
  return index.readUInt32BE(8);
}

interface Entries {
  readonly count: number;
  readonly bytes: Buffer;
  /** Names; null without entries. */
  readonly first: Buffer | null;
  readonly last: Buffer | null;
}

const HEADER = 12;
/** Bytes of an entry's stat data, before the object id. */
const STAT = 40;
/** The flags' length of a name that is at least as long. */
const LONG_NAME = 0xfff;

function entriesOf(index: Buffer, hashSize: number): Entries | null {
  if (index.toString('latin1', 0, 4) !== 'DIRC' || index.readUInt32BE(4) !== 2) return null;
  const count = entriesIn(index);
  let at = HEADER;
  let [first, last]: (Buffer | null)[] = [null, null];
  for (let entry = 0; entry < count; entry += 1) {
    const name = nameAt(index, at + STAT + hashSize);
    if (name === null) return null;
    first ??= name;
    last = name;
    at = entryEnd(at, name, hashSize);
  }
  return { count, bytes: index.subarray(HEADER, at), first: first ?? null, last: last ?? null };
}

/** With 1 to 8 bytes of padding, up to a multiple of 8. */
function entryEnd(at: number, name: Buffer, hashSize: number): number {
  return at + ((STAT + hashSize + 2 + name.length + 8) & ~7);
}

/** `flagsAt`: where the entry's two bytes of flags are; its name follows them. */
function nameAt(index: Buffer, flagsAt: number): Buffer | null {
  const length = index.readUInt16BE(flagsAt) & LONG_NAME;
  const from = flagsAt + 2;
  const end = length === LONG_NAME ? index.indexOf(0, from) : from + length;
  return index[end] === 0 ? index.subarray(from, end) : null;
}
