/**
 * Which paths an earlier state of the work tree would have ignored: its .gitignore files are laid out in a quarantine and
 * git is asked there, with today's info/exclude and core.excludesFile.
 */
import { askIgnored } from './changed-names.js';
import { splitPaths, fsPath } from './path.js';
import { PrivateDir } from './private-dir.js';
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
    const dir = new PrivateDir(storage);
    dir.prepare();
    return new Set(await askIgnored(dir, quarantine, { paths, rules }));
  } finally {
    quarantine.discard();
  }
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
