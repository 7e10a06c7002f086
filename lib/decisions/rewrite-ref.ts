/**
 * `notes.rewriteRef`: with it git carries our notes along when a commit is amended or rebased (git-config, notes.rewriteRef).
 *
 * Set where `init` was done, once there is a note: until then git would warn at every amend that the ref is invalid. The setting
 * is a list and may hold the user's own entries: ours is one more value, and only that one goes again. That it is
 * ours says `durable.notesRewrite`, set before it; where the user had the value, or a pattern that covers it, nothing is set. The config
 * is shared by all work trees, so it goes with the last one. Killed between the two settings, either is done again.
 */
import { setConfig, unsetConfig } from '../fence/config.js';
import { editConfig } from '../fence/config-trace.js';
import type { Storage } from '../git/storage.js';

export const NOTES_REF = 'refs/notes/durable';

const KEY = 'notes.rewriteRef';
const MARK = 'durable.notesRewrite';

/** Idempotent; nothing while there is no note. Errors: 'git-failed', the disk's. */
export async function followRewrites(storage: Storage): Promise<void> {
  const { git, refs } = storage;
  if (![...refs.names('refs/notes/')].includes(NOTES_REF)) return;
  const asked = await git.run(['config', '--null', '--get-all', KEY]);
  const values = asked.code === 0 ? asked.stdout.toString('utf8').split('\0').slice(0, -1) : [];
  if (values.some((value) => value === NOTES_REF || value === 'refs/notes/*' || value === 'refs/*')) return;
  await editConfig(storage, async () => {
    await setConfig(storage, [MARK, 'true']);
    await setConfig(storage, ['--add', KEY, NOTES_REF]);
  });
}

/** Idempotent: takes away what `followRewrites` has set, and nothing where it had set nothing. */
export async function forgetRewrites(storage: Storage): Promise<void> {
  const { git } = storage;
  const asked = await git.run(['config', '--local', '--type=bool', MARK]);
  if (asked.stdout.toString('utf8').trim() !== 'true') return;
  await unsetConfig(storage, ['--fixed-value', '--unset', KEY, NOTES_REF]);
  await unsetConfig(storage, ['--unset', MARK]);
}
