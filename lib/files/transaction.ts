/**
 * Transactions: several changes of the work tree as one thing that recovery can take back or complete.
 *
 * Order (PROTOCOL.md 14, 15):
 *   1. plan: paths, preconditions, before and after images; refused here, nothing has happened
 *   2. new files into the epoch's staging directory; a full disk is met here
 *   3. contents: every before and after blob and the manifest, in one commit
 *   4. `transaction.prepared` in the ledger: from here on the intent is known to whoever comes after a crash
 *   5. each path: epoch, precondition, rename, folder flushed
 *   6. `transaction.committed`
 *
 * Guarantees: a path holds its before or its after image at any moment. A failure at 5 or 6 puts back what was done
 * and appends `transaction.rolled-back`; what the caller then gets is 'conflict' (somebody else's change was met; both
 * sides are kept and `conflict.detected` names them) or 'transaction-failed' with its state. Killed at any point, or when
 * the way back cannot be finished, the transaction is in doubt: both directions are open to recovery, from the manifest
 * alone. A lost lease stops at once and puts nothing back: the tree is the new holder's.
 *
 * What it is not: one atomic commit for the whole operating system. Readers see the paths change one after the other,
 * and a write by another program exactly between check and rename is found afterwards, not prevented.
 */
import { digest } from '../canonical.js';
import { DurableError, hasCode, messageOf } from '../errors.js';
import type { EventDraft, Image, Kept } from '../event.js';
import type { Storage } from '../git/storage.js';
import { freshId } from '../host.js';
import type { Held } from '../lease/hold.js';
import type { Ledger } from '../ledger/ledger.js';
import type { TaskState } from '../ledger/state.js';
import { cut } from '../ledger/subject.js';
import { Application, clashOf, missingFolders, pruneFolders } from './apply.js';
import { planChanges, type Change, type PlannedEntry } from './change.js';
import { refuseMalformed } from './change-shape.js';
import { recordConflict, refuseConflicting, withConflict } from './conflict.js';
import { encodeManifest, MANIFEST_VERSION, type ManifestEntry, type Move } from './manifest.js';
import { filePath, foldersAbove } from '../git/tree-path.js';
import { look } from './revision.js';
import { leftBehind } from './settle.js';
import { sameImage } from './verdict.js';
import { quantity } from '../quantity.js';

export type { Change } from './change.js';

export interface TransactionContext {
  readonly storage: Storage;
  readonly ledger: Ledger;
  readonly held: Held;
  readonly agent: string;
  readonly workspace: string | null;
  /** null outside turns (a restore under an operation lease). */
  readonly turn: string | null;
  /** Told what was written, once it is committed. */
  readonly reads?: { readonly wrote: (written: Iterable<readonly [path: string, image: Image]>) => void };
}

export interface TransactionResult {
  readonly transaction: string;
  /** Paths whose image changed, in the order in which they were applied. */
  readonly paths: readonly string[];
}

export interface EditOptions {
  readonly invocation?: string;
  /** Bytes that were read before the change was made: what a conflict is compared by. */
  readonly bytesOf?: (oid: string) => Uint8Array | undefined;
}

/**
 * Applies the changes. Throws 'usage' for what is no change, 'conflict', 'path-outside', 'path-refused', 'out-of-space', 'permission-denied' before
 * anything changed, 'conflict-open' for a path with a conflict that nobody has settled; 'conflict' or 'transaction-failed' after what was done was put back; 'lease-lost', 'stage-revoked'.
 */
export async function runTransaction(
  context: TransactionContext,
  changes: readonly Change[],
  options: EditOptions = {},
): Promise<TransactionResult> {
  refuseMalformed(changes);
  const named = changes.flatMap((change) =>
    change.kind === 'rename' ? [change.from, change.to] : [change.path],
  );
  await refuseConflicting(context, named.map(filePath));
  const { entries, blobs } = await planned(context, changes, options);
  const recorded = {
    blobs,
    invocation: options.invocation ?? null,
    purpose: 'edit',
    prune: [],
    alongside: () => [],
  } as const;
  return new RecordedTransaction(context, entries, recorded).run();
}

