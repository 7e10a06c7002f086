import { shellQuoted } from '../lib/shell-quoted.js';

/** A word as a person types it to a shell: quoted only where it has to be. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : shellQuoted(word);
}
