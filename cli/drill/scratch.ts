/**
 * The scratch repository of one round: nineteen files with a symbol to rename, instruction files in scope, and the
 * disorder that a user's work tree has before an agent comes: an edit not staged, a staged file, one untracked, one
 * ignored, and local edits in one of the nineteen.
 *
 * Contents are of the kinds that tools get wrong: CRLF, no newline at the end, a byte order mark, bytes that are not
 * UTF-8, an exec bit, names with spaces, quotes and non-ASCII letters.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Chance } from './chance.js';
import { readTree, type Tree } from './tree.js';

export const OLD_SYMBOL = 'parseConfig';

/** The nineteen files that use the symbol. */
export const SYMBOL_FILES = [
  'src/config.ts',
  'src/index.ts',
  'src/server.ts',
  'src/io/read.ts',
  'src/io/write.ts',
  'src/io/stream file.ts',
  'src/io/Straße.ts',
  "src/it's.ts",
  'src/windows.ts',
  'src/no-newline.ts',
  'src/marked.ts',
  'src/latin1.ts',
  'packages/core/main.ts',
  'packages/core/main.test.ts',
  'packages/core/deep/er/still.ts',
  'packages/tools/run.sh',
  'docs/config.md',
  'docs/guide.md',
  'CHANGELOG.md',
] as const;

export const LEGACY_FILE = 'src/legacy.ts';
/** A tracked file that only the shell call writes. */
export const FORMATTED_FILE = 'src/formatted.ts';
export const EXECUTABLE_FILE = 'packages/tools/run.sh';
/** Renamed, made executable and linked to by one transaction. */
export const MIXED = {
  from: 'src/old name.ts',
  to: 'src/moved/new name.ts',
  script: 'docs/setup.sh',
  link: 'docs/latest.md',
  target: 'config.md',
} as const;
/** The user's own, not tracked: somebody changes it after the agent has read it, and before it writes. */
export const CONTESTED = {
  path: 'notes/plan.txt',
  base: 'one\ntwo\nthree\n',
  theirs: 'one\ntwo, by somebody else\nthree\n',
  mine: 'one\nTWO\nthree\n',
} as const;
/** Tracked, and never touched by the turn: drift is planted here. */
export const BYSTANDERS = ['LICENSE.txt', 'src/keep.ts', 'packages/core/table.csv'] as const;

const INSTRUCTIONS: Readonly<Record<string, string>> = {
  'CLAUDE.md': 'Rename symbols in every file, documents included.\n',
  'AGENTS.md': 'Never edit LICENSE.txt.\n',
  'src/AGENTS.md': 'Keep line endings as they are.\n',
  'packages/core/CLAUDE.md': 'Tests stand beside the code.\n',
};

export const INSTRUCTION_FILES: readonly string[] = Object.keys(INSTRUCTIONS);

export type ObjectFormat = 'sha1' | 'sha256';

export interface ScratchRepository {
  /** Everything of the round is below; removed when it ends. */
  readonly top: string;
  /** The work tree. */
  readonly dir: string;
  readonly format: ObjectFormat;
  /** Full environment of every process of the round: own HOME, no GIT_* variable. */
  readonly env: Readonly<Record<string, string>>;
}

/** `head`: the work tree as git calls it clean. */
export function makeScratch(
  chance: Chance,
  format: ObjectFormat,
): { repository: ScratchRepository; head: Tree } {
  const repository = emptyScratch(format);
  const { dir } = repository;
  writeTracked(repository, chance);
  git(repository, 'add', '-A');
  git(repository, 'commit', '-q', '-m', 'The work tree before the drill');
  const head = readTree(dir);
  leaveUserEdits(repository);
  return { repository, head };
}

/** A repository without a commit, below a folder of its own. */
export function emptyScratch(format: ObjectFormat): ScratchRepository {
  const top = mkdtempSync(join(tmpdir(), 'durable drill '));
  const dir = join(top, 'work');
  mkdirSync(dir);
  const repository = { top, dir, format, env: environment(top) };
  git(repository, 'init', '-q', `--object-format=${format}`);
  return repository;
}

