/**
 * When the `.keep` of a checkpoint's pack may go.
 *
 * A maintenance (gc, prune, repack) that listed the refs before ours moved knows nothing of the new checkpoint; `.keep`
 * makes it leave the pack alone. Once every such process has ended the file only hinders packing, and goes.
 *
 * States of a `.keep` of ours: *open* (published, its ref may not have moved; its maker is named) → *sealed* (a ref reaches
 * the pack; when, in milliseconds since boot) → gone. The rule of `releaseKeeps`:
 *   - open, its maker proven dead: goes (either the ref moved, or the pack is litter);
 *   - sealed in this boot, host and pid namespace: goes when no maintenance process of this repository that started before the
 *     seal is running;
 *   - sealed in an earlier boot of this host: goes, nothing from before is running;
 *   - sealed elsewhere, or where processes cannot be listed: goes twelve hours after, as git judges a gc.pid.
 * Caveat: a maintenance in another container or on another host of a shared disk is not seen; `gc.pid` of our turns stops it.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { hasCode } from '../errors.js';
import { namesIn, type Disk } from './disk.js';
import { oldestMaintenance } from './maintenance-search.js';
import type { Storage } from './storage.js';

const keepSchema = v.object({
  gitDurable: v.literal(1),
  host: v.string(),
  boot: v.string(),
  pidNamespace: v.string(),
  pid: v.number(),
  start: v.string(),
  /** Milliseconds since boot when it was sealed; null while it is open. */
  sealedAt: v.nullable(v.number()),
});
type Keep = v.InferOutput<typeof keepSchema>;

const ELSEWHERE_MS = 12 * 3600 * 1000;
/** Few are cheap to leave; looking at every process is not. */
const MANY = 8;

export function keepText(storage: Storage, sealed: boolean): Buffer {
  const here = storage.identity.here();
  const keep: Keep = {
    gitDurable: 1,
    host: here.hostId,
    boot: here.bootId,
    pidNamespace: here.pidNamespace,
    ...storage.identity.self(),
    sealedAt: sealed ? storage.host.uptimeMs() : null,
  };
  return Buffer.from(`${JSON.stringify(keep)}\n`);
}

/** Replaces an open `.keep` by a sealed one. Not flushed: after a power cut nothing from before is running. */
export function sealKeep(storage: Storage, seal: { pack: string; temp: string; scratch: Disk }): void {
  seal.scratch.create('keep.seal', seal.temp, keepText(storage, true), 0o644);
  const keep = join(packDir(storage), `${seal.pack}.keep`);
  if (seal.scratch.rename('keep.seal', seal.temp, keep) !== 'done')
    seal.scratch.unlink('keep.seal', seal.temp);
}

/** Removes each `.keep` of ours whose reason is over, when there are `atLeast` of them. Returns how many went. */
export function releaseKeeps(storage: Storage, atLeast = MANY): number {
  const dir = packDir(storage);
  const names = namesIn(dir).filter((name) => name.endsWith('.keep'));
  if (names.length < atLeast) return 0;
  const oldest = oldestMaintenance(storage.layout.commonDir);
  let released = 0;
  for (const name of names) {
    const path = join(dir, name);
    const keep = readKeep(path);
    if (keep === null || !isOver(storage, { keep, path, oldest })) continue;
    if (unlinked(storage, path)) released += 1;
  }
  return released;
}

/** Removes every `.keep` of ours, for when no ref of ours is left that it could serve. */
export function dropKeeps(storage: Storage): void {
  const dir = packDir(storage);
  for (const name of namesIn(dir).filter((one) => one.endsWith('.keep'))) {
    const path = join(dir, name);
    if (readKeep(path) !== null) unlinked(storage, path);
  }
}

function isOver(storage: Storage, at: { keep: Keep; path: string; oldest: number | null }): boolean {
  const { keep, path, oldest } = at;
  const here = storage.identity.here();
  if (keep.sealedAt === null) return storage.identity.judge(keep).verdict === 'dead';
  if (keep.host === here.hostId && keep.boot !== here.bootId) return true;
  const visible = keep.host === here.hostId && keep.pidNamespace === here.pidNamespace;
  if (visible && oldest !== null) return oldest > keep.sealedAt;
  return storage.host.now().getTime() - statSync(path).mtimeMs > ELSEWHERE_MS;
}

/** Git may have removed the folder's entry, or the store may be read-only: neither is worth a failure. */
function unlinked(storage: Storage, path: string): boolean {
  try {
    return storage.disk.unlink('keep.drop', path);
  } catch (error) {
    if (hasCode(error, 'permission-denied')) return false;
    throw error;
  }
}

function readKeep(path: string): Keep | null {
  try {
    const parsed = v.safeParse(keepSchema, JSON.parse(readFileSync(path, 'utf8')));
    return parsed.success ? parsed.output : null;
  } catch {
    // Somebody else's, a torn one, or gone: left alone.
    return null;
  }
}

const packDir = (storage: Storage): string => join(storage.layout.commonDir, 'objects', 'pack');
