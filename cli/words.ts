/**
 * The words this program was called with, byte for byte. Node decodes them as UTF-8 and puts U+FFFD where that fails;
 * a path need not be UTF-8, so where such a mark is seen Linux is asked for the bytes (proc(5), /proc/self/cmdline).
 */
import { readFileSync } from 'node:fs';
import { errno } from '../lib/git/disk.js';
import { splitPaths } from '../lib/git/path.js';

export function givenWords(argv: readonly string[], execArgv: readonly string[]): readonly string[] {
  const words = argv.slice(2);
  if (!words.some((word) => word.includes('\ufffd'))) return words;
  const exact = commandLine();
  const expected = argv.length + execArgv.length;
  return exact?.length === expected ? exact.slice(-words.length) : words;
}

/** Null where the system has no such file. */
function commandLine(): string[] | null {
  try {
    return splitPaths(readFileSync('/proc/self/cmdline'));
  } catch (error) {
    if (errno(error) === 'ENOENT') return null;
    throw error;
  }
}
