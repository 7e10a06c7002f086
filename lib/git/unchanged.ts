/**
 * Whether git would say of a folder what it said when a repository was opened: the same layout, and the same settings.
 *
 * Asking git takes three processes, more time than recording a step. So git is asked once for each folder, and again when a file changed
 * that its answer came from: what the configuration was read from and includes (git-config(1), "--show-origin"), where it could be
 * read from, and the nearest `.git` above the folder. A file counts as unchanged by inode, size and both of its times.
 * Caveat: what a git finds in rarer ways (a bare repository, a border of a file system on the way up) is seen when the folder is asked about
 * for the first time. A configuration that depends on a branch or on a remote's address is asked for each time.
 */
import { realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { survey } from './layout.js';
import type { Storage } from './storage.js';

/** Folders whose answers are kept. */
const MOST_FOLDERS = 64;

export class Unchanged {
  readonly #storage: Storage;
  /** By folder: what the files were when git said that it is this repository. */
  readonly #known = new Map<string, string>();
  #sources: readonly string[] | null = null;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /** `dir`: absolute. Errors: those of `survey`, the disk's. */
  async isStill(dir: string): Promise<boolean> {
    const known = this.#known.get(dir);
    if (known !== undefined && this.#signature(dir) === known) return true;
    this.#known.delete(dir);
    this.#sources = await this.#readFrom();
    const before = this.#signature(dir);
    const { layout, config } = await survey(dir, this.#storage.host);
    if (!isDeepStrictEqual(layout, this.#storage.layout)) return false;
    if (!isDeepStrictEqual(config, this.#storage.config)) return false;
    // What changes while git looks may be in its answer or not.
    if (before !== null && this.#signature(dir) === before) this.#keep(dir, before);
    return true;
  }

  #keep(dir: string, signature: string): void {
    if (this.#known.size >= MOST_FOLDERS) this.#known.clear();
    this.#known.set(dir, signature);
  }

  #signature(dir: string): string | null {
    if (this.#sources === null) return null;
    return [nearest(dir), ...this.#sources].map(signed).join('\n');
  }

  /** Every file that the configuration came from, or would if it were there. Null where that cannot be told from files alone. */
  async #readFrom(): Promise<readonly string[] | null> {
    const { git, layout, host } = this.#storage;
    const listed = await git.output(['config', '--null', '--list', '--show-origin']);
    const fields = listed.toString('utf8').split('\0');
    const sources = new Set([join(layout.commonDir, 'config'), join(layout.gitDir, 'config.worktree')]);
    const { HOME, XDG_CONFIG_HOME } = host.env;
    if (HOME !== undefined) sources.add(join(HOME, '.gitconfig')).add(join(HOME, '.config/git/config'));
    if (XDG_CONFIG_HOME !== undefined) sources.add(join(XDG_CONFIG_HOME, 'git/config'));
    sources.add('/etc/gitconfig');
    for (let at = 0; at + 1 < fields.length; at += 2) {
      const origin = fields[at] ?? '';
      const [key = '', value = ''] = (fields[at + 1] ?? '').split('\n');
      if (/^includeif\.(?!gitdir)/.test(key)) return null;
      // Relative to the git dir or work tree, which are where git was started.
      const file = /^file:(.*)$/s.exec(origin)?.[1];
      if (file === undefined) continue;
      const path = absolute(file, layout.workTree);
      sources.add(path);
      if (/^include(?:if\..*)?\.path$/.test(key)) sources.add(included(value, path, HOME ?? ''));
    }
    return [...sources];
  }
}

const absolute = (path: string, base: string): string => (path.startsWith('/') ? path : join(base, path));

function included(value: string, by: string, home: string): string {
  return value.startsWith('~/') ? join(home, value.slice(2)) : absolute(value, dirname(by));
}

/** The `.git` by which git tells whose folder it is. */
function nearest(dir: string): string {
  for (let at = realpathSync(dir); ; at = dirname(at)) {
    const path = join(at, '.git');
    if (statSync(path, { throwIfNoEntry: false }) !== undefined || at === dirname(at)) return path;
  }
}

/** Of a folder what it holds changes all the time: that it is this one is enough. */
function signed(path: string): string {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (stat === undefined) return `${path} -`;
  const { dev, ino, size, mtimeNs, ctimeNs } = stat;
  return [path, dev, ino, ...(stat.isDirectory() ? [] : [size, mtimeNs, ctimeNs])].join(' ');
}
