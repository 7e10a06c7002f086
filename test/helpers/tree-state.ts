/**
 * Known states of a small work tree, numbered from 0: what the workload moves between, and what judges hold the tree
 * to, without asking the product. Each step writes, creates, deletes, renames, flips an exec bit and turns a link.
 */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface Leaf {
  readonly content: string;
  readonly mode: '100644' | '100755' | '120000';
}

export type Tree = ReadonlyMap<string, Leaf>;

const file = (content: string, executable = false): Leaf => ({
  content,
  mode: executable ? '100755' : '100644',
});

export function treeAt(state: number): Tree {
  const tree = new Map<string, Leaf>([
    ['README', file('hello\n')],
    ['a.txt', file(`version ${String(state)} of a file of some length\n`.repeat(60))],
    ['dir/same', file('never changed\n')],
    [`made/new ${String(state)}`, file(`made by step ${String(state)}\n`)],
    [`moved ${String(state)}`, file('moved about\n')],
    ['tool.sh', file('#!/bin/sh\n', state % 2 === 1)],
    ['link', { content: `made/new ${String(state)}`, mode: '120000' }],
  ]);
  return tree;
}

/** The step from `state` to the next, as a transaction takes it. */
export function stepFrom(state: number): readonly Step[] {
  const next = treeAt(state + 1);
  const bytes = (path: string): Uint8Array => Buffer.from(next.get(path)?.content ?? '');
  return [
    { kind: 'write', path: 'a.txt', bytes: bytes('a.txt') },
    {
      kind: 'write',
      path: `made/new ${String(state + 1)}`,
      bytes: bytes(`made/new ${String(state + 1)}`),
    },
    { kind: 'delete', path: `made/new ${String(state)}` },
    { kind: 'rename', from: `moved ${String(state)}`, to: `moved ${String(state + 1)}` },
    { kind: 'chmod', path: 'tool.sh', executable: (state + 1) % 2 === 1 },
    { kind: 'symlink', path: 'link', target: `made/new ${String(state + 1)}` },
  ];
}

export type Step =
  | { readonly kind: 'write'; readonly path: string; readonly bytes: Uint8Array }
  | { readonly kind: 'delete'; readonly path: string }
  | { readonly kind: 'rename'; readonly from: string; readonly to: string }
  | { readonly kind: 'chmod'; readonly path: string; readonly executable: boolean }
  | { readonly kind: 'symlink'; readonly path: string; readonly target: string };

/** Makes the work tree this state, as a user's own editor would: not through the product. */
export function placeTree(dir: string, tree: Tree): void {
  for (const path of readTree(dir).keys()) if (!tree.has(path)) rmSync(join(dir, path));
  for (const [path, leaf] of tree) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    rmSync(join(dir, path), { force: true });
    if (leaf.mode === '120000') symlinkSync(leaf.content, join(dir, path));
    else writeFileSync(join(dir, path), leaf.content);
    if (leaf.mode === '100755') chmodSync(join(dir, path), 0o755);
  }
}

/** The work tree as it is, without the git dir; empty folders do not count. */
export function readTree(dir: string, prefix = ''): Tree {
  const tree = new Map<string, Leaf>();
  for (const name of readdirSync(join(dir, prefix)).sort()) {
    const path = prefix === '' ? name : `${prefix}/${name}`;
    if (path === '.git') continue;
    const stat = lstatSync(join(dir, path));
    if (stat.isDirectory()) for (const [below, leaf] of readTree(dir, path)) tree.set(below, leaf);
    else if (stat.isSymbolicLink())
      tree.set(path, { content: readlinkSync(join(dir, path)), mode: '120000' });
    else tree.set(path, file(readFileSync(join(dir, path), 'utf8'), (stat.mode & 0o100) !== 0));
  }
  return tree;
}

/** Paths that are in none of the states: each must be there, or absent, exactly as one of them says. */
export function outOfPlace(now: Tree, states: readonly Tree[]): string[] {
  const paths = new Set([now, ...states].flatMap((tree) => [...tree.keys()]));
  return [...paths].filter((path) => !states.some((state) => same(now.get(path), state.get(path)))).sort();
}

/** One digest for a whole tree, to compare trees that are far apart. */
export function treeDigest(tree: Tree): string {
  const lines = [...tree].map(([path, { content, mode }]) => JSON.stringify([path, mode, content])).sort();
  return createHash('sha256').update(lines.join('\n')).digest('hex');
}

function same(a: Leaf | undefined, b: Leaf | undefined): boolean {
  return a?.content === b?.content && a?.mode === b?.mode;
}
