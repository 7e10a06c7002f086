/**
 * Ledgers that somebody has tampered with: events changed and all that follows from them recomputed, as one would who
 * knows the format, or single commits with any message.
 */
import { chainStart } from '../../lib/canonical.js';
import type { Event } from '../../lib/event.js';
import { commitBody, treeBody } from '../../lib/git/objects-format.js';
import type { Storage } from '../../lib/git/storage.js';
import type { Ledger } from '../../lib/ledger/ledger.js';
import { encodeEvent } from '../../lib/ledger/message.js';

export interface Forged {
  readonly message: string;
  readonly parents?: readonly string[];
  readonly tree?: string;
}

/** Writes one commit with that message after the ledger's head, and moves the ref. Returns it. */
export async function forgeCommit(storage: Storage, ledger: Ledger, forged: Forged): Promise<string> {
  const from = storage.refs.read(ledger.ref);
  const tree = forged.tree ?? (await storage.objects.write('tree', treeBody([])));
  const parents = forged.parents ?? (from === null ? [] : [from]);
  const body = commitBody({ tree, parents, message: forged.message, at: new Date(0) });
  const commit = await storage.objects.write('commit', body);
  await storage.refs.update({ move: { ref: ledger.ref, from, to: commit } });
  return commit;
}

/**
 * Writes the whole ledger again with each event as `change` gives it (null: left out); ids, chain and trailers follow.
 * Numbers follow only where `change` keeps them.
 */
export async function forgeLedger(
  storage: Storage,
  ledger: Ledger,
  change: (event: Event) => Event | null,
): Promise<void> {
  const renamed = new Map<string, string>();
  const from = storage.refs.read(ledger.ref);
  const tree = storage.objects.hash('tree', treeBody([]));
  let chain = chainStart(ledger.task);
  let parents: string[] = [];
  let left = 0;
  for await (const recorded of ledger.forwards()) {
    const { seq } = recorded.event;
    const changed = change({ ...recorded.event, seq: seq - left });
    if (changed === null) {
      left += 1;
      continue;
    }
    const text = JSON.stringify(changed).replace(/[0-9a-f]{40}/g, (oid) => renamed.get(oid) ?? oid);
    const encoded = encodeEvent(JSON.parse(text) as Event, chain);
    const body = commitBody({ tree, parents, message: encoded.message, at: new Date(0) });
    const commit = await storage.objects.write('commit', body);
    renamed.set(recorded.commit, commit);
    chain = encoded.chain;
    parents = [commit];
  }
  const [to] = parents;
  if (to !== undefined) await storage.refs.update({ move: { ref: ledger.ref, from, to } });
}
