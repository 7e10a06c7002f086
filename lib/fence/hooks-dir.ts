/**
 * The folder in which git looks for hooks: `core.hooksPath`, or `hooks` of the common git dir; and whether it can hold any.
 *
 * To ask git is a process. What it said holds for as long as none of the files that it read has changed, by inode, size and times
 * (`stamps`): the repository's `config` and `config.worktree`, the user's two, the system's, and those that these include. Not
 * covered: a file that is included but was not there or empty, and a condition of an `includeIf` that comes to hold (a branch's).
 */
import { accessSync, constants, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { errno, isAbsence } from '../git/disk.js';
import type { Storage } from '../git/storage.js';

/** Path of a file of settings to what tells one state of it from another; '' where nobody has looked. */
export type Stamps = Readonly<Record<string, string>>;

export interface HooksDir {
  /** Absolute. */
  readonly dir: string;
  readonly stamps: Stamps;
}

/** `known`: files that were read the last time; one that is new is taken for changed at the next look. Errors: 'git-missing'. */
export async function findHooksDir(storage: Storage, known: Stamps = {}): Promise<HooksDir> {
  const before = stampsOf([...usual(storage), ...Object.keys(known)]);
  const { workTree } = storage.layout;
  const { path, files } = await ask(storage);
  const read = files.map((file) => resolve(workTree, file));
  const stamps = Object.fromEntries(read.map((file) => [file, before[file] ?? '']));
  for (const file of usual(storage)) stamps[file] = before[file] ?? '';
  return { dir: await dirOf(storage, path), stamps };
}

/** Whether what git said last may not hold any more; true where nothing is known. */
export function isOutdated(stamps: Stamps | undefined): boolean {
  if (stamps === undefined) return true;
  return Object.entries(stamps).some(([file, stamp]) => stampOf(file) !== stamp);
}

/** Why no hook can be put there, for the end of a sentence; null when one can, as far as one sees without trying. */
export function whyNoHooks(dir: string): string | null {
  if (dir === '/') return 'which is the root of all folders';
  try {
    if (!statSync(dir).isDirectory()) return 'which is no folder';
    accessSync(dir, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    if (errno(error) === 'ENOENT') return whyNoHooks(dirname(dir)) === null ? null : 'which cannot be made';
    return isAbsence(error) ? 'which cannot be made' : 'which cannot be written';
  }
}

/** `core.hooksPath` as it is written, and which files git read. Our own git's settings are no file's. */
async function ask({ git }: Storage): Promise<{ path: string | null; files: string[] }> {
  const listed = await git.run(['config', '--null', '--show-origin', '--list']);
  const words = listed.stdout.toString('utf8').split('\0');
  const files = new Set<string>();
  let path: string | null = null;
  for (let at = 0; at + 1 < words.length; at += 2) {
    const [origin = '', setting = ''] = words.slice(at, at + 2);
    if (!origin.startsWith('file:')) continue;
    files.add(origin.slice('file:'.length));
    if (setting.startsWith('core.hookspath\n')) path = setting.slice('core.hookspath\n'.length);
  }
  return { path, files: [...files] };
}

async function dirOf({ git, layout }: Storage, path: string | null): Promise<string> {
  if (path === null) return join(layout.commonDir, 'hooks');
  // Git puts '/NAME' behind it.
  if (path === '') return '/';
  if (!/^(?:~|%\()/.test(path)) return resolve(layout.workTree, path);
  const asked = await git.run(['config', '--type=path', '--null', '--get-all', 'core.hooksPath']);
  return resolve(layout.workTree, asked.stdout.toString('utf8').split('\0').slice(0, -2).at(-1) ?? path);
}

/** Looked at even where they are not there yet. */
function usual({ layout, host }: Storage): string[] {
  const { HOME: home = '/', XDG_CONFIG_HOME: given = '' } = host.env;
  const xdg = given === '' ? join(home, '.config') : given;
  return [
    join(layout.commonDir, 'config'),
    join(layout.gitDir, 'config.worktree'),
    join(home, '.gitconfig'),
    join(xdg, 'git', 'config'),
    '/etc/gitconfig',
  ];
}

const stampsOf = (files: readonly string[]): Record<string, string> =>
  Object.fromEntries(files.map((file) => [file, stampOf(file)]));

function stampOf(file: string): string {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return errno(error);
  }
}
