/** Contents as documents show them. */
import type { Kept } from '../lib/event.js';
import { hasCode } from '../lib/errors.js';
import type { Contents } from '../lib/git/contents.js';

/** The text; null when its bytes were purged: the record of them stays. */
export async function readText(contents: Contents, kept: Kept): Promise<string | null> {
  try {
    return (await contents.read(kept)).toString('utf8');
  } catch (error) {
    if (hasCode(error, 'object-missing')) return null;
    throw error;
  }
}

/** Exact arguments: the value where they are JSON, else the text. */
export async function readArguments(contents: Contents, kept: Kept): Promise<unknown> {
  const text = await readText(contents, kept);
  if (text === null) return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
