/**
 * Packing the journal: many small loose objects of ours become one pack, so that an appending agent neither trips the
 * user's `gc.auto` (6,700 loose objects) nor fills a folder.
 *
 * Packed is what a ref of ours reaches now: events, contents commits, their trees and payloads. What is not reachable
 * yet may be another process's append in flight, and keeps its journal link (DESIGN.md, invariant 5). Order:
 *
 *   one pack in a quarantine · published with `.keep`, durable · sealed · loose and journal copies removed
 *
 * A reader that misses a loose object in between finds the pack. Crash points: before the pack is published nothing
 * changed; after it, copies are left that the next run removes. Two runs at once make two packs of the same objects;
 * either is enough. Call it at a turn's end, outside any time budget.
 */
import { join } from 'node:path';
import { DurableError, isDurableError } from '../errors.js';
import { CONTENTS_PREFIX } from '../git/contents.js';
import { releaseKeeps } from '../git/keep.js';
import { parseCommit, treeBody } from '../git/objects-format.js';
import type { ReadAnswer } from '../git/objects.js';
import { Quarantine } from '../git/quarantine.js';
import type { Storage } from '../git/storage.js';
import { TASKS_PREFIX } from './ledger.js';

/** Well below gc.auto's 6,700, and enough for deltas between events to pay. */
export const PACK_FROM = 2000;

/** How many objects were packed; 0 when fewer than `from` are in the journal. Errors: 'git-failed', those of the disk. */
export async function packJournal(storage: Storage, from = PACK_FROM): Promise<number> {
  const journalled = new Set(storage.loose.journalled());
  if (journalled.size < from) return 0;
  const oids = await reachable(storage, journalled);
  if (oids.length === 0) return 0;
  const quarantine = Quarantine.open(storage);
  try {
    const pack = await packed(storage, quarantine, oids);
    quarantine.publish(pack);
    quarantine.seal(pack);
  } finally {
    quarantine.discard();
  }
  dropCopies(storage, oids);
  releaseKeeps(storage);
  return oids.length;
}

async function packed(storage: Storage, quarantine: Quarantine, oids: readonly string[]): Promise<string> {
  const args = ['-c', 'pack.packSizeLimit=0', 'pack-objects', '-q', join(quarantine.objects, 'pack', 'pack')];
  const input = Buffer.from(oids.map((oid) => `${oid}\n`).join(''));
  const output = await storage.git.output(args, { site: 'journal.pack', env: quarantine.env, input });
  const name = output.toString('latin1').trim();
  if (!/^[0-9a-f]{40,64}$/.test(name)) {
    throw new DurableError('git-failed', {
      command: 'git pack-objects',
      code: 0,
      detail: `not one pack: ${name}`,
    });
  }
  return `pack-${name}`;
}

function dropCopies(storage: Storage, oids: readonly string[]): void {
  const { commonDir, shared } = storage.layout;
  for (const oid of oids) {
    storage.disk.unlink('journal.drop', join(commonDir, 'objects', oid.slice(0, 2), oid.slice(2)));
    storage.disk.unlink('journal.drop', join(shared, 'journal', oid));
  }
}

/** Those journalled objects that a ledger or contents ref reaches and that can be read. */
async function reachable(storage: Storage, journalled: ReadonlySet<string>): Promise<string[]> {
  const events = await commitsUnder(storage, TASKS_PREFIX);
  const contents = await commitsUnder(storage, CONTENTS_PREFIX);
  const ours = (oids: readonly string[]): string[] => [...new Set(oids)].filter((oid) => journalled.has(oid));
  const keeping = ours(contents);
  const roots = ours(await linked(storage, keeping, ({ body }) => [parseCommit(body).tree]));
  const payloads = ours(await linked(storage, roots, ({ body }) => entriesOf(body, storage)));
  const blobs = ours(await linked(storage, payloads, ({ body }) => entriesOf(body, storage)));
  const empty = storage.objects.hash('tree', treeBody([]));
  const found = ours([...events, empty, ...keeping, ...roots, ...payloads, ...blobs]);
  // Whatever git is to pack must be where git looks; reading restores what only the journal has.
  return linked(storage, found, ({ oid }) => [oid]);
}

async function commitsUnder(storage: Storage, prefix: string): Promise<string[]> {
  const tips = [...storage.refs.list(prefix).values()];
  if (tips.length === 0) return [];
  const input = Buffer.from(tips.map((tip) => `${tip}\n`).join(''));
  const listing = await storage.git.run(['rev-list', '--stdin'], { input });
  // A damaged ledger is not packed; verify names it.
  return listing.code === 0 ? listing.stdout.toString('latin1').trimEnd().split('\n') : [];
}

type Found = Exclude<ReadAnswer, { missing: true }>;

async function linked(
  storage: Storage,
  oids: readonly string[],
  links: (found: Found) => readonly string[],
): Promise<string[]> {
  const all: string[] = [];
  for (let at = 0; at < oids.length;) {
    try {
      for await (const answer of storage.objects.readMany(oids.slice(at))) {
        at += 1;
        if (!('missing' in answer)) all.push(...links(answer));
      }
    } catch (error) {
      if (!isDurableError(error)) throw error;
      at += 1;
    }
  }
  return all;
}

/** Ids of a tree's entries; none for anything else. */
function entriesOf(body: Buffer, storage: Storage): string[] {
  const size = storage.layout.objectFormat === 'sha1' ? 20 : 32;
  const oids: string[] = [];
  for (let at = body.indexOf(0); at !== -1; at = body.indexOf(0, at)) {
    oids.push(body.toString('hex', at + 1, at + 1 + size));
    at += 1 + size;
  }
  return oids;
}
