/**
 * Contents of a task: the bytes that events name by object id, kept reachable from `refs/durable/checkpoints/<task>`.
 *
 * The ref is a chain of commits, one each time something is kept; a commit's tree has `payload/<name>` (exact
 * arguments, results, manifests, lists that grow) and, for a checkpoint, `worktree/`. Write order is contents first, ledger
 * last: when `keep` or `commitTree` resolves, the bytes are durable and reachable, so an event may name them. Whoever
 * dies in between leaves contents that no event names, which harms nothing.
 *
 * Contents may hold secrets: they never travel unless asked, and may be pruned or purged; then `read` says 'object-missing'.
 */
import { digest } from '../canonical.js';
import { DurableError } from '../errors.js';
import type { Kept } from '../event.js';
import { freshId } from '../host.js';
import { commitBody, treeBody, type TreeEntry } from './objects-format.js';
import type { NewObject } from './objects.js';
import type { Storage } from './storage.js';

export const CONTENTS_PREFIX = 'refs/durable/checkpoints/';

export interface ContentParts {
  /** Tree id of the snapshot; its objects must be durable already. */
  readonly worktree?: string;
  /** Name to blob id; a name has no slash. */
  readonly payload?: ReadonlyMap<string, string>;
  readonly message: string;
}

export interface Keeping {
  /** One for each entry, in order. */
  readonly kept: Kept[];
  /** Fulfilled when all is durable and reachable. Errors: those of `keep`. */
  readonly done: Promise<unknown>;
}

const BUDGET_MS = 10_000;

export class Contents {
  readonly ref: string;
  readonly #storage: Storage;

  constructor(storage: Storage, task: string) {
    this.#storage = storage;
    this.ref = `${CONTENTS_PREFIX}${task}`;
  }

  /** Keeps each entry's bytes, in one commit. Errors: 'out-of-space', 'permission-denied', 'ref-locked', 'ref-moved'. */
  async keep(entries: readonly Uint8Array[]): Promise<Kept[]> {
    const { kept, done } = this.keeping(entries);
    await done;
    return kept;
  }

  /** The same begun: what an event may name once `done` is fulfilled, which an append is told to wait for. */
  keeping(entries: readonly Uint8Array[]): Keeping {
    const { objects } = this.#storage;
    const blobs = entries.map((body): NewObject => ({ type: 'blob', body }));
    const kept = blobs.map(({ type, body }) => ({
      oid: objects.hash(type, body),
      digest: digest(body),
      bytes: body.length,
    }));
    if (kept.length === 0) return { kept, done: Promise.resolve() };
    const payload = new Map(kept.map(({ oid }, index) => [String(index), oid]));
    const done = this.#append({ payload, message: `contents: ${String(kept.length)} kept` }, blobs);
    // Whoever waits for it hears of it; until somebody does it is no error that nobody handles.
    done.catch(() => undefined);
    return { kept, done };
  }

  /** Appends one commit to the contents by compare-and-swap, and returns it. Errors as `keep`. */
  commitTree(parts: ContentParts): Promise<string> {
    return this.#append(parts, []);
  }

  /** The bytes of an entry, checked against its digest. Errors: 'object-missing', 'object-damaged'. */
  async read(kept: Kept | { readonly oid: string }): Promise<Buffer> {
    const object = await this.#storage.objects.read(kept.oid);
    if (object === undefined) {
      throw new DurableError('object-missing', { oid: kept.oid, needed: `contents under ${this.ref}` });
    }
    if (object.type !== 'blob') {
      throw new DurableError('object-damaged', { oid: kept.oid, detail: `a ${object.type} and not a blob` });
    }
    if ('digest' in kept && digest(object.body) !== kept.digest) {
      throw new DurableError('object-damaged', { oid: kept.oid, detail: 'its SHA-256 is another one' });
    }
    return object.body;
  }

  /** Blobs, trees and the commit are written in one batch: one round of flushes instead of four. */
  async #append(parts: ContentParts, blobs: readonly NewObject[]): Promise<string> {
    const { objects, refs, host } = this.#storage;
    const { tree, trees } = this.#trees(parts);
    let unwritten: readonly NewObject[] = [...blobs, ...trees];
    const write = freshId(host);
    const deadline = host.monotonicMs() + BUDGET_MS;
    for (;;) {
      const from = refs.read(this.ref);
      const parents = from === null ? [] : [from];
      const message = `${parts.message}\n\nDurable-Write: ${write}\n`;
      const body = commitBody({ tree, parents, message, at: host.now() });
      await objects.writeAll([...unwritten, { type: 'commit', body }]);
      unwritten = [];
      const commit = objects.hash('commit', body);
      const outcome = await refs.update({ move: { ref: this.ref, from, to: commit } });
      if (outcome.moved) return commit;
      // `write` is in no other commit and the ref only moves on, so nobody can publish this one any more.
      objects.drop(commit);
      if (host.monotonicMs() > deadline) {
        throw new DurableError('ref-moved', { ref: this.ref, expected: from, actual: outcome.was });
      }
    }
  }

  #trees(parts: ContentParts): { readonly tree: string; readonly trees: readonly NewObject[] } {
    const { objects } = this.#storage;
    const entries: TreeEntry[] = [];
    const trees: NewObject[] = [];
    const add = (body: Buffer): string => {
      trees.push({ type: 'tree', body });
      return objects.hash('tree', body);
    };
    if (parts.payload !== undefined && parts.payload.size > 0) {
      const blobs = [...parts.payload].map(([name, oid]) => ({ mode: '100644', name, oid }));
      entries.push({ mode: '040000', name: 'payload', oid: add(treeBody(blobs)) });
    }
    if (parts.worktree !== undefined) entries.push({ mode: '040000', name: 'worktree', oid: parts.worktree });
    return { tree: add(treeBody(entries)), trees };
  }
}
