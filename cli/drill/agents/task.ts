/**
 * What the real agent is given to do, and where it is killed.
 *
 *     call 0          asks for approval of a deployment, with exact arguments
 *     calls 1 to 12   six times: reads a file, and renames the symbol in it by the agent's own tool
 *     call 13         `sh tools/rename.sh`: renames in the other files, one after another
 *     call 14         `sh tools/test.sh`: whether the old name is gone everywhere
 *
 * The scripts note what they do beside the work tree, and stay where they are when they are told to by `../hold`: so a kill inside of
 * them falls where it was drawn, and what survives of them changes nothing while the questions are asked.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Chance } from '../chance.js';
import { dirtyPaths, emptyScratch, git, put, type ScratchRepository } from '../scratch.js';
import { readTree, type Tree } from '../tree.js';
import type { ModelStep } from './script.js';

export const FILES = [
  ...['src/args.ts', 'src/config.ts', 'src/index.ts', 'src/io/read.ts', 'src/io/write file.ts'],
  ...['src/io/Straße.ts', 'src/main.ts', 'src/server.ts', 'src/table.ts', 'docs/guide.md'],
  ...['docs/config.md', 'CHANGELOG.md'],
] as const;

const BY_TOOL = FILES.length / 2;
const [OLD, NEW] = ['parseConfig', 'readSettings'];

export const DEPLOYMENT = { tool: 'deploy', args: '{"to": "production", "what":["web","worker"],"n":1.50}' };

/** By its place: the login shell of an agent may have another PATH. */
const ASK = `../bin/git-durable ask --tool ${DEPLOYMENT.tool} --args '${DEPLOYMENT.args}'`;

export interface Kill {
  /** Number of the call. */
  readonly call: number;
  /** How much of the time of the call before passes until the kill; for calls of the agent's own tools. */
  readonly part: number;
  /** Content of `../hold`: the number of files after which the renaming stays, or `test`, or `never`. */
  readonly hold: string;
}

export interface Task {
  readonly repository: ScratchRepository;
  readonly steps: readonly ModelStep[];
  readonly kill: Kill;
  /** The work tree before the agent comes, and the paths that git calls changed then. */
  readonly before: Tree;
  readonly dirtyBefore: ReadonlySet<string>;
}

/** `prepare` runs in the repository with its commit, before the user's edits. */
export function makeTask(chance: Chance, prepare: (repository: ScratchRepository) => void): Task {
  const repository = emptyScratch('sha1');
  const files = chance.split('files').shuffled(FILES);
  for (const path of FILES) put(repository, path, content(path));
  put(repository, 'tools/rename.sh', RENAME);
  put(repository, 'tools/test.sh', TEST);
  put(repository, 'notes.md', 'a note\n');
  git(repository, 'add', '-A');
  git(repository, 'commit', '-q', '-m', 'The work tree before the drill');
  prepare(repository);
  put(repository, 'notes.md', 'a note\nof the user, not committed\n');
  put(repository, 'scratch pad.txt', 'not tracked\n');
  const kill = drawKill(chance.split('kill'));
  for (const [name, text] of Object.entries({ hold: kill.hold, renamed: '', tested: '' }))
    writeFileSync(join(repository.top, name), text);
  const before = readTree(repository.dir);
  return { repository, steps: stepsFor(files), kill, before, dirtyBefore: dirtyPaths(repository) };
}

/** One line of each file has the name. */
const use = (path: string, name: string): string =>
  `export const ${path.replace(/\W/g, '_')} = ${name}(${String(path.length)});`;

const content = (path: string): string =>
  [...Array.from({ length: 40 }, (_, line) => `// line ${String(line)} of ${path}`), use(path, OLD), ''].join(
    '\n',
  );

function stepsFor(files: readonly string[]): ModelStep[] {
  const edits = files
    .slice(0, BY_TOOL)
    .flatMap((path): ModelStep[] => [
      { read: path },
      { edit: path, from: use(path, OLD), to: use(path, NEW) },
    ]);
  return [{ shell: ASK }, ...edits, { shell: 'sh tools/rename.sh' }, { shell: 'sh tools/test.sh' }];
}

const RENAMING = 1 + 2 * BY_TOOL;

/** Half of the kills fall into a call of the agent's own tools, the others into a shell command. */
function drawKill(chance: Chance): Kill {
  if (chance.often(1, 2))
    return { call: 1 + chance.below(2 * BY_TOOL), part: chance.below(125) / 100, hold: 'never' };
  if (chance.often(1, 3)) return { call: RENAMING + 1, part: 0, hold: 'test' };
  return { call: RENAMING, part: 0, hold: String(1 + chance.below(BY_TOOL)) };
}

/** What of the scripts' notes tells that they have come to where they stay. */
export function isHeld(kill: Kill, notes: { readonly renamed: string; readonly tested: string }): boolean {
  if (kill.hold === 'test') return notes.tested !== '';
  return notes.renamed.split('\n').length - 1 === Number(kill.hold);
}

export function describe(step: ModelStep | undefined): string {
  if (step === undefined || 'silent' in step || 'say' in step) return 'nothing';
  if ('shell' in step) return step.shell;
  return 'read' in step ? `read ${step.read}` : `edit ${'edit' in step ? step.edit : step.write}`;
}

const STAY = 'exec sleep 600';

const RENAME = `#!/bin/sh
# Renames ${OLD} to ${NEW} in every file that has it, one after another.
find src docs CHANGELOG.md -type f | sort | while read -r file; do
  grep -q ${OLD} "$file" || continue
  sed 's/${OLD}/${NEW}/g' "$file" > ../renaming && cat ../renaming > "$file"
  echo "$file" >> ../renamed
  if [ "$(wc -l < ../renamed | tr -d ' ')" = "$(cat ../hold)" ]; then ${STAY}; fi
done
`;

const TEST = `#!/bin/sh
# Whether ${OLD} is gone everywhere.
echo begun >> ../tested
if [ "$(cat ../hold)" = test ]; then ${STAY}; fi
! grep -rn ${OLD} src docs CHANGELOG.md
`;
