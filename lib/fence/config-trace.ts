/**
 * What the repository's config was without us, byte for byte: git's own `--unset` takes a header along that was empty before,
 * and a last line gets the newline that it had not.
 *
 * `editConfig` around every change of ours notes in `<common git dir>/durable/config` what has to be undone, and the digest of what
 * we left. As long as the file is still that, `restoreConfig` puts the former bytes back; once somebody else has changed
 * it, or a change was cut short, what was noted holds no more, and ours goes setting by setting.
 */
import { lstatSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { digest } from '../canonical.js';
import { isAbsence } from '../git/disk.js';
import type { Storage } from '../git/storage.js';
import { configLeft } from './config.js';
import { isInstalledAnywhere } from './hooks.js';

const TRACE = v.object({
  v: v.literal(1),
  /** Of the whole file as we left it. */
  digest: v.string(),
  /** What that file has between its first `head` and its last `tail` bytes was `middle` (latin1); null: nobody knows. */
  undo: v.nullable(v.object({ head: v.number(), tail: v.number(), middle: v.string() })),
});

/** Runs `body`, which changes settings. Errors: those of `body`, the disk's. */
export async function editConfig<T>(storage: Storage, body: () => Promise<T>): Promise<T> {
  clearCut(storage);
  const before = readConfig(storage);
  const original = await originalOf(storage, before);
  const result = await body();
  const after = readConfig(storage);
  if (!after.equals(before) || readTrace(storage) === null) note(storage, original, after);
  return result;
}

/** True when the file is what it was without us. It waits for no git that is writing it. Errors: the disk's. */
export function restoreConfig(storage: Storage): boolean {
  const file = configFile(storage);
  const { disk } = storage;
  const [lock, fresh] = [lockOf(file), freshOf(file)];
  clearCut(storage);
  const original = undone(readTrace(storage), readConfig(storage));
  if (original === null) return false;
  disk.createPassing('fence.config', fresh, original, { exact: statSync(file).mode & 0o777 });
  const isLocked = disk.link('fence.config', fresh, lock) === 'done';
  // Under git's own lock once more.
  const isStill = isLocked && undone(readTrace(storage), readConfig(storage)) !== null;
  if (isStill) disk.rename('fence.config', lock, file);
  else if (isLocked) disk.unlink('fence.config', lock);
  disk.unlink('fence.config', fresh);
  return isStill;
}

/** Git's lock as a `restoreConfig` that was killed has left it: both names are of one file. */
function clearCut(storage: Storage): void {
  const file = configFile(storage);
  if (isSame(freshOf(file), lockOf(file))) storage.disk.unlink('fence.config', lockOf(file));
  storage.disk.unlink('fence.config', freshOf(file));
}

const lockOf = (file: string): string => `${file}.lock`;
const freshOf = (file: string): string => `${file}.durable-new`;

type Trace = v.InferOutput<typeof TRACE>;

/** Null where that is not known any more. */
async function originalOf(storage: Storage, now: Buffer): Promise<Buffer | null> {
  const trace = readTrace(storage);
  if (trace !== null) return undone(trace, now);
  const isClean = !isInstalledAnywhere(storage) && (await configLeft(storage)).length === 0;
  return isClean ? now : null;
}

function undone(trace: Trace | null, now: Buffer): Buffer | null {
  if (trace?.undo == null || trace.digest !== digest(now)) return null;
  const { head, tail, middle } = trace.undo;
  const end = now.subarray(now.length - tail);
  return Buffer.concat([now.subarray(0, head), Buffer.from(middle, 'latin1'), end]);
}

/** Only what differs is kept: a config may hold what nobody should have twice. */
function note(storage: Storage, original: Buffer | null, now: Buffer): void {
  const { disk, layout } = storage;
  const trace: Trace = { v: 1, digest: digest(now), undo: original && difference(original, now) };
  const fresh = `${traceFile(storage)}.new`;
  disk.unlink('fence.config', fresh);
  disk.createPassing('fence.config', fresh, Buffer.from(JSON.stringify(trace)), layout.bits.privateFile);
  disk.rename('fence.config', fresh, traceFile(storage));
}

function difference(original: Buffer, now: Buffer): NonNullable<Trace['undo']> {
  const most = Math.min(original.length, now.length);
  let head = 0;
  while (head < most && original[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < most - head && original.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  return { head, tail, middle: original.subarray(head, original.length - tail).toString('latin1') };
}

const traceFile = ({ layout }: Storage): string => join(layout.shared, 'config');

/** Git follows a link as well. */
const configFile = ({ layout }: Storage): string => realpathSync(join(layout.commonDir, 'config'));

const readConfig = (storage: Storage): Buffer => readFileSync(configFile(storage));

function readTrace(storage: Storage): Trace | null {
  try {
    const parsed = v.safeParse(
      v.pipe(v.string(), v.parseJson(), TRACE),
      readFileSync(traceFile(storage), 'utf8'),
    );
    return parsed.success ? parsed.output : { v: 1, digest: '', undo: null };
  } catch (error) {
    if (isAbsence(error)) return null;
    throw error;
  }
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) => lstatSync(path, { throwIfNoEntry: false }));
  return a !== undefined && b !== undefined && a.ino === b.ino && a.dev === b.dev;
}
