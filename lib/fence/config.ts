/** Settings of ours in the repository's own config: git writes them, each in one rename under its own lock. */
import type { Storage } from '../git/storage.js';

/** Errors: 'git-failed'. */
export async function setConfig({ git }: Storage, words: readonly string[]): Promise<void> {
  await git.output(['config', '--local', ...words], { site: 'fence.config' });
}

/** Nothing where it is not set. */
export async function unsetConfig({ git }: Storage, words: readonly string[]): Promise<void> {
  await git.run(['config', '--local', ...words], { site: 'fence.config' });
}

/** Names of settings of ours that are still there. */
export async function configLeft({ git }: Storage): Promise<string[]> {
  const ours = '^(hook\\.durable-.*|durable\\.notesrewrite)';
  const found = await git.run(['config', '--local', '--null', '--name-only', '--get-regexp', ours]);
  return found.stdout.toString('utf8').split('\0').slice(0, -1);
}
