/**
 * Git objects: durable writing, reading that heals, one interface over two backends.
 *
 * Writing is the same for both: deflated bytes go through `LooseObjects.publish`, so that when `write` resolves the
 * object is flushed, loose and journalled even when a pack has it already. A backend encodes, and reads what is not
 * loose. Reading order: the loose file (checked against its id) · the backend · the journal, from which a lost or torn
 * object is put back. What comes out always has the id that was asked for.
 */
import type { Git } from './process.js';
import type { Layout } from './layout.js';
import type { LooseObjects } from './loose.js';
import { CatFile, streamObjects } from './catfile.js';
import { DurableError, hasCode } from '../errors.js';
import { encodeLoose, hashObject, type GitObject, type ObjectType } from './objects-format.js';

export type ReadAnswer =
  | { readonly oid: string; readonly type: ObjectType; readonly body: Buffer }
  | { readonly oid: string; readonly missing: true };

export interface ObjectStore {
  /** Undefined: not here, the journal included (a partial clone's remote is not asked). Throws 'object-damaged' when all that is there is damaged. */
  read(oid: string): Promise<GitObject | undefined>;
  /** As `read` for a whole list, in its order, streamed through one git process. */
  readMany(oids: readonly string[]): AsyncIterable<ReadAnswer>;
  /** Durable, loose and journalled before it resolves; returns the object's id. */
  write(type: WrittenType, body: Uint8Array): Promise<string>;
  /** As `write`, for several at once, which costs fewer flushes than one by one; their ids in the same order. */
  writeAll(objects: readonly NewObject[]): Promise<string[]>;
  hash(type: ObjectType, body: Uint8Array): string;
  /** Removes an object of ours that nothing names (a superseded lease record). */
  drop(oid: string): void;
  /** Ends the git process that reads, if one was started. */
  close(): Promise<void>;
}

export type WrittenType = 'commit' | 'tree' | 'blob';

export interface NewObject {
  readonly type: WrittenType;
  readonly body: Uint8Array;
}

/** What differs between backends: encoding, and reading what is not loose. */
export interface ObjectBackend {
  readonly name: 'native' | 'isomorphic';
  encode(type: WrittenType, body: Uint8Array): Promise<Uint8Array> | Uint8Array;
  /** Undefined when no pack (nor, for git, alternate) has it. Throws 'object-damaged'. */
  read(oid: string): Promise<GitObject | undefined>;
  /** Many at once, in order; where it is missing they are read one by one. */
  stream?(oids: readonly string[]): AsyncIterable<ReadAnswer>;
  close(): Promise<void>;
}

export function nativeBackend(git: Git): ObjectBackend {
  const catFile = new CatFile(git);
  return {
    name: 'native',
    encode: encodeLoose,
    read: (oid) => catFile.read(oid),
    stream: (oids) => streamObjects(git, oids),
    close: () => catFile.close(),
  };
}

/** Below this many a running process answers before another one has started (measured: start 4 ms, a read 0.15 ms). */
const STREAM_FROM = 24;

export class DurableObjects implements ObjectStore {
  readonly #layout: Layout;
  readonly #loose: LooseObjects;
  readonly #backend: ObjectBackend;
  /** Written by this process: a second write of the same small thing (the empty tree) costs two stat calls. */
  readonly #written = new Set<string>();

  constructor(parts: { layout: Layout; loose: LooseObjects; backend: ObjectBackend }) {
    this.#layout = parts.layout;
    this.#loose = parts.loose;
    this.#backend = parts.backend;
  }

  async write(type: WrittenType, body: Uint8Array): Promise<string> {
    const [oid = ''] = await this.writeAll([{ type, body }]);
    return oid;
  }

  async writeAll(objects: readonly NewObject[]): Promise<string[]> {
    const oids: string[] = [];
    const fresh = new Map<string, Uint8Array>();
    for (const { type, body } of objects) {
      const oid = this.hash(type, body);
      oids.push(oid);
      if (this.#written.has(oid) && this.#loose.isPublished(oid)) continue;
      fresh.set(oid, await this.#backend.encode(type, body));
    }
    if (fresh.size === 0) return oids;
    await this.#loose.publish([...fresh].map(([oid, bytes]) => ({ oid, bytes })));
    if (this.#written.size > 1024) this.#written.clear();
    for (const oid of fresh.keys()) this.#written.add(oid);
    return oids;
  }

  async read(oid: string): Promise<GitObject | undefined> {
    checkOid(oid);
    const loose = this.#loose.read(oid);
    if (typeof loose !== 'string') return loose;
    const first = loose === 'damaged' ? this.#loose.restore(oid) : null;
    if (first !== null) return first;
    try {
      const stored = await this.#backend.read(oid);
      if (stored !== undefined) return this.#checked(oid, stored);
    } catch (error) {
      if (!hasCode(error, 'object-damaged')) throw error;
      const healed = this.#loose.restore(oid);
      if (healed !== null) return healed;
      throw error;
    }
    const restored = this.#loose.restore(oid);
    if (restored !== null) return restored;
    if (loose === 'damaged')
      throw new DurableError('object-damaged', {
        oid,
        detail: 'its file is torn and the journal has no copy',
      });
    return undefined;
  }

  async *readMany(oids: readonly string[]): AsyncGenerator<ReadAnswer, void> {
    oids.forEach(checkOid);
    for (let done = 0; done < oids.length;) {
      const rest = oids.slice(done);
      const stream = rest.length < STREAM_FROM ? undefined : this.#backend.stream?.(rest);
      if (stream === undefined) {
        for (const oid of rest) yield answerOf(oid, await this.read(oid));
        return;
      }
      try {
        for await (const answer of stream) {
          done += 1;
          if ('missing' in answer) yield answerOf(answer.oid, await this.read(answer.oid));
          else yield { oid: answer.oid, ...this.#checked(answer.oid, answer) };
        }
      } catch (error) {
        if (!hasCode(error, 'object-damaged')) throw error;
        // Git ends at a damaged object: heal that one (or say that it cannot be), go on with another git after it.
        const { oid } = error.fields;
        yield answerOf(oid, await this.read(oid));
        done = oids.indexOf(oid, done) + 1;
      }
    }
  }

  hash(type: ObjectType, body: Uint8Array): string {
    return hashObject(this.#layout.objectFormat, type, body);
  }

  drop(oid: string): void {
    checkOid(oid);
    this.#written.delete(oid);
    this.#loose.drop(oid);
  }

  close(): Promise<void> {
    return this.#backend.close();
  }

  /** Git checks a pack's checksums when it is made, not when it is read. */
  #checked(oid: string, object: GitObject): GitObject {
    if (this.hash(object.type, object.body) === oid) return { type: object.type, body: object.body };
    const healed = this.#loose.restore(oid);
    if (healed !== null) return healed;
    throw new DurableError('object-damaged', { oid, detail: 'its bytes have another id' });
  }
}

/** As `read`; undefined too for what is damaged. */
export async function readWhole(objects: ObjectStore, oid: string): Promise<GitObject | undefined> {
  try {
    return await objects.read(oid);
  } catch (error) {
    if (hasCode(error, 'object-damaged')) return undefined;
    throw error;
  }
}

function answerOf(oid: string, object: GitObject | undefined): ReadAnswer {
  return object === undefined ? { oid, missing: true } : { oid, ...object };
}

function checkOid(oid: string): void {
  if (!/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(oid)) throw new RangeError(`not an object id: ${oid}`);
}
