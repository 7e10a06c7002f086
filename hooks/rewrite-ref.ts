/**
 * `notes.rewriteRef`: with it git carries our notes along when a commit is amended or rebased (git-config, notes.rewriteRef).
 *
 * The setting is a list and may hold the user's own entries: ours is one more value, and only that one goes again. That it is
 * ours says `durable.notesRewrite`, set before it; where the user had the value, or a pattern that covers it, nothing is set. The config
 * is shared by all work trees, so it goes with the last one. Killed between the two settings, either is done again.
 */
import { setConfig, unsetConfig } from '../lib/fence/config.js';
import type { Storage } from '../lib/git/storage.js';
import { NOTES_REF } from '../lib/decisions/note.js';

const KEY = 'notes.rewriteRef';
const MARK = 'durable.notesRewrite';

/** Idempotent. Errors: 'git-failed'. */
export async function followRewrites(storage: Storage): Promise<void> {
  const { git } = storage;
  const asked = await git.run(['config', '--null', '--get-all', KEY]);
  const values = asked.code === 0 ? asked.stdout.toString('utf8').split('\0').slice(0, -1) : [];
  if (values.some((value) => value === NOTES_REF || value === 'refs/notes/*' || value === 'refs/*')) return;
  await setConfig(storage, [MARK, 'true']);
  await setConfig(storage, ['--add', KEY, NOTES_REF]);
}

/** Idempotent: takes away what `followRewrites` has set, and nothing where it had set nothing. */
export async function forgetRewrites(storage: Storage): Promise<void> {
  const { git } = storage;
  const asked = await git.run(['config', '--local', '--type=bool', MARK]);
  if (asked.stdout.toString('utf8').trim() !== 'true') return;
  await unsetConfig(storage, ['--fixed-value', '--unset', KEY, NOTES_REF]);
  await unsetConfig(storage, ['--unset', MARK]);
}
