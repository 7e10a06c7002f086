/** Contents as documents show them. */
import * as v from 'valibot';
import type { Kept } from '../lib/event.js';
import { hasCode } from '../lib/errors.js';
import { exactJson, type ExactJson } from '../lib/exact-json.js';
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

/** Exact arguments: the recorded text, as JSON where it is JSON. */
export async function readArguments(contents: Contents, kept: Kept): Promise<ExactJson | string | null> {
  const text = await readText(contents, kept);
  return text === null ? null : exactJson(text);
}

/** The words of a command that an approval starts; null when their bytes were purged. */
export async function readCommand(contents: Contents, kept: Kept): Promise<readonly string[] | null> {
  const text = await readText(contents, kept);
  return text === null ? null : v.parse(words, JSON.parse(text));
}

const words = v.array(v.string());
