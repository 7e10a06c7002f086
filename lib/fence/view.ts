/**
 * What the observer compares: refs, HEAD, index, stash and work trees of a repository at one moment, read without git.
 *
 * Not seen: `git clean`, edits, and whatever else only writes the work tree; the checkpoints of the turn show those.
 */
import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { hasCode } from '../errors.js';
import { errno, namesIn } from '../git/disk.js';
import type { Storage } from '../git/storage.js';

const VIEW = v.object({
  turn: v.string(),
  /** Lines of the shim's record that had been read. */
  commands: v.number(),
  /** Lines of those commands that had not ended. */
  running: v.array(v.number()),
  /** The folder that hooks of ours are put in; null where there are none. */
  hooks: v.nullable(v.string()),
  /**
   * `HEAD`, `index` (the end of its digest), `stash` (the commits of its list), `work tree NAME`, and full ref names: to what each
   * was.
   */
  things: v.record(v.string(), v.string()),
});

export type View = v.InferOutput<typeof VIEW>;

export interface Difference {
  readonly name: string;
  readonly before: string | null;
  readonly after: string | null;
}

const OURS = /^refs\/(?:durable|durable-remote|notes\/durable)(?:\/|$)/;

export function look(storage: Storage): View['things'] {
  const { layout, refs } = storage;
  const things: Record<string, string> = {
    HEAD: textOf(join(layout.gitDir, 'HEAD')),
  };
  const index = indexOf(join(layout.gitDir, 'index'));
  if (index !== null) things['index'] = index;
  const stash = stashList(storage);
  if (stash.length > 0) things['stash'] = stash.join(' ');
  for (const name of namesIn(join(layout.commonDir, 'worktrees'))) things[`work tree ${name}`] = 'there';
  for (const ref of refs.names('refs/', 'refs/durable')) {
    const value = OURS.test(ref) ? null : valueOf(storage, ref);
    if (value !== null) things[ref] = value;
  }
  return things;
}

/** A ref of the user's that a power cut tore is no reason to refuse a turn. */
function valueOf({ refs }: Storage, ref: string): string | null {
  try {
    return refs.read(ref);
  } catch (error) {
    if (hasCode(error, 'ref-damaged')) return 'damaged';
    throw error;
  }
}

export function differences(before: View['things'], after: View['things']): Difference[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names]
    .map((name) => ({ name, before: before[name] ?? null, after: after[name] ?? null }))
    .filter((one) => one.before !== one.after)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

export const viewFile = ({ layout }: Storage): string => join(layout.local, 'view');

export function readView(storage: Storage): View | null {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), VIEW), textOf(viewFile(storage)));
  return parsed.success ? parsed.output : null;
}

export function writeView(storage: Storage, view: View): void {
  const { disk, tickets, layout } = storage;
  const temp = tickets.temp();
  const bytes = Buffer.from(JSON.stringify(view), 'utf8');
  disk.createPassing('fence.view', temp, bytes, layout.bits.privateFile);
  disk.rename('fence.view', temp, viewFile(storage));
}

/** '' for a file that is not there. */
export function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8').trimEnd();
  } catch (error) {
    if (errno(error) === 'ENOENT' || errno(error) === 'ENOTDIR') return '';
    throw error;
  }
}

const TRAILER_BYTES = 20;

/**
 * An index ends with the digest of its content, or with zeros (`index.skipHash`): then its identity as a file stands for it. null
 * where there is none.
 */
export function indexOf(path: string): string | null {
  try {
    const fd = openSync(path, 'r');
    try {
      const trailer = Buffer.alloc(TRAILER_BYTES);
      const { size, ino, mtimeNs } = fstatSync(fd, { bigint: true });
      readSync(fd, trailer, 0, TRAILER_BYTES, Math.max(0, Number(size) - TRAILER_BYTES));
      if (trailer.some((byte) => byte !== 0)) return trailer.toString('hex');
      return [ino, size, mtimeNs].map(String).join('-');
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (errno(error) === 'ENOENT' || errno(error) === 'ENOTDIR') return null;
    throw error;
  }
}

/** The commits of the stash's list, the oldest first. */
const stashList = ({ layout }: Storage): string[] =>
  textOf(join(layout.commonDir, 'logs/refs/stash'))
    .split('\n')
    .flatMap((line) => line.split(' ', 2)[1] ?? []);
