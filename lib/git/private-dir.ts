/**
 * The private git dir of checkpoints, `<git dir>/durable/snapshot`: HEAD, configuration, attributes and index of our own, so
 * that a look at the work tree reads none of the user's stat data, flags or filters and writes none of the user's files.
 *
 * Calling order: `prepare` (makes what is missing, follows the user's configuration) · `run` with a copy of the index in a
 * quarantine · `adopt` makes that copy the next checkpoint's start. `reset` throws the index away: the next checkpoint
 * reads every file again. All of it is a cache; nothing here is evidence.
 *
 * - `info/attributes` stands above every other attributes file (gitattributes(5)) and turns every conversion off.
 * - `config` follows the user's repository in what the file system is like and in what is ignored, and fixes the rest
 *   against the user's own ~/.gitconfig. core.protectNTFS=false: with git's default one file named `git~1` fails a whole
 *   snapshot. The user's settings are those of the moment the repository was opened.
 * - HEAD names a commit in `objects/` whose tree is an earlier checkpoint: without one `git status` would list every
 *   path as added. It may lag behind.
 * - The index is split (git-update-index(1), "Split index"): writing 10 changed entries of 50,000 takes a third of the time.
 * - Untracked files are found by git's untracked cache, which trusts a folder's time of change: a file system that does not
 *   keep it (git-update-index(1), --test-untracked-cache) would hide new files.
 * - `index` carries an old time of change on purpose, see lib/git/private-index.ts. `state-<trailer of index>` lies beside it.
 */
import { existsSync, readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DurableError } from '../errors.js';
import { freshId } from '../host.js';
import { Disk, diskError, errno } from './disk.js';
import type { GitOptions, GitResult } from './process.js';
import { quoted, storeOf, type Quarantine } from './quarantine.js';
import type { Storage } from './storage.js';

const FOLDERS = ['refs', 'objects', 'info'];

export class PrivateDir {
  readonly dir: string;
  readonly index: string;
  readonly #storage: Storage;
  readonly #scratch: Disk;

  constructor(storage: Storage) {
    this.#storage = storage;
    this.#scratch = new Disk(storage.host.faults, false);
    this.dir = join(storage.layout.local, 'snapshot');
    this.index = join(this.dir, 'index');
  }

