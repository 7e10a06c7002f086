/**
 * Which paths an earlier state of the work tree would have ignored: its .gitignore files are laid out in a quarantine and
 * git is asked there, with today's info/exclude and core.excludesFile.
 */
import { splitPaths, encodePath, fsPath } from './path.js';
import { gitFailure, PrivateDir } from './private-dir.js';
import { Quarantine } from './quarantine.js';
import type { Storage } from './storage.js';

/** `tree` is a checkpoint's worktree tree. Errors: 'git-failed', 'object-missing' is not one: such rules are left out. */
export async function ignoredUnder(
  storage: Storage,
  tree: string,
  paths: readonly string[],
): Promise<Set<string>> {
  if (paths.length === 0) return new Set();
  const quarantine = Quarantine.open(storage);
  try {
    const rules = quarantine.path('rules');
    quarantine.scratch.makeDir('quarantine.scratch', rules);
    for (const { path, oid } of await ruleFiles(storage, tree)) {
      const bytes = (await storage.objects.read(oid))?.body;
      if (bytes === undefined) continue;
      const folder = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '';
      if (folder !== '') quarantine.scratch.makeDir('quarantine.scratch', fsPath(rules, folder));
      quarantine.scratch.create('quarantine.scratch', fsPath(rules, path), bytes);
    }
    return new Set(await ask(storage, quarantine, { rules, paths }));
  } finally {
    quarantine.discard();
  }
}

async function ask(
  storage: Storage,
  quarantine: Quarantine,
  { rules, paths }: { rules: string; paths: readonly string[] },
): Promise<string[]> {
  const dir = new PrivateDir(storage);
  dir.prepare();
  const args = ['check-ignore', '--no-index', '-z', '--stdin'];
  const input = Buffer.concat(paths.map((path) => Buffer.concat([encodePath(path), Buffer.of(0)])));
  const result = await dir.run(quarantine, args, { input, cwd: rules, env: { GIT_WORK_TREE: rules } });
  // 1: none of them is.
  if (result.code === 0 || result.code === 1) return splitPaths(result.stdout);
  throw gitFailure(quarantine, args, result);
}

/** A link in a .gitignore's place is no rule file for git either. */
async function ruleFiles(storage: Storage, tree: string): Promise<{ path: string; oid: string }[]> {
  const listing = await storage.git.output(['ls-tree', '-r', '-z', '--full-tree', tree]);
  const found: { path: string; oid: string }[] = [];
  for (const line of splitPaths(listing)) {
    const tab = line.indexOf('\t');
    const path = line.slice(tab + 1);
    const [mode = '', , oid = ''] = line.slice(0, tab).split(' ');
    if (mode.startsWith('100') && /(?:^|\/)\.gitignore$/.test(path)) found.push({ path, oid });
  }
  return found;
}
