/**
 * After a repair: the tree must be, byte for byte, what the independent record says, and the repository sound.
 *
 * Roll back: every touched path as the turn found it. Roll forward: every touched path as the turn intended it, an effect
 * that nobody can tell beforehand left as it is. Either way a path that somebody else has changed keeps their bytes,
 * and nothing else moves: not the index, not HEAD, no ref of the user's.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Answered, Product, Repaired } from './answers.js';
import { verdictOf, type Story } from './expectation.js';
import type { Complaints } from './judge.js';
import { git, type ScratchRepository } from './scratch.js';
import {
  blobId,
  difference,
  foldersAbove,
  readFolders,
  readTree,
  sha256,
  type Leaf,
  type Tree,
} from './tree.js';

export type Direction = 'roll-back' | 'roll-forward';

/** What a repair must leave. `known`: the acts that the product knows of. */
export function repairedTree(
  direction: Direction,
  now: Tree,
  turn: { readonly stories: readonly Story[]; readonly known: ReadonlySet<number> },
): Tree {
  const tree = new Map(now);
  for (const story of turn.stories) {
    const verdict = verdictOf(story, turn.known);
    if (verdict === undefined || verdict.state === 'foreign') continue;
    const forward = verdict.target === 'unknown' ? story.now : verdict.target;
    const target = direction === 'roll-back' ? story.before : forward;
    if (target === undefined) tree.delete(story.path);
    else tree.set(story.path, target);
  }
  return tree;
}

/** What no repair may change. */
export interface UserState {
  readonly index: string;
  readonly head: string;
  readonly refs: string;
}

export function readUserState(repository: ScratchRepository): UserState {
  const { dir } = repository;
  const refs = git(repository, 'for-each-ref', '--format=%(refname) %(objectname)').toString('utf8');
  return {
    index: sha256(readFileSync(join(dir, '.git', 'index'))),
    head: readFileSync(join(dir, '.git', 'HEAD'), 'utf8'),
    refs: refs
      .split('\n')
      .filter((line) => !line.startsWith('refs/durable'))
      .join('\n'),
  };
}

export interface Repair {
  readonly direction: Direction;
  readonly product: Product;
  readonly repository: ScratchRepository;
  readonly turn: string;
  readonly before: Tree;
  readonly wanted: Tree;
  /** Folders as the turn found them, and as the repair does. */
  readonly folders: { readonly before: readonly string[]; readonly now: readonly string[] };
  /** Paths that somebody else has changed. */
  readonly foreign: readonly string[];
  readonly user: UserState;
}

/** Repairs, and says what is wrong with what that left. */
export async function repairAndJudge(repair: Repair): Promise<Complaints> {
  const { direction, product, repository } = repair;
  const answer = await product.repair(direction);
  const after = readTree(repository.dir);
  return [
    ...difference(after, repair.wanted).map(
      (path) => `after ${direction} '${path}' is ${describe(after.get(path), repair.wanted.get(path))}`,
    ),
    ...wrongFolders(repair),
    ...wrongWord(repair, answer, after),
    ...wrongCheckpoint(repair, answer.document.checkpoint),
    ...userChanges(repair),
    ...(await unsound(product, repository)),
  ];
}

function describe(found: Leaf | undefined, wanted: Leaf | undefined): string {
  if (found === undefined) return 'missing';
  if (wanted === undefined) return 'there, and should not be';
  return found.sha256 === wanted.sha256
    ? `of mode ${found.mode}, not ${wanted.mode}`
    : 'of other bytes than it should be';
}

/** Rolled back, no folder stays that the turn had made and nobody else uses. */
function wrongFolders({ direction, repository, folders, wanted }: Repair): string[] {
  const kept = direction === 'roll-back' ? folders.before : folders.now;
  const right = new Set([...kept, ...foldersAbove(wanted.keys())]);
  const found = readFolders(repository.dir);
  const extra = found
    .filter((folder) => !right.has(folder))
    .map((folder) => `${direction} leaves the folder '${folder}'`);
  const missing = [...right].filter((folder) => !found.includes(folder));
  return [...extra, ...missing.map((folder) => `${direction} removed the folder '${folder}'`)];
}

/** The repair's own account: exactly the paths it changed, as restored or removed. */
function wrongWord(repair: Repair, answer: Answered<Repaired>, after: Tree): string[] {
  const { code, document, stderr } = answer;
  const complaints: string[] = [];
  if (code !== 0) complaints.push(`${repair.direction} ended with ${String(code)}`);
  if (document.turn !== repair.turn) complaints.push(`${repair.direction} names turn ${document.turn}`);
  if (document.action !== repair.direction)
    complaints.push(`${repair.direction} calls itself ${document.action}`);
  const changed = difference(repair.before, after);
  const removed = changed.filter((path) => !after.has(path));
  const restored = changed.filter((path) => after.has(path));
  if ([...document.removed].sort().join() !== removed.join())
    complaints.push(
      `${repair.direction} removed [${removed.join(', ')}] and says [${document.removed.join(', ')}]`,
    );
  if ([...document.restored].sort().join() !== restored.join())
    complaints.push(
      `${repair.direction} restored [${restored.join(', ')}] and says [${document.restored.join(', ')}]`,
    );
  for (const path of repair.foreign)
    if (!stderr.includes(path)) complaints.push(`${repair.direction} does not say that it kept '${path}'`);
  return complaints;
}

/** "The checkpoint being the state just before it": each path that the repair changed is in it as it was. */
function wrongCheckpoint(repair: Repair, checkpoint: string): string[] {
  const { repository, direction } = repair;
  const listed = git(repository, 'ls-tree', '-r', '-z', `${checkpoint}:worktree`).toString('utf8');
  const held = new Map<string, string>();
  for (const entry of listed.split('\0')) {
    const match = /^(\d+) blob ([0-9a-f]+)\t(.*)$/s.exec(entry);
    if (match !== null) held.set(match[3] ?? '', `${match[1] ?? ''} ${match[2] ?? ''}`);
  }
  return difference(repair.before, repair.wanted)
    .filter((path) => held.get(path) !== entryOf(repository, repair.before.get(path)))
    .map((path) => `the checkpoint before ${direction} does not hold '${path}' as it was`);
}

function entryOf(repository: ScratchRepository, one: Leaf | undefined): string | undefined {
  return one === undefined ? undefined : `${one.mode} ${blobId(repository.format, one.bytes)}`;
}

function userChanges(repair: Repair): string[] {
  const now = readUserState(repair.repository);
  const names = ['index', 'head', 'refs'] as const;
  return names
    .filter((name) => now[name] !== repair.user[name])
    .map((name) => `${repair.direction} changed the user's ${name}`);
}

/** `git fsck` by git itself, the chain by the product, and nothing left to recover. */
async function unsound(product: Product, repository: ScratchRepository): Promise<string[]> {
  const complaints: string[] = [];
  const fsck = spawnSync('git', ['fsck', '--strict', '--no-dangling', '--no-progress'], {
    cwd: repository.dir,
    env: repository.env,
    encoding: 'utf8',
  });
  if (fsck.status !== 0 || fsck.stdout + fsck.stderr !== '')
    complaints.push(`git fsck: ${fsck.stdout}${fsck.stderr}`);
  const verified = await product.verify();
  if (verified.code !== 0 || !verified.document.ok)
    complaints.push(`verify: ${JSON.stringify(verified.document.findings)}`);
  const again = await product.recover();
  if (again.code !== 0 || again.document.interrupted.length > 0)
    complaints.push(
      `recover still ends with ${String(again.code)} and shows ${String(again.document.interrupted.length)} interrupted turns`,
    );
  return complaints;
}
