/**
 * Many new files at once: their bytes go into one pack of the quarantine before git is asked to read them.
 *
 * Measured with 50,000 new files of a few hundred bytes: as loose objects 3.8 s, by `git add` with bulk check-in
 * (core.bigFileThreshold=1) 4.1 s, since it compares each object with every earlier one, by this 0.5 s and then 0.4 s for the
 * index. It is a preload only: what git then reads itself counts, and an object that is not used is not packed.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { errno } from './disk.js';
import { fsPath } from './path.js';
import { gitFailure, type PrivateDir } from './private-dir.js';
import type { Quarantine } from './quarantine.js';
import type { Storage } from './storage.js';

/** A larger file is no storm, and would stay in memory as a whole. */
const LARGEST = 1024 * 1024;
const PIECE = 256 * 1024;

/** Errors: 'out-of-space'. Any other failure only costs the time it would have saved. */
export async function preload(
  storage: Storage,
  quarantine: Quarantine,
  { dir, paths }: { dir: PrivateDir; paths: readonly string[] },
): Promise<void> {
  const args = ['fast-import', '--quiet', '--depth=0', '--done'];
  const result = await dir.run(quarantine, args, { site: 'snapshot.add', input: blobs(storage, paths) });
  if (result.code === 0) return;
  const failure = gitFailure(quarantine, args, result);
  if (failure.code === 'out-of-space') throw failure;
}

async function* blobs(storage: Storage, paths: readonly string[]): AsyncGenerator<Buffer> {
  let pieces: Buffer[] = [];
  let size = 0;
  for (const path of paths) {
    const bytes = read(fsPath(storage.layout.workTree, path));
    if (bytes === null) continue;
    pieces.push(Buffer.from(`blob\ndata ${String(bytes.length)}\n`), bytes);
    size += bytes.length + 20;
    if (size < PIECE) continue;
    yield Buffer.concat(pieces);
    pieces = [];
    size = 0;
    await Promise.resolve();
  }
  yield Buffer.concat([...pieces, Buffer.from('done\n')]);
}

function read(path: string | Buffer): Buffer | null {
  try {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stat = fstatSync(fd);
      return stat.isFile() && stat.size > 0 && stat.size <= LARGEST ? readFileSync(fd) : null;
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (errno(error) !== '') return null;
    throw error;
  }
}
