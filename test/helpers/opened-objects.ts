/** A scratch repository whose objects the library writes and reads. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { systemHost, type Host } from '../../lib/host.js';
import type { Scratch } from './scratch.js';

export interface Opened {
  readonly place: Scratch;
  readonly storage: Storage;
  readonly loose: (oid: string) => string;
  readonly journal: (oid: string) => string;
}

export async function openObjects(
  t: ExecutionContext,
  place: Scratch,
  more: Partial<Host> = {},
  dir = place.dir,
): Promise<Opened> {
  const storage = await openStorage(dir, { ...systemHost(), env: place.env, ...more });
  t.teardown(() => storage.objects.close());
  const { commonDir, shared } = storage.layout;
  return {
    place,
    storage,
    loose: (oid) => join(commonDir, 'objects', oid.slice(0, 2), oid.slice(2)),
    journal: (oid) => join(shared, 'journal', oid),
  };
}

/** Other bytes under the name, without touching the file that the journal shares. */
export function unlinkAndWrite(path: string, bytes: Uint8Array): void {
  const temp = `${path}.temp`;
  writeFileSync(temp, bytes);
  spawnSync('mv', ['-f', '--', temp, path]);
}
