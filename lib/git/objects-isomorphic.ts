/**
 * The other object backend: isomorphic-git encodes and reads, our own writer puts the bytes on disk.
 *
 * For SHA-1 repositories without alternates or promisor remotes only: it wrote a SHA-1 object into a SHA-256
 * repository without complaint and knows neither of the others. It is given the common git dir, since it does not know
 * linked work trees, and a file system of ours that reads from disk, says of every object to be written that it is not
 * there (else a torn one is never repaired), and hands the deflated bytes back instead of writing them in place.
 *
 * It is loaded at the first use, by dynamic import. It reads whole packs into memory; `openStorage` says where it is used.
 */
import { lstatSync, readdirSync, readFileSync, readlinkSync, statSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { DurableError, isDurableError } from '../errors.js';
import { errno } from './disk.js';
import type { Layout } from './layout.js';
import { isObjectType, type GitObject } from './objects-format.js';
import type { ObjectBackend, WrittenType } from './objects.js';

/** Whether this backend may be used at all. */
export function isomorphicFits(layout: Layout): boolean {
  return layout.objectFormat === 'sha1' && !layout.alternates && !layout.promisor;
}

export function isomorphicBackend(layout: Layout): ObjectBackend {
  const gitdir = layout.commonDir;
  // Pack indexes that were read; a pack that git removed is not listed any more, whatever is cached.
  let cache: object = {};
  return {
    name: 'isomorphic',
    encode: (type, body) => encode(gitdir, type, body),
    read: (oid) => read(gitdir, cache, oid),
    close: () => {
      cache = {};
      return Promise.resolve();
    },
  };
}

async function encode(gitdir: string, type: WrittenType, body: Uint8Array): Promise<Uint8Array> {
  const git = await plumbing();
  const written = new Map<string, Uint8Array>();
  const fs = capturing(written);
  const oid = await git.writeObject({ fs, gitdir, type, object: body, format: 'content' });
  const bytes = written.get(join(gitdir, 'objects', oid.slice(0, 2), oid.slice(2)));
  if (bytes === undefined) throw new TypeError('isomorphic-git wrote something else than the object');
  return bytes;
}

async function read(gitdir: string, cache: object, oid: string): Promise<GitObject | undefined> {
  const git = await plumbing();
  try {
    const found = await git.readObject({ fs: capturing(new Map()), gitdir, cache, oid, format: 'content' });
    if (!isObjectType(found.type) || !(found.object instanceof Uint8Array))
      throw new DurableError('object-damaged', { oid, detail: `it is a ${found.type}` });
    return { type: found.type, body: Buffer.from(found.object) };
  } catch (error) {
    if (error instanceof git.Errors.NotFoundError) return undefined;
    // A system error keeps its name; everything else that it throws (of many kinds) is about the bytes.
    if (/^E[A-Z]/.test(errno(error)) || isDurableError(error)) throw error;
    throw new DurableError('object-damaged', { oid, detail: String(error) }, error);
  }
}

/**
 * What we take of isomorphic-git: objects byte for byte, of any type. It calls these two overly complicated and would
 * rather have `writeCommit` and `readTree`, which print and parse anew; our bytes are final.
 */
interface Plumbing {
  writeObject(object: {
    fs: Files;
    gitdir: string;
    type: WrittenType;
    object: Uint8Array;
    format: 'content';
  }): Promise<string>;
  readObject(object: {
    fs: Files;
    gitdir: string;
    cache: object;
    oid: string;
    format: 'content';
  }): Promise<{ type: string; object: unknown }>;
  readonly Errors: {
    readonly NotFoundError: new (...details: never[]) => Error;
  };
}

const plumbing = (): Promise<Plumbing> => import('isomorphic-git');

interface Files {
  readonly promises: FsPromises;
}

/** What isomorphic-git asks of a file system, read only; writes are collected. */
function capturing(written: Map<string, Uint8Array>): Files {
  const refuse = (): Promise<never> => Promise.reject(new TypeError('isomorphic-git may write objects only'));
  return {
    promises: {
      readFile: (path, options) => later(() => readFileSync(path, encodingOf(options))),
      readdir: (path) => later(() => readdirSync(path)),
      readlink: (path) => later(() => readlinkSync(path)),
      lstat: (path) => later(() => lstatSync(path)),
      stat: (path) => later(() => (isLooseObject(path) ? absent(path) : statSync(path))),
      writeFile: (path, bytes) => later(() => void written.set(path, bytes)),
      mkdir: refuse,
      rmdir: refuse,
      unlink: refuse,
      symlink: refuse,
    },
  };
}

interface FsPromises {
  readonly readFile: (path: string, options?: unknown) => Promise<string | Buffer>;
  readonly readdir: (path: string) => Promise<string[]>;
  readonly readlink: (path: string) => Promise<string>;
  readonly lstat: (path: string) => Promise<Stats>;
  readonly stat: (path: string) => Promise<Stats>;
  readonly writeFile: (path: string, bytes: Uint8Array) => Promise<void>;
  readonly mkdir: () => Promise<never>;
  readonly rmdir: () => Promise<never>;
  readonly unlink: () => Promise<never>;
  readonly symlink: () => Promise<never>;
}

const isLooseObject = (path: string): boolean => /\/objects\/[0-9a-f]{2}\/[0-9a-f]{38}$/.test(path);

function absent(path: string): never {
  throw Object.assign(new Error(`not there, so that it is written: ${path}`), { code: 'ENOENT' });
}

function encodingOf(options: unknown): 'utf8' | null {
  return options === 'utf8' || (typeof options === 'object' && options !== null && 'encoding' in options)
    ? 'utf8'
    : null;
}

function later<T>(act: () => T): Promise<T> {
  return new Promise((resolve) => {
    resolve(act());
  });
}
