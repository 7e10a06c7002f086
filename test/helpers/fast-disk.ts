/**
 * A folder in memory for suites that rebuild a repository hundreds of times; the system's temporary folder where there is
 * none with room. What is flushed there is judged from the recording, never by this disk.
 */
import { createHash } from 'node:crypto';
import { accessSync, constants, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
const ROOM = 512 * 1024 * 1024;

export function fastDisk(): string {
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize > ROOM ? MEMORY : tmpdir();
  } catch (error) {
    if (error instanceof Error && 'code' in error) return tmpdir();
    throw error;
  }
}

/** A folder for this one that is on another file system: in memory when the other is on disk, and the other way round. */
export function asideOf(dir: string): string {
  const name = `durable-aside-${createHash('sha256').update(dir).digest('hex').slice(0, 16)}`;
  return join(dir.startsWith(`${MEMORY}/`) ? tmpdir() : MEMORY, name);
}