/** Runs git, which must succeed. */
export function git(repository: ScratchRepository, ...args: string[]): Buffer {
  const ran = spawnSync('git', args, { cwd: repository.dir, env: repository.env, maxBuffer: 1 << 28 });
  if (ran.error !== undefined) throw ran.error;
  if (ran.status !== 0) throw new Error(`git ${args.join(' ')}: ${ran.stderr.toString('utf8')}`);
  return ran.stdout;
}

/** What `git status` shows, each untracked file by itself. */
export function dirtyPaths(repository: ScratchRepository): Set<string> {
  const status = git(
    repository,
    '--no-optional-locks',
    'status',
    '--porcelain=v1',
    '-z',
    '--untracked-files=all',
    '--no-renames',
  );
  const entries = status
    .toString('utf8')
    .split('\0')
    .filter((entry) => entry !== '');
  return new Set(entries.map((entry) => entry.slice(3)));
}

export function put(repository: ScratchRepository, path: string, content: string | Buffer): void {
  const file = join(repository.dir, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

function environment(top: string): Record<string, string> {
  const home = join(top, 'home');
  mkdirSync(home);
  writeFileSync(
    join(home, '.gitconfig'),
    '[user]\n\tname = Drill\n\temail = drill@example.invalid\n[init]\n\tdefaultBranch = main\n',
  );
  const env: Record<string, string> = { HOME: home, XDG_CONFIG_HOME: join(home, '.config'), LC_ALL: 'C' };
  for (const name of ['PATH', 'TMPDIR', 'SystemRoot']) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  return env;
}

function writeTracked(repository: ScratchRepository, chance: Chance): void {
  for (const path of SYMBOL_FILES) put(repository, path, content(path, chance.split(path)));
  chmodSync(join(repository.dir, EXECUTABLE_FILE), 0o755);
  put(repository, LEGACY_FILE, 'export const legacy = true;\n'.repeat(40));
  put(repository, FORMATTED_FILE, 'export   const  formatted=false\n'.repeat(20));
  put(repository, MIXED.from, 'export const moved = 1;\n'.repeat(10));
  put(repository, MIXED.script, '#!/bin/sh\nexit 0\n');
  for (const path of BYSTANDERS) put(repository, path, `${path}\n`.repeat(30));
  for (const [path, text] of Object.entries(INSTRUCTIONS)) put(repository, path, text);
  put(repository, '.gitignore', 'build/\n');
  // HEAD holds src/windows.ts with LF, the work tree with CRLF: clean for git, and a repair must not convert it.
  put(repository, '.gitattributes', '* text=auto\n');
}

/** What the user had not committed: a repair must give back exactly this. */
function leaveUserEdits(repository: ScratchRepository): void {
  put(repository, 'src/server.ts', `// a note of the user\nconsole.log(${OLD_SYMBOL});\n`.repeat(30));
  put(repository, 'notes/todo.md', 'staged, not committed\n');
  git(repository, 'add', 'notes/todo.md');
  put(repository, 'packages/core/table.csv', 'edited, not staged\n');
  put(repository, 'scratch pad.txt', 'untracked\n');
  put(repository, CONTESTED.path, CONTESTED.base);
  put(repository, 'build/out.log', 'ignored\n');
}

function content(path: string, chance: Chance): Buffer {
  const lines: string[] = [];
  const count = 30 + chance.below(60);
  for (let line = 0; line < count; line += 1) {
    const use = chance.often(1, 3) ? `${OLD_SYMBOL}(${String(chance.below(1000))})` : `keep${String(line)}()`;
    lines.push(`  ${use}; // ${path} ${String(line)}`);
  }
  lines[0] = `import { ${OLD_SYMBOL} } from './config';`;
  lines[count - 1] = `${OLD_SYMBOL}();`;
  if (path === 'src/windows.ts') return Buffer.from(`${lines.join('\r\n')}\r\n`);
  if (path === 'src/no-newline.ts') return Buffer.from(lines.join('\n'));
  if (path === 'src/marked.ts') return Buffer.from(`\uFEFF${lines.join('\n')}\n`);
  if (path === 'src/latin1.ts')
    return Buffer.from(`// caf\u00e9 \u00ff\u00fe\n${lines.join('\n')}\n`, 'latin1');
  return Buffer.from(`${lines.join('\n')}\n`);
}
