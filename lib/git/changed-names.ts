/**
 * Which paths a snapshot has to look at.
 *
 * The names of a snapshot are: what the user's index names · what is neither tracked nor ignored · what was named explicitly.
 * Nothing else, so a file that was ignored since leaves the next snapshot.
 *
 * The first time these are all of them. Later `git status` with the private index finds what differs from it (stat first,
 * then content; untracked files by the folders that changed), and the rest is kept as *state* beside the index:
 * - *extras*, in the private index and not in the user's: asked each time whether they are ignored by now;
 * - *missing*, in the user's and not in the private one: a tracked file that is ignored and came back is no untracked file;
 * - *suspects* of the index's update (private-index.ts).
 * Extras and missing are found anew whenever the user's index was written.
 */
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { linkFinder } from './beyond-link.js';
import { closedFolders } from './closed-folders.js';
import { isAbsence } from './disk.js';
import { encodePath, fsPath, splitPaths } from './path.js';
import { gitFailure, type PrivateDir } from './private-dir.js';
import type { GitResult } from './process.js';
import type { Quarantine } from './quarantine.js';
import type { Storage } from './storage.js';
import { isStillSuspect, statText, type Suspect } from './suspects.js';
import { below } from './walk.js';
import { userIndexMark, userNames } from './user-index.js';

const paths = v.array(v.string());
const stateSchema = v.object({
  v: v.literal(1),
  /** durable.maxFileSize of then: with another one every file is looked at again. */
  limit: v.number(),
  tree: v.string(),
  /** The commit that holds the tree, and the ref that reached it when this was written. */
  kept: v.nullable(v.object({ ref: v.string(), commit: v.string() })),
  files: v.number(),
  /** See `userIndexMark`. */
  mark: v.string(),
  extras: paths,
  missing: paths,
  sparse: paths,
  submodules: paths,
  /** Over the limit and kept since somebody named them: the next one looks again, and leaves them out unless they are named again. */
  large: v.optional(paths, []),
  /** Folders that could not be entered. */
  closed: v.optional(paths, []),
  suspects: v.array(v.object({ path: v.string(), stat: v.string() })),
});
export type IndexState = v.InferOutput<typeof stateSchema>;

export interface ChangedNames {
  /** To be looked at on disk. */
  readonly look: readonly string[];
  /** Of those, whose bytes git must not take for known by their stat. */
  readonly doubted: readonly string[];
  /** In the index and ignored by now: taken out. */
  readonly ignored: readonly string[];
  /** Folders that are repositories of their own. */
  readonly nested: readonly string[];
  /** Folders that may not be entered. */
  readonly closed: readonly string[];
  /** Untracked ones among `look`: git is likely not to have their bytes. */
  readonly untracked: readonly string[];
  /** Unchanged, but not yet beyond doubt. */
  readonly suspects: readonly Suspect[];
  /** How many paths differ between the private HEAD and the index. */
  readonly behind: number;
  readonly base: NameBase;
}

/** What is known of names before the update. */
export interface NameBase {
  readonly mark: string;
  readonly extras: ReadonlySet<string>;
  readonly missing: ReadonlySet<string>;
  readonly sparse: readonly string[];
  readonly submodules: readonly string[];
}

/** Untracked, not ignored; `nested`: folders that are repositories of their own; `closed`: that may not be entered. */
export interface Others {
  readonly files: readonly string[];
  readonly nested: readonly string[];
  readonly closed: readonly string[];
}

const OTHERS = ['ls-files', '-o', '--exclude-standard', '-z'];

