/**
 * Where a repository keeps its things: `discover` from any folder of a work tree.
 *
 * Git itself answers (`git rev-parse`), so that main and linked work trees, submodules, separate git dirs and
 * `core.worktree` need no rules of ours; inherited `GIT_*` is scrubbed first. What git shares between work trees is
 * `commonDir`; isomorphic-git does not know it, so everything of ours takes its folders from here.
 *
 * Refused, each with its own error: no git, git below 2.31 (no `--path-format`), no repository, a bare one, one that
 * `safe.directory` refuses, and reftable storage, whose locks cannot name an owner (PROTOCOL.md 10).
 */
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { DurableError } from '../errors.js';
import type { Host } from '../host.js';
import { bitsOf, type Bits } from './bits.js';
import { errno } from './disk.js';
import { Git, type GitResult } from './process.js';

export interface Layout {
  /** Absolute real path of the work tree's top folder. */
  readonly workTree: string;
  /** The git dir of this work tree (index, HEAD). */
  readonly gitDir: string;
  /** The git dir that all work trees share (objects, refs). */
  readonly commonDir: string;
  /** `<commonDir>/durable`: what all work trees share of ours. */
  readonly shared: string;
  /** `<gitDir>/durable`: what this work tree has of ours. The same folder in the main work tree. */
  readonly local: string;
  readonly objectFormat: 'sha1' | 'sha256';
  /** As git prints it, for example `2.39.5`. */
  readonly gitVersion: string;
  /** True when objects may live in another repository's object store. */
  readonly alternates: boolean;
  /** True when objects may be missing here and be fetched on demand (a partial clone). */
  readonly promisor: boolean;
  /** Permission bits of what is made in the git dir. */
  readonly bits: Bits;
}

/** Configuration as git merges it: lower-case key (subsection as it is) to its last value. */
export type Config = ReadonlyMap<string, string>;

export const OLDEST_GIT = '2.31';

/** Errors: git-missing git-too-old not-a-repository bare-repository unsafe-directory reftable-unsupported. */
export async function discover(dir: string, host: Host): Promise<Layout> {
  return (await survey(dir, host)).layout;
}

/** `discover`, with the configuration that opening needs anyway: three git processes at once. */
export async function survey(dir: string, host: Host): Promise<{ layout: Layout; config: Config }> {
  const path = resolve(dir);
  // spawn says ENOENT for a missing folder too, which would read as a missing git.
  if (!isFolder(path)) throw new DurableError('not-a-repository', { path });
  const git = new Git(path, host.env, host.faults);
  const [version, places, config] = await Promise.all([
    git.run(['version']),
    git.run(['rev-parse', '--path-format=absolute', ...QUESTIONS]),
    git.run(['config', '--null', '--get-regexp', WANTED]),
  ]);
  const gitVersion = checkVersion(version);
  if (places.code !== 0) throw await refusal(git, path, places);
  const settings = parseConfig(config.stdout);
  if ((settings.get('extensions.refstorage') ?? 'files') !== 'files')
    throw new DurableError('reftable-unsupported', { path });
  const answers = await parsePlaces(git, places.stdout.toString('utf8'));
  return { layout: layoutOf(answers, settings, gitVersion), config: settings };
}

/** Of fixed form first; the paths come last because a newline in one makes the lines ambiguous. */
const QUESTIONS = ['--show-object-format', '--absolute-git-dir', '--git-common-dir', '--show-toplevel'];

const MIRRORED = 'sharedrepository|filemode|symlinks|ignorecase|precomposeunicode|excludesfile';
const WANTED = `^(extensions\\.|durable\\.|core\\.(${MIRRORED})$|remote\\..*\\.(promisor|partialclonefilter)$)`;

interface Places {
  readonly format: string;
  readonly gitDir: string;
  readonly commonDir: string;
  readonly workTree: string;
}

async function parsePlaces(git: Git, output: string): Promise<Places> {
  const lines = output.replace(/\n$/, '').split('\n');
  const [format = '', gitDir = '', commonDir = '', workTree = ''] = lines;
  if (lines.length === QUESTIONS.length) return { format, gitDir, commonDir, workTree };
  const ask = async (question: string): Promise<string> =>
    (await git.output(['rev-parse', '--path-format=absolute', question])).toString('utf8').replace(/\n$/, '');
  return {
    format,
    gitDir: await ask('--absolute-git-dir'),
    commonDir: await ask('--git-common-dir'),
    workTree: await ask('--show-toplevel'),
  };
}

function layoutOf(places: Places, config: Config, gitVersion: string): Layout {
  const { format, gitDir, workTree } = places;
  const commonDir = homeOfRefs(places.commonDir);
  if (format !== 'sha1' && format !== 'sha256')
    throw new DurableError('git-failed', {
      command: 'git rev-parse --show-object-format',
      code: 0,
      detail: `unknown object format '${format}'`,
    });
  return {
    workTree,
    gitDir,
    commonDir,
    shared: join(commonDir, 'durable'),
    local: join(gitDir, 'durable'),
    objectFormat: format,
    gitVersion,
    alternates: hasAlternates(commonDir),
    bits: bitsOf(config.get('core.sharedrepository')),
    promisor: [...config.keys()].some(
      (key) => key === 'extensions.partialclone' || key.startsWith('remote.'),
    ),
  };
}

