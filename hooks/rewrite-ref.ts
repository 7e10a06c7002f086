/**
 * `notes.rewriteRef`: with it git carries our notes along when a commit is amended or rebased (git-config, notes.rewriteRef).
 *
 * The setting is a list and may hold the user's own entries: ours is one more value, and only that one goes again. That it is
 * ours says `durable.notesRewrite`, set before it; where the user had the value, or a pattern that covers it, nothing is set. The config
 * is shared by all work trees, so it goes with the last one. Killed between the two settings, either is done again.
 */
import type { Storage } from '../lib/git/storage.js';
import { NOTES_REF } from '../lib/decisions/note.js';

const KEY = 'notes.rewriteRef';
const MARK = 'durable.notesRewrite';

/** Idempotent. Errors: 'git-failed'. */
export async function followRewrites({ git }: Storage): Promise<void> {
  const asked = await git.run(['config', '--null', '--get-all', KEY]);
  const values = asked.code === 0 ? asked.stdout.toString('utf8').split('\0').slice(0, -1) : [];
  if (values.some((value) => value === NOTES_REF || value === 'refs/notes/*' || value === 'refs/*')) return;
  await git.output(['config', '--local', MARK, 'true']);
  await git.output(['config', '--local', '--add', KEY, NOTES_REF]);
}

/** Idempotent: takes away what `followRewrites` has set, and nothing where it had set nothing. */
export async function forgetRewrites({ git }: Storage): Promise<void> {
  const asked = await git.run(['config', '--local', '--type=bool', MARK]);
  if (asked.stdout.toString('utf8').trim() !== 'true') return;
  await git.run(['config', '--local', '--fixed-value', '--unset', KEY, NOTES_REF]);
  await git.run(['config', '--local', '--unset', MARK]);
}