export interface EntryOptions {
  readonly purpose: 'restore' | 'repair';
  /**
   * Whether every blob named is reachable already from a checkpoint of this task (the one just taken and the one that is
   * restored): then only the manifest is stored. Else the blobs are kept with it; those of `to` must be readable.
   */
  readonly isKept: boolean;
  /** Folders that may go when this empties them. 'emptied': all above a removed path. Default: none. */
  readonly prune?: 'emptied' | Iterable<string>;
  /** The call it is the effect of. */
  readonly invocation?: string;
  /** Events of the same ref move as `transaction.prepared`; what it throws ends the transaction with nothing changed. */
  readonly alongside?: Alongside;
}

export type Alongside = (state: TaskState, transaction: string) => readonly EventDraft[];

/** The same for images instead of changes: restoring a checkpoint, repairing a turn. Errors as `runTransaction`. */
export async function applyEntries(
  context: TransactionContext,
  moves: readonly Move[],
  options: EntryOptions,
): Promise<TransactionResult> {
  const changing = moves.filter(({ from, to }) => !sameImage(from, to));
  const entries = changing.map((move) => entryOf(context.storage, move));
  const blobs = new Map<string, Uint8Array>();
  if (!options.isKept) {
    for (const { path, before } of entries) {
      const { found, bytes } = look(context.storage, path);
      const isBefore = found !== null && typeof found === 'object' && found.oid === before?.oid;
      if (isBefore && bytes !== null) blobs.set(before.oid, bytes);
    }
    for (const { after } of entries)
      if (after !== null) blobs.set(after.oid, await bytesOf(context.storage, blobs, after.oid));
  }
  const removed = changing.filter(({ to }) => to === null).flatMap(({ path }) => foldersAbove(path));
  const prune = options.prune === 'emptied' ? removed : [...(options.prune ?? [])];
  const { purpose, alongside = () => [] } = options;
  const recorded = { blobs, invocation: options.invocation ?? null, purpose, prune, alongside };
  return new RecordedTransaction(context, entries, recorded).run();
}

function entryOf(storage: Storage, move: Move): PlannedEntry {
  const { permissions } = look(storage, move.path);
  const carried = move.permissions ?? null;
  return { path: filePath(move.path), before: move.from, after: move.to, permissions, carried };
}

async function planned(
  context: TransactionContext,
  changes: readonly Change[],
  { bytesOf }: EditOptions,
): Promise<ReturnType<typeof planChanges>> {
  try {
    return planChanges(context.storage, changes);
  } catch (error) {
    const clash = clashOf(error);
    if (clash === undefined || !hasCode(error, 'conflict')) throw error;
    const recorded = {
      clash,
      why: 'changed-since-read',
      ...(bytesOf === undefined ? {} : { bytesOf }),
    } as const;
    throw withConflict(error, await recordConflict(context, recorded));
  }
}

interface RecordedOptions {
  readonly blobs: ReadonlyMap<string, Uint8Array>;
  readonly invocation: string | null;
  readonly purpose: 'edit' | 'restore' | 'repair';
  readonly prune: readonly string[];
  readonly alongside: Alongside;
}

class RecordedTransaction {
  readonly #context: TransactionContext;
  readonly #entries: readonly PlannedEntry[];
  readonly #options: RecordedOptions;
  readonly #application: Application;
  readonly #id: string;

  constructor(context: TransactionContext, entries: readonly PlannedEntry[], options: RecordedOptions) {
    const { storage, held } = context;
    this.#context = context;
    this.#entries = entries;
    this.#options = options;
    this.#id = freshId(storage.host);
    const moves = entries.map(({ path, before, after, carried }) => ({
      path,
      from: before,
      to: after,
      permissions: carried,
    }));
    const read = (oid: string): Promise<Uint8Array> => bytesOf(storage, options.blobs, oid);
    this.#application = new Application({ storage, stage: held.stage, bytesOf: read }, moves);
  }

