/**
 * One hook of ours in a hooks folder, chained in front of what is there.
 *
 * States of NAME and its neighbours, and what each means:
 *
 *   NAME ours, NAME.durable-prev or nothing   installed; the previous one runs after ours
 *   NAME.legacy ours                          the pre-commit framework came later and runs ours: installed
 *   NAME.old ours                             lefthook came later and runs ours no more: its former content goes back there
 *   NAME another's                            not installed, or wiped (husky makes its folder anew)
 *   no NAME, NAME.durable-prev                killed where links cannot be made: it goes back
 *   NAME.durable-new                          killed while it was written: it goes
 *
 * Each change is one rename, so that git finds the old hook or the new one at any time. A hook that is tracked is left alone: chaining it
 * would show in `git status`.
 */
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { isDurableError } from '../errors.js';
import { errno, isAbsence } from '../git/disk.js';
import { splitPaths } from '../git/path.js';
import type { Storage } from '../git/storage.js';
import { packageFile } from '../package.js';

/** Second line of every hook of ours. */
const MARK = '# git-durable hook:';

const hookText = (name: string): string =>
  readFileSync(packageFile('hooks/git/hook.sh'), 'utf8').replace('@NAME@', name);

/** Idempotent; not for a hook that is tracked. */
export function placeHook(storage: Storage, dir: string, name: string): void {
  const path = join(dir, name);
  if (isHookPresent(dir, name)) return;
  putBack(storage, path, `${path}.old`);
  if (existsSync(path)) setAside(storage, path);
  writeHook(storage, path, name);
}

/** A second name for it, so that git finds it under its own until ours is there; where links cannot be made, it is moved. */
function setAside({ disk }: Storage, path: string): void {
  const previous = previousOf(path);
  disk.unlink('fence.hook', previous);
  try {
    disk.link('fence.hook', path, previous);
  } catch (error) {
    if (!isDurableError(error)) throw error;
    disk.rename('fence.hook', path, previous);
  }
}

/** The script alone, for git's configured hooks: nothing is chained there. */
export function writeHook(storage: Storage, path: string, name: string): void {
  const { disk } = storage;
  const fresh = newOf(path);
  disk.unlink('fence.hook', fresh);
  disk.createPassing('fence.hook', fresh, Buffer.from(hookText(name), 'utf8'), { exact: 0o755 });
  disk.rename('fence.hook', fresh, path);
}

/** Takes ours away and puts what was there before back; true when something was done. */
export function takeHook(storage: Storage, dir: string, name: string): boolean {
  const path = join(dir, name);
  const { disk } = storage;
  // What was killed left this: a hook that was being written, and none where there was one. (On a read-only disk the attempt fails.)
  if (isFile(newOf(path))) disk.unlink('fence.hook', newOf(path));
  const done = [path, `${path}.legacy`, `${path}.old`].some((at) => putBack(storage, path, at));
  const previous = previousOf(path);
  if (isFile(previous) && !isFile(path)) return disk.rename('fence.hook', previous, path) === 'done';
  // Made anew over ours, by the same program: its earlier self is no use to anybody.
  const isSame = isFile(previous) && isFile(path) && contentOf(previous) === contentOf(path);
  if (isSame) disk.unlink('fence.hook', previous);
  return done || isSame;
}

/** Files of ours beside a hook: one that was set aside for ours stays where the user has put another in its place. */
export function strays(dir: string, name: string): string[] {
  return [previousOf(join(dir, name)), newOf(join(dir, name))].filter(isFile);
}

export function isHookPresent(dir: string, name: string): boolean {
  const path = join(dir, name);
  return isOurs(path) || (isOurs(`${path}.legacy`) && existsSync(path));
}

const previousOf = (path: string): string => `${path}.durable-prev`;
const newOf = (path: string): string => `${path}.durable-new`;

/** What was moved aside for ours goes to where ours lies now. */
function putBack(storage: Storage, path: string, at: string): boolean {
  if (!isOurs(at)) return false;
  const { disk } = storage;
  if (!existsSync(previousOf(path))) return disk.unlink('fence.hook', at);
  return disk.rename('fence.hook', previousOf(path), at) === 'done';
}

const isOurs = (path: string): boolean => contentOf(path).split('\n', 2)[1]?.startsWith(MARK) === true;
const isFile = (path: string): boolean => existsSync(path);

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    if (isAbsence(error) || ['EACCES', 'EISDIR'].includes(errno(error))) return '';
    throw error;
  }
}

/** Those of the hooks that are tracked files of the work tree: chaining one would show in `git status`. */
export async function trackedHooks(
  storage: Storage,
  dir: string,
  names: readonly string[],
): Promise<string[]> {
  const { workTree, gitDir, commonDir } = storage.layout;
  const isInside = (folder: string): boolean => `${dir}/`.startsWith(`${folder}/`);
  if (!isInside(workTree) || isInside(gitDir) || isInside(commonDir)) return [];
  const paths = names.map((name) => `:(literal)${join(dir, name)}`);
  const listed = splitPaths(await storage.git.output(['ls-files', '-z', '--', ...paths]));
  const found = new Set(listed.map((path) => basename(path)));
  return names.filter((name) => found.has(name));
}
