/**
 * The inbox: what an agent told of and nobody could record, whole, until it can be recorded (PROTOCOL.md 6).
 *
 *     <git dir>/durable/inbox/<time>-<id>.json        waits: it is taken in as soon as its own turn takes events
 *     <git dir>/durable/inbox/<time>-<id>.late.json   its turn is over: no other turn ever takes it; a person reads and removes it
 *
 * One file a payload, of the git dir that all work trees share, for its owner alone (0600), whatever `core.sharedRepository` says: a payload may hold
 * secrets, and no object of the repository has any of it as long as it lies here. Guarantee: when `keepPayload` returns a file,
 * the file is flushed with its name. It is created under its own name, complete or not at all but for a kill or a power cut in the middle: what is left then is
 * no JSON, stays, and is named. Bounded: MOST_FILES, MOST_BYTES; what would go over is not kept, and the caller is told.
 */
import { lstatSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { count } from '../event-shapes.js';
import { diskError, isAbsence, namesIn } from '../git/disk.js';
import type { Storage } from '../git/storage.js';
import { freshId } from '../host.js';
import { AGENTS } from './step.js';

/** The turn that the payload is of, and the fencing token under which alone it may be appended. */
const PLACE = v.strictObject({ task: v.string(), turn: v.string(), epoch: count });

const KEPT = v.strictObject({
  v: v.literal(1),
  at: v.pipe(v.string(), v.isoTimestamp()),
  agent: v.picklist(AGENTS),
  /** Of the agent, as its hook found it. */
  process: v.strictObject({ pid: count, start: v.string() }),
  workTree: v.string(),
  /** Null where the lease could not be read, or was another's. */
  place: v.nullable(PLACE),
  /** What stood in the way. */
  why: v.string(),
  /** What the hook read, character by character. */
  payload: v.string(),
});

export type KeptPayload = v.InferOutput<typeof KEPT>;
export type PayloadPlace = v.InferOutput<typeof PLACE>;

export interface InboxFile {
  readonly name: string;
  readonly path: string;
  /** Its turn is over, and that was recorded. */
  readonly isLate: boolean;
  /** When it was written, ISO 8601. */
  readonly since: string;
}

export interface InboxBounds {
  readonly files: number;
  readonly bytes: number;
}

const BOUNDS: InboxBounds = { files: 1000, bytes: 256 * 1024 * 1024 };

const NAME = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)-(\d{3})Z-[a-z2-7]{26}(\.late)?\.json$/;

/** Null where it would go over the bounds: then nothing was kept. Errors: the disk's. */
export function keepPayload(
  storage: Storage,
  kept: KeptPayload,
  bounds: InboxBounds = BOUNDS,
): InboxFile | null {
  const { disk, host, layout } = storage;
  const bytes = Buffer.from(`${JSON.stringify(kept)}\n`, 'utf8');
  const files = inboxFiles(storage);
  const held = files.reduce((sum, { path }) => sum + sizeOf(path), 0);
  if (files.length >= bounds.files || held + bytes.length > bounds.bytes) return null;
  const folder = folderOf(storage);
  disk.makeDir('inbox.write', folder, layout.bits.privateDir);
  const name = `${kept.at.replace(/[:.]/g, '-')}-${freshId(host)}.json`;
  const path = join(folder, name);
  disk.create('inbox.write', path, bytes, { exact: 0o600 });
  disk.syncDir('inbox.write', folder);
  return { name, path, isLate: false, since: kept.at };
}

/** Oldest first; none where there is no inbox. Errors: the disk's. */
export function inboxFiles(storage: Storage): InboxFile[] {
  const folder = folderOf(storage);
  return namesIn(folder)
    .sort()
    .flatMap((name) => {
      const [, day, hour, minute, second, ms, late] = NAME.exec(name) ?? [];
      if (day === undefined) return [];
      const since = `${day}T${String(hour)}:${String(minute)}:${String(second)}.${String(ms)}Z`;
      return [{ name, path: join(folder, name), isLate: late !== undefined, since }];
    });
}

/** Null for what its writer did not finish, a newer program wrote, or another process has taken in meanwhile. Errors: the disk's. */
export function readPayload({ path }: InboxFile): KeptPayload | null {
  try {
    const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), KEPT), readFileSync(path, 'utf8'));
    return parsed.success ? parsed.output : null;
  } catch (error) {
    if (isAbsence(error)) return null;
    throw diskError(error, path);
  }
}

/** It is on record. Back after a power cut, it is taken in once more, and is the same event. */
export function dropPayload({ disk }: Storage, file: InboxFile): void {
  disk.unlink('inbox.drop', file.path);
}

/** It can never be appended, and that is on record: it waits for a person. Its new name. */
export function setAside({ disk }: Storage, file: InboxFile): string {
  const name = lateName(file);
  disk.rename('inbox.aside', file.path, join(dirname(file.path), name));
  return name;
}

export const lateName = ({ name }: InboxFile): string => name.replace(/(?:\.late)?\.json$/, '.late.json');

const folderOf = ({ layout }: Storage): string => join(layout.shared, 'inbox');

const sizeOf = (path: string): number => lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
