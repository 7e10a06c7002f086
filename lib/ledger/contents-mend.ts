/**
 * The newest contents of a task, found without their ref: for a ref whose file is torn.
 *
 * Contents are a chain of commits with a `Durable-Write` trailer (lib/git/contents.ts). A commit is this task's when its ledger
 * names it (a checkpoint, a transaction's images), or when its payload holds a blob that the ledger names. The end of the chain
 * that holds most of them is where the ref was: what was kept after the last event is above it, and stays reachable with it.
 *
 * Reads every commit that is here; it runs when a person asks for it. What the ledger names and no commit holds is lost, and
 * `verify` names it once there is a ref again.
 */
import { hasCode } from '../errors.js';
import { parseCommit, parseTree } from '../git/objects-format.js';
import type { Storage } from '../git/storage.js';
import { contentsNamed } from './contents-check.js';
import type { Ledger } from './ledger.js';
import { allCommits } from './torn.js';

interface Link {
  readonly tree: string;
  readonly parent: string | null;
}

/** Null when nothing is here that the ledger names. */
export async function newestContents(storage: Storage, ledger: Ledger): Promise<string | null> {
  const named = await namedBy(ledger);
  const links = await contentCommits(storage);
  const parents = new Set([...links.values()].map(({ parent }) => parent));
  let best: { readonly tip: string; readonly held: number } | null = null;
  for (const tip of [...links.keys()].filter((oid) => !parents.has(oid))) {
    const held = await countHeld(storage, { tip, links, named });
    if (held > (best?.held ?? 0)) best = { tip, held };
  }
  return best?.tip ?? null;
}

/** As far as the ledger can be read. */
async function namedBy(ledger: Ledger): Promise<ReadonlySet<string>> {
  const named = new Set<string>();
  try {
    for await (const { event } of ledger.forwards())
      for (const { oid } of contentsNamed(event)) named.add(oid);
  } catch (error) {
    if (!hasCode(error, 'ledger-damaged')) throw error;
  }
  return named;
}

async function contentCommits(storage: Storage): Promise<ReadonlyMap<string, Link>> {
  const links = new Map<string, Link>();
  for await (const answer of storage.objects.readMany(await allCommits(storage))) {
    if ('missing' in answer) continue;
    const { message, parents, tree } = parseCommit(answer.body);
    if (/\n\nDurable-Write: [a-z2-7]+\n$/.test(message))
      links.set(answer.oid, { tree, parent: parents[0] ?? null });
  }
  return links;
}

interface Chain {
  readonly tip: string;
  readonly links: ReadonlyMap<string, Link>;
  readonly named: ReadonlySet<string>;
}

/** How many commits of the chain are this task's. */
async function countHeld(storage: Storage, { tip, links, named }: Chain): Promise<number> {
  let held = 0;
  for (let at: string | null = tip; at !== null; at = links.get(at)?.parent ?? null) {
    const tree = links.get(at)?.tree;
    if (named.has(at) || (tree !== undefined && (await holdsAny(storage, tree, named)))) held += 1;
  }
  return held;
}

async function holdsAny(storage: Storage, tree: string, named: ReadonlySet<string>): Promise<boolean> {
  const payload = (await entries(storage, tree)).find(({ name }) => name.toString() === 'payload');
  return payload !== undefined && (await entries(storage, payload.oid)).some(({ oid }) => named.has(oid));
}

async function entries(storage: Storage, oid: string): Promise<ReturnType<typeof parseTree>> {
  const object = await storage.objects.read(oid);
  return object?.type === 'tree' ? parseTree(object.body, storage.layout.objectFormat) : [];
}
