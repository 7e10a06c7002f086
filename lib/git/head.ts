/** What the user's HEAD names, read as any ref is: no git is started. */
import { hasCode } from '../errors.js';
import { parseCommit } from './objects-format.js';
import type { Storage } from './storage.js';

/** HEAD's commit; null before the first one, and for a HEAD that cannot be read. */
export function headOf(storage: Storage): string | null {
  try {
    return storage.refs.read('HEAD');
  } catch (error) {
    if (hasCode(error, 'ref-damaged')) return null;
    throw error;
  }
}

/** The tree of HEAD's commit; null where there is none. Errors: 'object-damaged'. */
export async function headTree(storage: Storage): Promise<string | null> {
  const head = headOf(storage);
  const commit = head === null ? undefined : await storage.objects.read(head);
  return commit?.type === 'commit' ? parseCommit(commit.body).tree : null;
}