export function parseState(text: string | null, limit: number): IndexState | null {
  if (text === null) return null;
  try {
    const parsed = v.safeParse(stateSchema, JSON.parse(text));
    return parsed.success && parsed.output.limit === limit ? parsed.output : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

export class NameFinder {
  readonly #storage: Storage;
  readonly #dir: PrivateDir;
  readonly #quarantine: Quarantine;

  constructor(storage: Storage, dir: PrivateDir, quarantine: Quarantine) {
    this.#storage = storage;
    this.#dir = dir;
    this.#quarantine = quarantine;
  }

  /** Tracked names, with no private index. Errors: 'git-failed'. */
  async tracked(): Promise<ChangedNames> {
    const [mark, names] = await Promise.all([userIndexMark(this.#storage), userNames(this.#storage)]);
    const { files, sparse, submodules } = names;
    return {
      look: [...files],
      doubted: [],
      ignored: [],
      nested: [],
      closed: [],
      untracked: [],
      behind: Number.POSITIVE_INFINITY,
      suspects: [],
      base: { mark, extras: new Set(), missing: files, sparse: [...sparse], submodules },
    };
  }

  /**
   * Whatever is neither ignored nor tracked: asked of the user's index, so that git does not list what it names. Errors:
   * 'git-failed'.
   */
  async others(): Promise<Others> {
    const rules = `--exclude-from=${join(this.#dir.dir, 'info', 'exclude')}`;
    const listed = await this.#storage.git.run([...OTHERS, rules]);
    return listed.code === 0 ? this.#split(listed) : this.#all();
  }

  /** The same again when the user's index was written since `tracked`: a path could be in neither of the two lists. */
  async othersAfter(names: ChangedNames, found: Others): Promise<Others> {
    return (await userIndexMark(this.#storage)) === names.base.mark ? found : this.#all();
  }

  /** Whatever is not ignored. */
  async #all(): Promise<Others> {
    const env = { GIT_INDEX_FILE: this.#quarantine.path('none') };
    return this.#split(await this.#dir.whole(this.#quarantine, OTHERS, { env }));
  }

  /** git lists a nested repository as a folder, and of a closed folder nothing. */
  #split({ stdout, stderr }: GitResult): Others {
    const { workTree } = this.#storage.layout;
    const { folders, isUnclear } = closedFolders(workTree, stderr);
    const closed = isUnclear ? below(workTree, '').unreadable : folders;
    return { ...splitFolders(splitPaths(stdout)), closed };
  }

  /** What may differ from the private index that is in the quarantine. Errors: 'git-failed'. */
  async since(state: IndexState): Promise<ChangedNames> {
    const [status, { base, ignored }] = await Promise.all([this.#status(state), this.#known(state)]);
    const gone = new Set(ignored);
    const back = [...base.missing].filter((path) => this.#stat(path) !== null);
    const doubted = state.suspects
      .filter(({ path, stat }) => this.#stat(path) !== stat)
      .map(({ path }) => path);
    const suspects = state.suspects.filter((one) => isStillSuspect(one, this.#quarantine.bornAt));
    const look = new Set([
      ...[...status.changed, ...status.untracked, ...status.hidden],
      ...[...back, ...doubted, ...state.large],
    ]);
    return {
      look: [...look].filter((path) => !gone.has(path)),
      doubted,
      ignored,
      nested: status.nested,
      closed: status.closed,
      untracked: status.untracked,
      behind: status.behind,
      suspects: suspects.filter(({ path }) => !look.has(path)),
      base,
    };
  }

  /** Of these paths: those that the ignore rules match, tracked or not. */
  async ignored(paths: readonly string[]): Promise<string[]> {
    if (paths.length === 0) return [];
    // git refuses to answer for a path beyond a link, which is not in the work tree any more.
    const isBeyondLink = linkFinder(this.#storage.layout.workTree);
    const straight = paths.filter((path) => !isBeyondLink(path));
    return askIgnored(this.#dir, this.#quarantine, { paths: straight });
  }

  async #status(state: IndexState): Promise<{
    changed: string[];
    untracked: readonly string[];
    nested: readonly string[];
    closed: readonly string[];
    /** In closed folders. */
    hidden: readonly string[];
    behind: number;
  }> {
    // A folder that it could not enter once git's untracked cache skips for good, even when it may be entered again.
    const cache = state.closed.length === 0 ? [] : ['-c', 'core.untrackedCache=false'];
    const args = [...cache, 'status', '--porcelain=v1', '-z', '--no-renames', '--untracked-files=all'];
    args.push('--ignore-submodules=all');
    // The optional lock is on our own copy of the index: what git finds clean again is remembered.
    const options = { env: { GIT_OPTIONAL_LOCKS: '1' }, site: 'snapshot.scan' } as const;
    const { stdout, stderr } = await this.#dir.whole(this.#quarantine, args, options);
    const changed: string[] = [];
    const others: string[] = [];
    let behind = 0;
    for (const line of splitPaths(stdout)) {
      const path = line.slice(3);
      if (line.startsWith('??')) others.push(path);
      else {
        if (!line.startsWith(' ')) behind += 1;
        if (line.charAt(1) !== ' ') changed.push(path);
      }
    }
    const { files, nested } = splitFolders(others);
    return { changed, untracked: files, nested, behind, ...(await this.#hidden(stderr)) };
  }

  async #hidden(stderr: string): Promise<{ closed: readonly string[]; hidden: readonly string[] }> {
    const { workTree } = this.#storage.layout;
    const { folders, paths, isUnclear } = closedFolders(workTree, stderr);
    if (!isUnclear) return { closed: folders, hidden: paths };
    const names = splitPaths(await this.#dir.output(this.#quarantine, ['ls-files', '-z']));
    return { closed: below(workTree, '').unreadable, hidden: names };
  }

  async #known(state: IndexState): Promise<{ base: NameBase; ignored: string[] }> {
    const base = await this.#base(state);
    return { base, ignored: await this.ignored([...base.extras]) };
  }

  async #base(state: IndexState): Promise<NameBase> {
    const mark = await userIndexMark(this.#storage);
    if (mark === state.mark) {
      const { sparse, submodules } = state;
      return { mark, extras: new Set(state.extras), missing: new Set(state.missing), sparse, submodules };
    }
    const [names, listing] = await Promise.all([
      userNames(this.#storage),
      this.#dir.output(this.#quarantine, ['ls-files', '-z']),
    ]);
    const mine = new Set(splitPaths(listing));
    return {
      mark,
      extras: new Set([...mine].filter((path) => !names.files.has(path))),
      missing: new Set([...names.files].filter((path) => !mine.has(path))),
      sparse: [...names.sparse],
      submodules: names.submodules,
    };
  }

  /** Its stat as a suspect's is written; null when nothing can be found there. */
  #stat(path: string): string | null {
    const place = fsPath(this.#storage.layout.workTree, path);
    try {
      const stat = lstatSync(place, { bigint: true, throwIfNoEntry: false });
      return stat === undefined ? null : statText(stat);
    } catch (error) {
      if (isAbsence(error)) return null;
      // It is there, and the look at it says why it cannot be read.
      return 'hidden';
    }
  }
}

/** Which of the paths the ignore rules match, here or in another folder of rules. Errors: 'git-failed'. */
export async function askIgnored(
  dir: PrivateDir,
  quarantine: Quarantine,
  { paths, rules }: { readonly paths: readonly string[]; readonly rules?: string },
): Promise<string[]> {
  const args = ['check-ignore', '--no-index', '-z', '--stdin'];
  // With `./` no name is taken for pathspec magic (`:(glob)*`); git answers with what it was asked.
  const input = Buffer.concat(paths.map((path) => Buffer.concat([encodePath(`./${path}`), Buffer.of(0)])));
  const there = rules === undefined ? {} : { cwd: rules, env: { GIT_WORK_TREE: rules } };
  const result = await dir.run(quarantine, args, { input, ...there });
  // 1: none of them is.
  if (result.code === 0 || result.code === 1) return splitPaths(result.stdout).map((path) => path.slice(2));
  throw gitFailure(quarantine, args, result);
}

function splitFolders(paths: readonly string[]): Omit<Others, 'closed'> {
  const nested = paths.filter((path) => path.endsWith('/')).map((path) => path.slice(0, -1));
  return { files: paths.filter((path) => !path.endsWith('/')), nested };
}