  async run(): Promise<TransactionResult> {
    try {
      this.#application.check();
      await this.#application.stage();
      await this.#prepare();
    } catch (error) {
      this.#application.clean();
      throw await this.#withConflict(error);
    }
    try {
      await this.#application.run();
      pruneFolders(this.#context.storage, this.#options.prune);
      await this.#append({ type: 'transaction.committed', transaction: this.#id, by: 'writer' });
    } catch (error) {
      if (!(await this.#isCommitted())) throw await this.#failed(error);
    }
    this.#application.clean();
    this.#context.reads?.wrote(this.#entries.map(({ path, after }) => [path, after] as const));
    return { transaction: this.#id, paths: this.#application.paths };
  }

  /** A repair ends at its own end what it repairs: before that, killed, it has to be found again. */
  async #leftBehind(state: TaskState): Promise<EventDraft[]> {
    if (this.#options.purpose === 'repair') return [];
    return leftBehind(this.#context, state, this.#context.held.token);
  }

  async #prepare(): Promise<void> {
    const { storage, ledger } = this.#context;
    const entries = this.#entries.map(({ path, before, after, permissions }): ManifestEntry => {
      return { path, before, after, permissions };
    });
    const written = entries.filter(({ after }) => after !== null).map(({ path }) => path);
    const bytes = encodeManifest({
      v: MANIFEST_VERSION,
      entries,
      folders: missingFolders(storage, written),
    });
    const bodies = [...this.#options.blobs.values(), bytes];
    const oids = await storage.objects.writeAll(bodies.map((body) => ({ type: 'blob', body })));
    const payload = new Map(
      oids.map((oid, index) => [index === oids.length - 1 ? 'manifest' : String(index), oid]),
    );
    const manifest: Kept = {
      oid: storage.objects.hash('blob', bytes),
      digest: digest(bytes),
      bytes: bytes.length,
    };
    const message = `transaction ${this.#id}: ${quantity(entries.length, 'path')}`;
    const contents = await ledger.contents.commitTree({ payload, message });
    const { invocation, purpose } = this.#options;
    const prepared: EventDraft = {
      type: 'transaction.prepared',
      transaction: this.#id,
      invocation,
      purpose,
      contents,
      manifest,
      paths: entries.length,
      turn: this.#context.turn,
    };
    const { held, agent, workspace } = this.#context;
    await ledger.append(
      async (state) => [
        ...(await this.#leftBehind(state)),
        ...this.#options.alongside(state, this.#id),
        prepared,
      ],
      { lease: held.token, agent, workspace },
    );
  }

  /** Puts back what was done and says how that went; a lost lease is passed on with nothing put back. */
  async #failed(error: unknown): Promise<unknown> {
    if (isLost(error)) return error;
    const at = this.#application.at;
    const detail = messageOf(error);
    try {
      const stuck = await this.#application.undo();
      if (stuck.length > 0)
        return this.#inDoubt(stuck[0] ?? at, `${detail}; what is there now cannot be put back`, error);
      await this.#append({
        type: 'transaction.rolled-back',
        transaction: this.#id,
        by: 'writer',
        reason: cut(detail, 200),
      });
    } catch (second) {
      if (isLost(second)) return second;
      const why = second instanceof Error ? second.message : String(second);
      return this.#inDoubt(at, `${detail}; then, putting it back: ${why}`, second);
    }
    this.#application.clean();
    if (hasCode(error, 'conflict')) return this.#withConflict(error);
    const fields = { transaction: this.#id, path: at, state: 'rolled-back', detail } as const;
    return new DurableError('transaction-failed', fields, error);
  }

  #inDoubt(path: string, detail: string, cause: unknown): DurableError {
    const fields = { transaction: this.#id, path, state: 'in-doubt', detail } as const;
    return new DurableError('transaction-failed', fields, cause);
  }

  async #withConflict(error: unknown): Promise<unknown> {
    const clash = clashOf(error);
    if (clash === undefined || !hasCode(error, 'conflict')) return error;
    const id = await recordConflict(this.#context, {
      clash,
      bytesOf: (oid) => this.#options.blobs.get(oid),
      why: clash.late ? 'late-write' : 'changed-since-read',
    });
    return withConflict(error, id);
  }

  async #isCommitted(): Promise<boolean> {
    const state = await this.#context.ledger.state();
    return state.transactions.get(this.#id)?.state === 'committed';
  }

  async #append(draft: EventDraft): Promise<void> {
    const { ledger, held, agent, workspace, turn } = this.#context;
    await ledger.append(() => [{ ...draft, turn }], { lease: held.token, agent, workspace });
  }
}

function isLost(error: unknown): boolean {
  return hasCode(error, 'lease-lost') || hasCode(error, 'stage-revoked');
}

/** Throws 'object-missing' when the bytes were purged. */
async function bytesOf(
  storage: Storage,
  blobs: ReadonlyMap<string, Uint8Array>,
  oid: string,
): Promise<Uint8Array> {
  const known = blobs.get(oid) ?? (await storage.objects.read(oid))?.body;
  if (known === undefined) throw new DurableError('object-missing', { oid, needed: 'bytes of a file' });
  return known;
}