/**
 * Work trees made by `git-new-workdir` have a git dir of their own whose `refs` is a symbolic link. Locks, claims and
 * journal must be where the refs really are, or two healers of one lock would not meet.
 */
function homeOfRefs(commonDir: string): string {
  const refs = realpathSync(join(commonDir, 'refs'));
  return basename(refs) === 'refs' ? dirname(refs) : commonDir;
}

function hasAlternates(commonDir: string): boolean {
  try {
    return readFileSync(join(commonDir, 'objects', 'info', 'alternates'), 'utf8').trim() !== '';
  } catch (error) {
    if (errno(error) === 'ENOENT') return false;
    throw error;
  }
}

function checkVersion(result: GitResult): string {
  const found = /(\d+)\.(\d+)(?:\.[0-9.]*\d)?/.exec(result.stdout.toString('utf8'));
  if (result.code !== 0 || found === null)
    throw new DurableError('git-missing', { detail: result.stderr.trim() || 'it does not tell its version' });
  const [oldMajor = 0, oldMinor = 0] = OLDEST_GIT.split('.').map(Number);
  const [version, major, minor] = [found[0], Number(found[1]), Number(found[2])];
  if (major < oldMajor || (major === oldMajor && minor < oldMinor))
    throw new DurableError('git-too-old', { found: version, needed: OLDEST_GIT });
  return version;
}

/** Why git did not answer. Its exit code is the same for all, so the facts are looked at one by one. */
async function refusal(git: Git, path: string, failed: GitResult): Promise<DurableError> {
  const said = failed.stderr.trim();
  // The key that the user has to set is in git's advice in every version that checks owners, in no other message.
  if (said.includes('safe.directory'))
    return new DurableError('unsafe-directory', { path, detail: said.split('\n')[0] ?? '' });
  const gitDir = await nearestGitDir(git, path);
  if (gitDir === null) return new DurableError('not-a-repository', { path });
  const config = join(gitDir, 'config');
  // A git that does not know reftable calls it an unknown extension and answers nothing; a file it still reads.
  const refStorage = await git.run(['config', '--file', config, 'extensions.refstorage'], { cwd: '/' });
  const kind = refStorage.stdout.toString('utf8').trim();
  if (refStorage.code === 0 && kind !== 'files') return new DurableError('reftable-unsupported', { path });
  const bare = await git.run(['rev-parse', '--is-bare-repository']);
  if (bare.code === 0 && bare.stdout.toString('utf8').trim() === 'true')
    return new DurableError('bare-repository', { path });
  if (bare.code === 0) return new DurableError('not-a-repository', { path });
  return new DurableError('git-failed', { command: 'git rev-parse', code: failed.code, detail: said });
}

/** The common git dir that git would find from here, for reading its config only; null when there is none. */
async function nearestGitDir(git: Git, path: string): Promise<string | null> {
  const asked = await git.run(['rev-parse', '--path-format=absolute', '--git-common-dir']);
  if (asked.code === 0) return asked.stdout.toString('utf8').replace(/\n$/, '');
  for (let at = path; ; at = dirname(at)) {
    if (looksLikeGitDir(at)) return at;
    const inside = followGitFile(join(at, '.git'));
    if (inside !== null) return inside;
    if (dirname(at) === at) return null;
  }
}

const looksLikeGitDir = (path: string): boolean =>
  existsSync(join(path, 'HEAD')) && existsSync(join(path, 'objects')) && existsSync(join(path, 'refs'));

function followGitFile(path: string): string | null {
  if (!existsSync(path)) return null;
  if (isFolder(path)) return looksLikeGitDir(path) ? path : null;
  const gitDir = /^gitdir: (.*?)\n?$/s.exec(readFileSync(path, 'utf8'))?.[1];
  if (gitDir === undefined) return null;
  const absolute = resolve(dirname(path), gitDir);
  const common = join(absolute, 'commondir');
  return existsSync(common) ? resolve(absolute, readFileSync(common, 'utf8').trim()) : absolute;
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP'].includes(errno(error))) return false;
    throw error;
  }
}

/** Output of `git config --null`: `key\nvalue\0`, and `key\0` for a key without a value (which means true). */
function parseConfig(output: Buffer): Config {
  const config = new Map<string, string>();
  for (const record of output.toString('utf8').split('\0')) {
    if (record === '') continue;
    const end = record.indexOf('\n');
    config.set(end === -1 ? record : record.slice(0, end), end === -1 ? 'true' : record.slice(end + 1));
  }
  return config;
}
