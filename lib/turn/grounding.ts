/**
 * What a turn stands on, taken down before its first write so that a completion claim can be held against it:
 * HEAD, branch, index, an operation in progress, submodule commits, `git status`, and the instruction files in scope.
 * Everything here only reads (git's optional locks are off).
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { digest } from '../canonical.js';
import type { Baseline, EventOf } from '../event.js';
import type { Contents } from '../git/contents.js';
import { fsPath, splitPaths } from '../git/path.js';
import type { Storage } from '../git/storage.js';

export type Instructions = EventOf<'turn.started'>['instructions'];

/** The status a turn's end and a recovery report are compared with: one form, one set of flags. */
export const STATUS_ARGS = [
  'status',
  '--porcelain=v1',
  '-z',
  '--untracked-files=all',
  '--no-renames',
  '--ignore-submodules=none',
] as const;

export async function takeBaseline(storage: Storage, contents: Contents): Promise<Baseline> {
  const [head, branch, status, submodules] = await Promise.all([
    readHead(storage),
    readBranch(storage),
    storage.git.output(STATUS_ARGS),
    readSubmodules(storage),
  ]);
  const [kept] = await contents.keep([status]);
  if (kept === undefined) throw new RangeError('contents kept nothing of one entry');
  return {
    head,
    branch,
    index: indexDigest(storage),
    operation: readOperation(storage),
    submodules,
    status: kept,
  };
}

const INSTRUCTION_FILES = [
  'CLAUDE.md',
  'CLAUDE.local.md',
  'AGENTS.md',
  'AGENTS.override.md',
  'QWEN.md',
  'GEMINI.md',
  '.cursorrules',
  '.github/copilot-instructions.md',
];
const MOST_INSTRUCTIONS = 200;

/** Path and digest of every instruction file in the work tree, ignored ones left out; at most 200. */
export async function takeInstructions(storage: Storage): Promise<Instructions> {
  const patterns = [
    ...INSTRUCTION_FILES.map((name) => `:(glob)**/${name}`),
    ':(glob)**/.cursor/rules/**',
    ':(glob)**/.clinerules/**',
  ];
  const listed = await storage.git.output([
    'ls-files',
    '-z',
    '--cached',
    '--others',
    '--exclude-standard',
    '--deduplicate',
    '--',
    ...patterns,
  ]);
  const instructions: { path: string; digest: string }[] = [];
  for (const path of splitPaths(listed).sort().slice(0, MOST_INSTRUCTIONS)) {
    const bytes = readIfFile(fsPath(storage.layout.workTree, path));
    if (bytes !== undefined) instructions.push({ path, digest: digest(bytes) });
  }
  return instructions;
}

async function readHead(storage: Storage): Promise<string | null> {
  const result = await storage.git.run(['rev-parse', '--verify', '--quiet', 'HEAD^{commit}']);
  return result.code === 0 ? result.stdout.toString('utf8').trim() : null;
}

async function readBranch(storage: Storage): Promise<string | null> {
  const result = await storage.git.run(['symbolic-ref', '--quiet', 'HEAD']);
  return result.code === 0 ? result.stdout.toString('utf8').trim() : null;
}

function indexDigest(storage: Storage): string | null {
  const bytes = readIfFile(join(storage.layout.gitDir, 'index'));
  return bytes === undefined ? null : digest(bytes);
}

/** By the files git itself leaves while an operation is in progress (gitrepository-layout; wt-status.c looks at the same). */
function readOperation(storage: Storage): Baseline['operation'] {
  const has = (name: string): boolean => existsSync(join(storage.layout.gitDir, name));
  if (has('rebase-apply/applying')) return 'am';
  if (has('rebase-merge') || has('rebase-apply')) return 'rebase';
  if (has('MERGE_HEAD')) return 'merge';
  if (has('CHERRY_PICK_HEAD')) return 'cherry-pick';
  if (has('REVERT_HEAD')) return 'revert';
  if (has('BISECT_LOG')) return 'bisect';
  return null;
}

async function readSubmodules(storage: Storage): Promise<Baseline['submodules']> {
  const { workTree } = storage.layout;
  if (!existsSync(join(workTree, '.gitmodules'))) return [];
  const staged = await storage.git.output(['ls-files', '-s', '-z']);
  const links = splitPaths(staged).flatMap((entry) => /^160000 [0-9a-f]+ \d\t(.+)$/s.exec(entry)?.[1] ?? []);
  return Promise.all(
    links.map(async (path) => {
      const folder = join(workTree, path);
      if (!existsSync(join(folder, '.git'))) return { path, commit: null };
      const result = await storage.git.run(['rev-parse', '--verify', '--quiet', 'HEAD'], { cwd: folder });
      return { path, commit: result.code === 0 ? result.stdout.toString('utf8').trim() : null };
    }),
  );
}

function readIfFile(path: string | Buffer): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    if (
      error instanceof Error &&
      'code' in error &&
      ['ENOENT', 'EISDIR', 'ENOTDIR', 'EACCES'].includes(String(error.code))
    )
      return undefined;
    throw error;
  }
}
