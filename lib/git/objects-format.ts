/**
 * Git's object format, the few lines of it that we need: hashing, loose encoding and decoding, commits and trees.
 *
 * An object is `<type> <length>\0<body>`; its id is the hash of that, its loose file the zlib stream of it
 * (gitformat-loose). Every commit of ours has the same author and committer, UTC and a message that ends in a newline,
 * so that servers with strict checks take it and `git fsck --strict` is content.
 */
import { createHash } from 'node:crypto';
import { deflateSync, inflateSync, constants } from 'node:zlib';
import { DurableError } from '../errors.js';
import { errno } from './disk.js';

export type ObjectType = 'commit' | 'tree' | 'blob' | 'tag';
export type ObjectFormat = 'sha1' | 'sha256';

export interface GitObject {
  readonly type: ObjectType;
  readonly body: Buffer;
}

export interface TreeEntry {
  /** As git prints it: '100644', '100755', '120000', '040000' or '160000'. */
  readonly mode: string;
  readonly name: Buffer | string;
  readonly oid: string;
}

const AUTHOR = 'git-durable <git-durable@users.noreply.github.com>';

export function hashObject(format: ObjectFormat, type: ObjectType, body: Uint8Array): string {
  return createHash(format).update(header(type, body)).update(body).digest('hex');
}

/** The bytes of the loose file. Fastest deflate level: events are small, and git packs them again anyway. */
export function encodeLoose(type: ObjectType, body: Uint8Array): Buffer {
  return deflateSync(Buffer.concat([header(type, body), body]), { level: constants.Z_BEST_SPEED });
}

/** Null when the bytes are not a whole object of that id: torn, empty, or something else. */
export function decodeLoose(format: ObjectFormat, oid: string, bytes: Uint8Array): GitObject | null {
  const raw = inflated(bytes);
  if (raw === null || createHash(format).update(raw).digest('hex') !== oid) return null;
  const end = raw.indexOf(0);
  const type = raw.toString('latin1', 0, Math.max(raw.indexOf(32), 0));
  return isObjectType(type) ? { type, body: raw.subarray(end + 1) } : null;
}

export function isObjectType(text: string): text is ObjectType {
  return text === 'commit' || text === 'tree' || text === 'blob' || text === 'tag';
}

/** `message` gets a newline at its end if it has none. */
export function commitBody(commit: {
  readonly tree: string;
  readonly parents: readonly string[];
  readonly message: string;
  readonly at: Date;
}): Buffer {
  const when = `${AUTHOR} ${String(Math.floor(commit.at.getTime() / 1000))} +0000`;
  const lines = [
    `tree ${commit.tree}`,
    ...commit.parents.map((parent) => `parent ${parent}`),
    `author ${when}`,
    `committer ${when}`,
    '',
    commit.message.endsWith('\n') ? commit.message : `${commit.message}\n`,
  ];
  return Buffer.from(lines.join('\n'), 'utf8');
}

export interface ParsedCommit {
  readonly tree: string;
  readonly parents: readonly string[];
  /** Everything after the first empty line, byte for byte as UTF-8. */
  readonly message: string;
}

/** Throws 'event-invalid' when the body is not a commit's. */
export function parseCommit(body: Uint8Array): ParsedCommit {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const end = bytes.indexOf('\n\n');
  const headers = bytes.toString('latin1', 0, end === -1 ? bytes.length : end).split('\n');
  const tree = /^tree ([0-9a-f]{40,64})$/.exec(headers[0] ?? '')?.[1];
  if (tree === undefined || end === -1)
    throw new DurableError('event-invalid', { commit: null, detail: 'it is not a commit object' });
  const parents: string[] = [];
  for (const line of headers.slice(1)) {
    const parent = /^parent ([0-9a-f]{40,64})$/.exec(line)?.[1];
    if (parent === undefined) break;
    parents.push(parent);
  }
  return { tree, parents, message: bytes.toString('utf8', end + 2) };
}

/** Entries in any order; git's order is by bytes, a folder's name as if it ended in a slash. */
export function treeBody(entries: readonly TreeEntry[]): Buffer {
  const rows = entries.map(({ mode, name, oid }) => {
    const short = mode.replace(/^0+/, '');
    const bytes = typeof name === 'string' ? Buffer.from(name, 'utf8') : name;
    const key = short === '40000' ? Buffer.concat([bytes, Buffer.from('/')]) : bytes;
    const row = Buffer.concat([Buffer.from(`${short} `), bytes, Buffer.from([0]), Buffer.from(oid, 'hex')]);
    return { key, row };
  });
  rows.sort((a, b) => Buffer.compare(a.key, b.key));
  return Buffer.concat(rows.map(({ row }) => row));
}

/** Entries in git's order. Throws RangeError when it is no tree. */
export function parseTree(body: Buffer, format: ObjectFormat): TreeEntry[] {
  const idBytes = format === 'sha256' ? 32 : 20;
  const entries: TreeEntry[] = [];
  for (let at = 0; at < body.length;) {
    const space = body.indexOf(32, at);
    const end = body.indexOf(0, space);
    if (space === -1 || end === -1 || end + idBytes >= body.length + 1) throw new RangeError('not a tree');
    const mode = body.toString('latin1', at, space).padStart(6, '0');
    const oid = body.toString('hex', end + 1, end + 1 + idBytes);
    entries.push({ mode, name: body.subarray(space + 1, end), oid });
    at = end + 1 + idBytes;
  }
  return entries;
}

function header(type: ObjectType, body: Uint8Array): Buffer {
  return Buffer.from(`${type} ${String(body.length)}\0`, 'latin1');
}

function inflated(bytes: Uint8Array): Buffer | null {
  try {
    return inflateSync(bytes);
  } catch (error) {
    if (errno(error).startsWith('Z_') || errno(error).startsWith('ERR_')) return null;
    throw error;
  }
}
