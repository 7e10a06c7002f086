/**
 * What `init` did to agents' files in one work tree: `<git dir>/durable/agents/installed`, and beside it, for each file that was there
 * before, its bytes as they were (0600: settings may hold secrets).
 *
 * Written before the file itself is. `after` has every content that was put there since `before` was kept: one of them means that nobody
 * else has changed the file, so that `before` is what it goes back to, byte for byte.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import * as v from 'valibot';
import { AGENTS } from '../../lib/agents/step.js';
import { diskError, isAbsence, namesIn } from '../../lib/git/disk.js';
import type { Storage } from '../../lib/git/storage.js';

const RECORD = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({
    v: v.literal(1),
    files: v.array(
      v.object({
        agent: v.picklist(AGENTS),
        scope: v.picklist(['local', 'shared']),
        /** Relative to the work tree's top. */
        path: v.string(),
        /** SHA-256 of its bytes before ours were in it; null where there was no such file. */
        before: v.nullable(v.string()),
        after: v.array(v.string()),
        /** Folders made for it, outermost first. */
        madeDirs: v.array(v.string()),
      }),
    ),
  }),
);

export type Recorded = v.InferOutput<typeof RECORD>['files'][number];

/** Nothing where nothing is on record. Errors: the disk's. */
export function recordedIn(gitDir: string): readonly Recorded[] {
  const bytes = readWhole(recordFile(gitDir));
  const parsed = bytes === null ? null : v.safeParse(RECORD, bytes.toString('utf8'));
  return parsed?.success === true ? parsed.output.files : [];
}

/** Those of every work tree of this repository but this one. */
export function recordedElsewhere({ layout }: Storage): Recorded[] {
  const linked = join(layout.commonDir, 'worktrees');
  const dirs = [layout.commonDir, ...namesIn(linked).map((name) => join(linked, name))];
  return dirs.filter((dir) => dir !== layout.gitDir).flatMap((dir) => recordedIn(dir));
}

/** Puts one file on record, with the bytes it had; takes the place of what was recorded of it. */
export function record(storage: Storage, recorded: Recorded, before: Buffer | null): void {
  const { disk, layout } = storage;
  disk.makeDir('agent.record', folderOf(layout.gitDir), layout.bits.privateDir);
  if (before !== null) place(storage, backupFile(layout.gitDir, recorded), before);
  const others = recordedIn(layout.gitDir).filter((one) => !isSame(one, recorded));
  write(storage, [...others, recorded]);
}

export function forget(storage: Storage, recorded: Recorded): void {
  write(
    storage,
    recordedIn(storage.layout.gitDir).filter((one) => !isSame(one, recorded)),
  );
  storage.disk.unlink('agent.record', backupFile(storage.layout.gitDir, recorded));
}

/** The bytes that `before` names; null when they are not there any more. */
export function bytesBefore({ layout }: Storage, recorded: Recorded): Buffer | null {
  const bytes = readWhole(backupFile(layout.gitDir, recorded));
  return bytes !== null && digestOf(bytes) === recorded.before ? bytes : null;
}

export const digestOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Null where there is no such file. Errors: the disk's. */
export function readWhole(file: string): Buffer | null {
  try {
    return readFileSync(file);
  } catch (error) {
    if (isAbsence(error)) return null;
    throw diskError(error, file);
  }
}

export const isSame = (
  one: Pick<Recorded, 'agent' | 'path'>,
  other: Pick<Recorded, 'agent' | 'path'>,
): boolean => one.agent === other.agent && one.path === other.path;

const folderOf = (gitDir: string): string => join(gitDir, 'durable', 'agents');
const recordFile = (gitDir: string): string => join(folderOf(gitDir), 'installed');
const backupFile = (gitDir: string, { agent, path }: Recorded): string =>
  join(folderOf(gitDir), `before-${agent}-${basename(path)}`);

function write(storage: Storage, files: readonly Recorded[]): void {
  const file = recordFile(storage.layout.gitDir);
  place(storage, file, Buffer.from(`${JSON.stringify({ v: 1, files })}\n`));
}

function place({ disk, host, layout }: Storage, file: string, bytes: Buffer): void {
  const fresh = `${file}.${String(host.pid)}`;
  disk.unlink('agent.record', fresh);
  disk.create('agent.record', fresh, bytes, { exact: 0o600 });
  disk.rename('agent.record', fresh, file);
  disk.syncDir('agent.record', folderOf(layout.gitDir));
}
