/** Differences of two trees, path by path, from `git diff-tree -r -t -z --raw`. */
import type { FileMode, Image } from '../event.js';
import { DurableError } from '../errors.js';
import { splitPaths } from './path.js';

export interface TreeChange {
  readonly path: string;
  /** null: not in the first tree. */
  readonly before: Image;
  /** null: not in the second. */
  readonly after: Image;
}

export interface Comparison {
  readonly changes: readonly TreeChange[];
  /** With `-t`: blobs and trees that stand in the second tree where the first has another or none; its root is not named. */
  readonly objects: readonly string[];
}

/** Each pair of trees is compared once: the task's last checkpoint is most often the work tree's last as well. */
export class Comparisons {
  readonly #run: (args: readonly string[]) => Promise<Buffer>;
  readonly #known = new Map<string, Promise<Comparison>>();

  /** `run` starts a git that sees both trees. */
  constructor(run: (args: readonly string[]) => Promise<Buffer>) {
    this.#run = run;
  }

  /** Errors: those of `run`. */
  of(from: string, to: string): Promise<Comparison> {
    if (from === to) return Promise.resolve({ changes: [], objects: [] });
    const known = this.#known.get(`${from} ${to}`);
    if (known !== undefined) return known;
    const args = ['diff-tree', '-r', '-t', '-z', '--raw', '--no-renames', '--no-ext-diff', from, to];
    const asked = this.#run(args).then(parseComparison);
    this.#known.set(`${from} ${to}`, asked);
    // What failed may be asked again, of a store that has been mended meanwhile.
    asked.catch(() => this.#known.delete(`${from} ${to}`));
    return asked;
  }

  /** For whoever made the second tree from the first one. */
  know(from: string, to: string, comparison: Comparison): void {
    this.#known.set(`${from} ${to}`, Promise.resolve(comparison));
  }
}

/** `:<mode> <mode> <oid> <oid> <status>\0<path>\0…`; paths that are no files in either tree are no changes. */
export function parseComparison(output: Buffer): Comparison {
  const objects = new Set<string>();
  const fields = splitPaths(output);
  const changes: TreeChange[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [from = '', to = '', before = '', after = ''] = (fields[at] ?? '').slice(1).split(' ');
    if (to !== '000000' && to !== '160000') objects.add(after);
    const change = { path: fields[at + 1] ?? '', before: image(from, before), after: image(to, after) };
    if (change.before !== null || change.after !== null) changes.push(change);
  }
  return { changes, objects: [...objects] };
}

function image(mode: string, oid: string): Image {
  if (mode === '000000' || mode === '160000' || mode === '040000') return null;
  if (isFileMode(mode)) return { mode, oid };
  throw new DurableError('object-damaged', { oid, detail: `a tree entry of mode ${mode}` });
}

function isFileMode(mode: string): mode is FileMode {
  return mode === '100644' || mode === '100755' || mode === '120000';
}
