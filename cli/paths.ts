/** What a caller writes as a path, as the library takes it. */
import { isAbsolute, join, normalize, relative, resolve, sep } from 'node:path';
import { DurableError } from '../lib/errors.js';
import { displayPath } from '../lib/git/path.js';
import { throughLinks } from '../lib/git/tree-path.js';
import type { VerbContext } from './verb.js';

/**
 * Paths as the caller wrote them, relative to the caller's folder, as paths of the work tree; '' is the work tree itself.
 * Literal: no pattern means anything. Throws 'path-outside'.
 */
export function treePaths(workTree: string, dir: string, words: readonly string[]): string[] {
  return words.map((word) => treePath(workTree, dir, word));
}

function treePath(workTree: string, dir: string, word: string): string {
  if (word === '')
    throw new DurableError('usage', { detail: "an empty path names nothing; '.' is this folder" });
  const written = isAbsolute(word) ? normalize(word) : join(dir, word);
  const inside = below(workTree, written) ?? below(workTree, throughLinks(written));
  if (inside === null) throw new DurableError('path-outside', { path: displayPath(word) });
  return inside.endsWith('/') ? inside.slice(0, -1) : inside;
}

function below(workTree: string, path: string): string | null {
  const found = relative(workTree, path);
  if (found === '..' || found.startsWith(`..${sep}`) || isAbsolute(found)) return null;
  return found;
}

/** A file that an option names, relative to the caller's folder. */
export function callersFile(context: VerbContext, name: string): string {
  return resolve(context.dir, name);
}
