/**
 * Which event came before one that cannot be read any more.
 *
 * A damaged commit no longer says its parent. Two ways to know it, in this order: what is left of its loose file (a torn
 * zlib stream inflates up to the tear, and the parent stands in its first hundred bytes) · the one event of this task
 * that has the sequence number before it, looked for in the journal first and then among all objects. When two have
 * that number (one of them lost a swap and was never in the ledger) nothing is guessed: null.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { constants, inflateSync } from 'node:zlib';
import { DurableError, hasCode, isDurableError } from '../errors.js';
import { errno } from '../git/disk.js';
import { parseCommit, type GitObject } from '../git/objects-format.js';
import type { Storage } from '../git/storage.js';

/** Where `repairTip` puts what is left of a torn event. */
export const tornPath = (storage: Storage, commit: string): string =>
  join(storage.layout.shared, 'torn', commit);

/** `seq`: the number the event before has; null when the damaged one is the newest, whose number nobody knows. */
export async function eventBefore(
  storage: Storage,
  task: string,
  commit: string,
  seq: number | null,
): Promise<string | null> {
  const parent = parentInRemains(storage, commit);
  if (parent !== null && (await seqOf(storage, task, parent)) !== null) return parent;
  const journalled = await numbered(storage, task, storage.loose.journalled());
  return pick(journalled, seq) ?? pick(await numbered(storage, task, await allCommits(storage)), seq);
}

/** The ref of a ledger as far as it can be told. */
export interface Tip {
  /** What the ref says; where it says nothing that is an id, the newest event of the task that is here. */
  readonly commit: string | null;
  readonly damage: DurableError<'ledger-damaged'> | null;
}

/** Throws nothing for a damaged ref. Errors: the disk's. */
export async function readTip(storage: Storage, task: string, ref: string): Promise<Tip> {
  try {
    return { commit: storage.refs.read(ref), damage: null };
  } catch (error) {
    if (!hasCode(error, 'ref-damaged')) throw error;
    const detail = `'${ref}' holds no object id, ${error.fields.detail}`;
    const damage = new DurableError('ledger-damaged', { task, commit: null, detail }, error);
    return { commit: await eventBefore(storage, task, '', null), damage };
  }
}

/** As `readTip`, but looks whether the ref is at an event of the task at all: for who reads from there backwards. */
export async function readableTip(storage: Storage, task: string, ref: string): Promise<Tip> {
  const tip = await readTip(storage, task, ref);
  const { commit } = tip;
  if (tip.damage !== null || commit === null || !(await isForeign(storage, task, commit))) return tip;
  const damage = new DurableError('ledger-damaged', { task, commit, detail: 'it is no event of this task' });
  return { commit: await eventBefore(storage, task, '', null), damage };
}

/** True when the object is there, whole, and no event of this task: a ref was moved to it by somebody else. */
export async function isForeign(storage: Storage, task: string, oid: string): Promise<boolean> {
  const object = await readable(storage, oid);
  if (object === undefined) return false;
  return (
    object.type !== 'commit' || !parseCommit(object.body).message.includes(`"task":${JSON.stringify(task)}`)
  );
}

function parentInRemains(storage: Storage, commit: string): string | null {
  const { commonDir } = storage.layout;
  const loose = join(commonDir, 'objects', commit.slice(0, 2), commit.slice(2));
  for (const path of [loose, join(storage.layout.shared, 'journal', commit), tornPath(storage, commit)]) {
    const text = inflatedPrefix(remains(path)).toString('latin1');
    const parent = /^commit \d+\0tree [0-9a-f]{40,64}\nparent ([0-9a-f]{40}|[0-9a-f]{64})\n/.exec(text)?.[1];
    if (parent !== undefined) return parent;
  }
  return null;
}

function remains(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if (errno(error) === '') throw error;
    return Buffer.alloc(0);
  }
}

/** As much as inflates: the longest prefix of the file that holds no error, found by halving. */
function inflatedPrefix(bytes: Buffer): Buffer {
  let best: Buffer = Buffer.alloc(0);
  for (let low = 0, high = bytes.length + 1; high - low > 1;) {
    const middle = Math.floor((low + high) / 2);
    const inflated = inflatedOrNull(bytes.subarray(0, middle));
    if (inflated === null) high = middle;
    else {
      best = inflated;
      low = middle;
    }
  }
  return best;
}

function inflatedOrNull(bytes: Buffer): Buffer | null {
  try {
    return inflateSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH });
  } catch (error) {
    if (errno(error).startsWith('Z_')) return null;
    throw error;
  }
}

/** Every commit that is here, reachable or not. */
export async function allCommits(storage: Storage): Promise<string[]> {
  const format = '--batch-check=%(objecttype) %(objectname)';
  const { stdout } = await storage.git.run(['cat-file', '--batch-all-objects', '--unordered', format]);
  return [...stdout.toString('latin1').matchAll(/^commit ([0-9a-f]+)$/gm)].map((match) => match[1] ?? '');
}

/** Those of `oids` that are events of the task, by their number. */
async function numbered(
  storage: Storage,
  task: string,
  oids: readonly string[],
): Promise<Map<number, string[]>> {
  const found = new Map<number, string[]>();
  for (const oid of oids) {
    const seq = await seqOf(storage, task, oid);
    if (seq !== null) found.set(seq, [...(found.get(seq) ?? []), oid]);
  }
  return found;
}

function pick(found: ReadonlyMap<number, readonly string[]>, seq: number | null): string | null {
  const [commit, ...others] = found.get(seq ?? Math.max(...found.keys())) ?? [];
  return commit !== undefined && others.length === 0 ? commit : null;
}

/** The number an event of this task has, null for anything else. Looks at the text only: it must not fail on damage. */
async function seqOf(storage: Storage, task: string, oid: string): Promise<number | null> {
  const object = await readable(storage, oid);
  if (object?.type !== 'commit') return null;
  const { message } = parseCommit(object.body);
  const seq = /\nDurable-Seq: (\d+)\nDurable-Chain: sha256:[0-9a-f]{64}\n$/.exec(message)?.[1];
  return seq !== undefined && message.includes(`"task":${JSON.stringify(task)}`) ? Number(seq) : null;
}

async function readable(storage: Storage, oid: string): Promise<GitObject | undefined> {
  try {
    return await storage.objects.read(oid);
  } catch (error) {
    if (isDurableError(error)) return undefined;
    throw error;
  }
}
