/**
 * A work tree read with node:fs and hashed with node:crypto: what the drill compares the product's word with.
 *
 * Every file and link counts, ignored ones too; `.git` does not. Nothing here comes from the product.
 */
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

export interface Leaf {
  readonly mode: '100644' | '100755' | '120000';
  readonly bytes: Buffer;
  /** Lower-case hex SHA-256 of the bytes. */
  readonly sha256: string;
}

/** Paths relative to the root, `/`-separated. */
export type Tree = ReadonlyMap<string, Leaf>;

export function readTree(root: string): Tree {
  const tree = new Map<string, Leaf>();
  collect(root, '', tree);
  return tree;
}

/** Every folder below the root, empty ones too: git does not know those, but a user sees them. */
export function readFolders(root: string, folder = ''): string[] {
  const below: string[] = [];
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory() && path !== '.git') below.push(path, ...readFolders(root, path));
  }
  return below;
}

/** Folders that must be there for these paths to be. */
export function foldersAbove(paths: Iterable<string>): string[] {
  const folders = new Set<string>();
  for (const path of paths) {
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1))
      folders.add(path.slice(0, end));
  }
  return [...folders];
}

function collect(root: string, folder: string, tree: Map<string, Leaf>): void {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (path === '.git') continue;
    if (entry.isDirectory()) collect(root, path, tree);
    else tree.set(path, readLeaf(join(root, path)));
  }
}

function readLeaf(path: string): Leaf {
  const stat = lstatSync(path);
  if (stat.isSymbolicLink()) return leaf('120000', readlinkSync(path, { encoding: 'buffer' }));
  return leaf((stat.mode & 0o100) === 0 ? '100644' : '100755', readFileSync(path));
}

export function leaf(mode: Leaf['mode'], bytes: Buffer): Leaf {
  return { mode, bytes, sha256: sha256(bytes) };
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Git's name of these bytes as a blob (gitformat-object: "blob", a space, the length, NUL, the bytes). */
export function blobId(format: 'sha1' | 'sha256', bytes: Uint8Array): string {
  return createHash(format)
    .update(`blob ${String(bytes.length)}\0`)
    .update(bytes)
    .digest('hex');
}

export function sameLeaf(a: Leaf | undefined, b: Leaf | undefined): boolean {
  return a?.sha256 === b?.sha256 && a?.mode === b?.mode;
}

/** Paths where two trees differ, sorted. */
export function difference(a: Tree, b: Tree): string[] {
  const paths = new Set([...a.keys(), ...b.keys()]);
  return [...paths].filter((path) => !sameLeaf(a.get(path), b.get(path))).sort();
}
