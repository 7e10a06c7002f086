/**
 * Two gits at once fill the first private index of a large tree, each its half of the sorted names, and the halves are joined.
 *
 * Most of a first checkpoint is git reading and hashing every file, on one processor. An index in version 2 without extensions
 * is its entries one after another (gitformat-index(5)), so two of them whose names follow each other are one: header,
 * entries of the first, entries of the second, checksum. Anything else (another version, names that do not follow each
 * other) is refused with null, and one git reads all of it.
 */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { Feed } from './private-index.js';

export interface Fed {
  readonly fed: readonly Feed[];
  /** False when a git failed: what the halves hold is not all of it. */
  readonly isFine: boolean;
}

/**
 * Gives each half of `count` sorted feeds to a git of its own as soon as it is known. A git that is slow holds back neither the other
 * one nor the looks.
 */
export async function feedHalves(
  feeds: { readonly batches: AsyncIterable<readonly Feed[]>; readonly count: number },
  listOf: (batch: readonly Feed[]) => Uint8Array,
  start: (half: number, names: AsyncIterable<Uint8Array>) => Promise<boolean>,
): Promise<Fed> {
  const lists = [new Readable({ read: () => undefined }), new Readable({ read: () => undefined })];
  const gits = Promise.all(lists.map((list, half) => start(half, list)));
  const fed: Feed[] = [];
  try {
    for await (const batch of feeds.batches) {
      const list = lists[fed.length * 2 < feeds.count ? 0 : 1];
      list?.push(listOf(batch));
      for (const feed of batch) fed.push(feed);
      if (fed.length * 2 >= feeds.count && list === lists[0]) list?.push(null);
    }
  } finally {
    for (const list of lists) if (!list.readableEnded && !list.destroyed) list.push(null);
  }
  return { fed, isFine: (await gits).every((isFine) => isFine) };
}

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
    // 1 to 8 bytes of padding, up to a multiple of 8.
    at += (STAT + hashSize + 2 + name.length + 8) & ~7;
  }
  return { count, bytes: index.subarray(HEADER, at), first: first ?? null, last: last ?? null };
}

/** `flagsAt`: where the entry's two bytes of flags are; its name follows them. */
function nameAt(index: Buffer, flagsAt: number): Buffer | null {
  const length = index.readUInt16BE(flagsAt) & LONG_NAME;
  const from = flagsAt + 2;
  const end = length === LONG_NAME ? index.indexOf(0, from) : from + length;
  return index[end] === 0 ? index.subarray(from, end) : null;
}