  /** Makes the private git dir, or brings it up to date. Errors: the disk's. */
  prepare(): void {
    for (const folder of FOLDERS)
      if (!existsSync(join(this.dir, folder)))
        this.#scratch.makeDir('snapshot.setup', join(this.dir, folder));
    for (const [name, bytes] of this.#files()) this.#place(name, bytes);
    if (!existsSync(join(this.dir, 'HEAD'))) this.#place('HEAD', 'ref: refs/heads/none\n');
  }

  /** True when `prepare` would write nothing. */
  isPrepared(): boolean {
    if (![...FOLDERS, 'HEAD'].every((name) => existsSync(join(this.dir, name)))) return false;
    return this.#files().every(([name, bytes]) => this.#says(name, bytes));
  }

  #files(): readonly (readonly [name: string, bytes: Buffer])[] {
    const exclude = readOr(join(this.#storage.layout.commonDir, 'info', 'exclude'));
    return [
      ['config', Buffer.from(configText(this.#storage))],
      ['info/attributes', Buffer.from('* -text -eol -filter -ident -working-tree-encoding\n')],
      ['info/exclude', Buffer.concat([exclude, Buffer.from(ownGitDir(this.#storage))])],
    ];
  }

  /** Runs git here, reading and writing through the quarantine. Errors: 'git-missing'. */
  run(quarantine: Quarantine, args: readonly string[], options: GitOptions = {}): Promise<GitResult> {
    const store = quoted(storeOf(this.#storage));
    const env = {
      GIT_DIR: this.dir,
      GIT_WORK_TREE: this.#storage.layout.workTree,
      GIT_INDEX_FILE: quarantine.path('index'),
      GIT_OBJECT_DIRECTORY: quarantine.objects,
      GIT_ALTERNATE_OBJECT_DIRECTORIES: `${store}:${quoted(join(this.dir, 'objects'))}`,
      ...options.env,
    };
    return this.#storage.git.run(args, { ...options, env });
  }

  /** The same for a git that must succeed. Errors: 'out-of-space', 'git-failed'. */
  async output(quarantine: Quarantine, args: readonly string[], options: GitOptions = {}): Promise<Buffer> {
    return (await this.whole(quarantine, args, options)).stdout;
  }

  /** As `output`, with what git said beside. */
  async whole(quarantine: Quarantine, args: readonly string[], options: GitOptions = {}): Promise<GitResult> {
    const result = await this.run(quarantine, args, options);
    if (result.code === 0) return result;
    throw gitFailure(quarantine, args, result);
  }

  /** Makes a commit of the tree the private HEAD. */
  anchor(quarantine: Quarantine, tree: string): void {
    const body = `tree ${tree}\nauthor git-durable <> 0 +0000\ncommitter git-durable <> 0 +0000\n\nprivate\n`;
    const { oid } = quarantine.storeIn(join(this.dir, 'objects'), 'commit', Buffer.from(body));
    this.#place('HEAD', `${oid}\n`);
  }

  /** Puts the quarantine's index, and what is known about it, in the place of the old one. */
  adopt(quarantine: Quarantine, state: string): void {
    const { disk } = this.#storage;
    const index = quarantine.path('index');
    const old = this.#states();
    const bytes = readFileSync(index);
    const name = stateName(bytes, this.#storage);
    const before = readOr(this.index);
    // What only git has written could survive a power cut torn, and git compares no checksum of an index that it reads.
    for (const shared of this.#names()) {
      const isNew = isBaseOf(shared, bytes) && !isBaseOf(shared, before);
      if (isNew) disk.syncFile('snapshot.index', join(this.dir, shared));
    }
    disk.syncFile('snapshot.index', index);
    this.#place(name, state);
    disk.rename('snapshot.index', index, this.index);
    for (const one of old) if (one !== name) disk.unlink('snapshot.index', join(this.dir, one));
  }

  /**
   * Removes a quarantine and the base of its split index, unless that became the index. Other bases that are not used any
   * more git removes itself, an hour later and with the next one it writes (a process may still be at work on one).
   */
  release(quarantine: Quarantine): void {
    const mine = readOr(quarantine.path('index'));
    const kept = readOr(this.index);
    for (const name of this.#names())
      if (isBaseOf(name, mine) && !isBaseOf(name, kept))
        this.#storage.disk.unlink('snapshot.reset', join(this.dir, name));
    quarantine.discard();
  }

  /** What is known about this index, as `adopt` was told; null when it is not known. */
  stateOf(index: Buffer): string | null {
    const path = join(this.dir, stateName(index, this.#storage));
    return existsSync(path) ? readOr(path).toString('utf8') : null;
  }

  /** Starts from what another one knows: a copy of its index with its time of change, and the files that belong to it. */
  copyFrom(other: PrivateDir): void {
    this.#scratch.makeDir('snapshot.setup', this.dir);
    for (const name of other.#names()) {
      if (name !== 'index' && !/^(?:state-|sharedindex\.)/.test(name)) continue;
      const from = join(other.dir, name);
      const to = join(this.dir, name);
      const { mtimeMs } = statSync(from);
      this.#scratch.create('quarantine.scratch', to, readOr(from));
      this.#scratch.setModified('quarantine.scratch', to, Math.floor(mtimeMs / 1000));
    }
  }

  /** Throws the index away. */
  reset(): void {
    for (const name of this.#names()) {
      const isOurs = name === 'index' || name === 'HEAD' || /^(?:state-|sharedindex)/.test(name);
      if (isOurs) this.#storage.disk.unlink('snapshot.reset', join(this.dir, name));
    }
  }

  #states(): string[] {
    return this.#names().filter((name) => name.startsWith('state-'));
  }

  #names(): string[] {
    try {
      return readdirSync(this.dir);
    } catch (error) {
      if (errno(error) === 'ENOENT') return [];
      throw diskError(error, this.dir);
    }
  }

  #says(name: string, bytes: Buffer): boolean {
    const path = join(this.dir, name);
    return existsSync(path) && readOr(path).equals(bytes);
  }

  /** Writes a small file when it does not say that already; not flushed, since what a power cut tore says something else. */
  #place(name: string, content: string | Buffer): void {
    const { host } = this.#storage;
    const path = join(this.dir, name);
    const bytes = Buffer.from(content);
    if (this.#says(name, bytes)) return;
    const temp = `${path}.${freshId(host, 10)}`;
    this.#scratch.create('snapshot.setup', temp, bytes);
    this.#scratch.rename('snapshot.setup', temp, path);
  }
}

/** True for the file that holds the base of a split index, named by its checksum, which the index repeats. */
function isBaseOf(name: string, index: Buffer): boolean {
  return name.startsWith('sharedindex.') && index.includes(Buffer.from(name.slice(12), 'hex'));
}

/** What a git that failed in a quarantine means. Its exit code is the same for all; its messages are untranslated. */
export function gitFailure(quarantine: Quarantine, args: readonly string[], result: GitResult): DurableError {
  const detail = result.stderr.trim();
  const full = new DurableError('out-of-space', { path: quarantine.dir });
  if (/No space left on device|Disk quota exceeded|Out of diskspace/.test(detail) || isFull(quarantine.dir))
    return full;
  return new DurableError('git-failed', { command: `git ${args.join(' ')}`, code: result.code, detail });
}

function isFull(dir: string): boolean {
  const { bavail, bsize } = statfsSync(dir);
  return bavail * bsize < NEXT_TO_NOTHING;
}

/** Bytes: git removes its own temporary files before it fails, so that a full disk has a little room again. */
const NEXT_TO_NOTHING = 64 * 1024;

/** The index's own checksum, which git writes last into it. */
function stateName(index: Buffer, storage: Storage): string {
  const size = storage.layout.objectFormat === 'sha256' ? 32 : 20;
  return `state-${index.subarray(-size).toString('hex')}`;
}

const MIRRORED = [
  'sharedrepository',
  'filemode',
  'symlinks',
  'ignorecase',
  'precomposeunicode',
  'excludesfile',
];

function configText(storage: Storage): string {
  const { config, layout } = storage;
  const isSha256 = layout.objectFormat === 'sha256';
  const mirrored = MIRRORED.flatMap((key) => {
    const value = config.get(`core.${key}`);
    return value === undefined ? [] : [`\t${key} = ${configValue(value)}\n`];
  });
  return [
    `[core]\n\trepositoryformatversion = ${isSha256 ? '1' : '0'}\n\tbare = false\n`,
    ...mirrored,
    '\tautocrlf = false\n\tsafecrlf = false\n\tprotectNTFS = false\n\tprotectHFS = false\n',
    '\ttrustctime = true\n\tcheckStat = default\n\tuntrackedCache = true\n\tsplitIndex = true\n\tfsmonitor = false\n',
    '\tlooseCompression = 1\n\tcompression = 1\n\tpreloadIndex = true\n\tquotePath = false\n\tlogAllRefUpdates = false\n',
    // What has to last is flushed by us, once and by name (quarantine.ts); a git before 2.36 flushes packs as well.
    '\tfsync = none\n',
    isSha256 ? '[extensions]\n\tobjectFormat = sha256\n' : '',
    '[index]\n\tversion = 2\n\tskipHash = false\n\tsparse = false\n',
    '[splitIndex]\n\tsharedIndexExpire = 1.hour.ago\n',
    '[status]\n\tshowUntrackedFiles = all\n\trelativePaths = false\n',
    '[pack]\n\tpackSizeLimit = 0\n\twriteBitmaps = false\n\tcompression = 1\n\tindexVersion = 2\n',
    '[fastimport]\n\tunpackLimit = 0\n[advice]\n\taddEmbeddedRepo = false\n',
  ].join('');
}

function configValue(value: string): string {
  return `"${value.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"`;
}

/** A git dir inside the work tree under another name than .git would be taken for ordinary files. */
function ownGitDir(storage: Storage): string {
  const { workTree, gitDir, commonDir } = storage.layout;
  return [gitDir, commonDir]
    .filter((dir) => dir.startsWith(`${workTree}/`) && !dir.startsWith(`${workTree}/.git`))
    .map((dir) => `/${dir.slice(workTree.length + 1).replace(/[\\*?[ ]/g, '\\$&')}\n`)
    .join('');
}

function readOr(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if (['ENOENT', 'EISDIR', 'EACCES', 'ENOTDIR'].includes(errno(error))) return Buffer.alloc(0);
    throw diskError(error, path);
  }
}
