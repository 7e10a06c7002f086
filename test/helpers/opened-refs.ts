/** A scratch repository whose refs are moved by the library. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { hasCode, type ErrorCode } from '../../lib/errors.js';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { systemHost, type Host } from '../../lib/host.js';
import { scratch, type Scratch } from './scratch.js';

export const LEASE = 'refs/durable/leases/ws-a';
export const TASK = 'refs/durable/tasks/a';
/** Long enough for one try and a wait, short enough for a test of what stays locked. */
export const SHORT_MS = 60;

export interface Opened {
  readonly place: Scratch;
  readonly storage: Storage;
  /** Four commits to move refs between. */
  readonly commits: readonly [string, string, string, string];
  readonly path: (ref: string) => string;
}

export async function opened(t: ExecutionContext, more: Partial<Host> = {}): Promise<Opened> {
  const place = scratch(t);
  const commit = (message: string): string => place.git('commit-tree', '-m', message, 'HEAD^{tree}');
  const storage = await openStorage(place.dir, { ...systemHost(), env: place.env, ...more });
  t.teardown(() => storage.close());
  return {
    place,
    storage,
    commits: [commit('0'), commit('1'), commit('2'), commit('3')],
    path: (ref) => join(storage.layout.commonDir, ref),
  };
}

export async function fails(
  t: ExecutionContext,
  code: ErrorCode,
  act: () => Promise<unknown>,
): Promise<string> {
  const error = await t.throwsAsync(act);
  t.true(hasCode(error, code), `expected ${code}: ${String(error)}`);
  return String(error);
}

/** Everything under refs/durable that is no ref: locks, values, and what else may be left over. */
export function litter({ storage, place }: Opened): string[] {
  const dir = join(storage.layout.commonDir, 'refs/durable');
  const refs = new Set(place.git('for-each-ref', '--format=%(refname)').split('\n'));
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files
    .map((entry) => join(entry.parentPath, entry.name).slice(storage.layout.commonDir.length + 1))
    .filter((name) => !refs.has(name));
}
