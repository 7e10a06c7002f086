/** One repository for one verb: opened where the caller stands, closed however the verb ends. */
import { damagedRecords } from '../lib/doctor.js';
import { openStorage, type Opening, type Storage } from '../lib/git/storage.js';
import { healFences } from '../lib/fence/heal.js';
import { Repository } from '../lib/repository.js';
import type { VerbContext } from './verb.js';

export async function withStorage<T>(
  context: VerbContext,
  body: (storage: Storage) => Promise<T>,
  opening?: Opening,
): Promise<T> {
  const storage = await openStorage(context.dir, context.host, opening);
  for (const { detail, fix } of storage.unreadable)
    context.output.note(`${detail}; the default is taken meanwhile; type: ${fix}`);
  // No lock outlives its owner by more than one command, whichever command that is.
  healFences(storage);
  try {
    return await body(storage);
  } finally {
    await storage.close();
  }
}

export function withRepository<T>(
  context: VerbContext,
  body: (repository: Repository) => Promise<T>,
  opening?: Opening,
): Promise<T> {
  return withStorage(context, (storage) => body(new Repository(storage)), opening);
}

/** For a verb that only looks: it says what it finds beside a setting that cannot be read. */
export const LOOKING: Opening = { badSettings: 'default' };

/**
 * Every reading verb names a damaged lease, and a ledger that is damaged at its end: what it prints is true up to there.
 * True when there is one: then nobody may say that there is nothing. `states: false` is for a verb that folds no ledger: it looks at the newest events only.
 */
export async function noteDamage(
  context: VerbContext,
  storage: Storage,
  look: { readonly states: boolean } = { states: true },
): Promise<boolean> {
  const problems = await damagedRecords(storage, look);
  for (const { detail } of problems) context.output.note(detail);
  return problems.length > 0;
}
