/**
 * The first private index of a large tree, filled by two gits at once from names alone.
 *
 * Most of a first checkpoint is git reading and hashing every file on one processor, and a look of ours at each of them before it.
 * Here each of two gits reads half of the names, and what they saw (type, size, times) is judged from the index afterwards. What
 * then turns out not to be an ordinary file within the limit makes all of it void: every path is looked at first, as ever.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { namesIn } from './disk.js';
import { entriesIn, visitEntries, joinIndexes } from './index-halves.js';
import { listOf } from './path.js';
import type { PrivateDir } from './private-dir.js';
import type { Quarantine } from './quarantine.js';
import { CLOCK_STEP_NS } from './stable-read.js';
import type { Storage } from './storage.js';

/** From this many names on two gits are worth their start and the joining. */
export const GREAT_MANY = 5000;
/** More than these are not read one by one. */
const FEW = 1000;

interface Place {
  readonly storage: Storage;
  readonly dir: PrivateDir;
  readonly quarantine: Quarantine;
}

export interface ReadByTwo {
  readonly index: Buffer;
  /** So fresh that a change could hide: to be read by us. */
  readonly fresh: readonly string[];
  /** Names that are not in it: gone, or left out by git. */
  readonly absent: readonly string[];
}

/** `names` are sorted as git sorts them. Null: look at each of them. Errors: 'git-missing', the disk's. */
export async function readByTwo(place: Place, names: readonly string[]): Promise<ReadByTwo | null> {
  const middle = Math.ceil(names.length / 2);
  const [first, second] = await Promise.all(
    [names.slice(0, middle), names.slice(middle)].map((half, at) => readHalf(place, half, at)),
  );
  // What git streams into a pack is larger than any limit of ours, and its size in the index is cut.
  const hasStreamed = namesIn(join(place.quarantine.objects, 'pack')).length > 0;
  if (!first || !second || hasStreamed) return null;
  const hashSize = place.storage.layout.objectFormat === 'sha256' ? 32 : 20;
  const index = joinIndexes(first, second, hashSize);
  const fresh = index === null ? null : judged(place, index, hashSize);
  if (index === null || fresh === null) return null;
  return { index, fresh, absent: absentFrom(index, names, hashSize) };
}

async function readHalf(place: Place, names: readonly string[], at: number): Promise<Buffer | null> {
  const index = place.quarantine.path(`half-${String(at)}`);
  const whole = ['-c', 'core.splitIndex=false', '-c', 'core.untrackedCache=false'];
  const args = [...whole, 'update-index', '-z', '--add', '--remove', '--replace', '--stdin'];
  const options = { site: 'snapshot.add', input: listOf(names), env: { GIT_INDEX_FILE: index } } as const;
  const result = await place.dir.run(place.quarantine, args, options);
  return result.code === 0 && existsSync(index) ? readFileSync(index) : null;
}

/** The fresh ones; null when that is not all there is to do. */
function judged({ storage, quarantine }: Place, index: Buffer, hashSize: number): string[] | null {
  const born = Number(quarantine.bornAt / 1_000_000n);
  // Changed in the second that has begun, or within a step of the clock before: git's stat could not show the next change.
  const limit = Math.min(born - Number(CLOCK_STEP_NS / 1_000_000n), born - (born % 1000));
  const { maxFileSize } = storage.settings;
  const fresh: string[] = [];
  let odd = 0;
  visitEntries(index, hashSize, (seen) => {
    if (seen.isRepository || seen.size > maxFileSize) odd += 1;
    if (seen.mtimeMs >= limit || seen.ctimeMs >= limit) fresh.push(seen.name());
  });
  return odd > 0 || fresh.length > FEW ? null : fresh;
}

function absentFrom(index: Buffer, names: readonly string[], hashSize: number): string[] {
  if (entriesIn(index) === names.length) return [];
  const present = new Set<string>();
  visitEntries(index, hashSize, ({ name }) => present.add(name()));
  return names.filter((name) => !present.has(name));
}
