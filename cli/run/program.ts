/** Which file a command's first word means, as a POSIX shell decides it (XCU 2.9.1.4): 127 not found, 126 cannot be run. */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { errno } from '../../lib/git/disk.js';

export type Program =
  | { readonly found: true; readonly path: string }
  | { readonly found: false; readonly exit: 126 | 127; readonly why: string };

type Verdict = 'runs' | 'forbidden' | 'missing';

export function findProgram(word: string, folder: string, path: string | undefined): Program {
  const candidates = word.includes('/') ? [resolve(folder, word)] : onPath(word, folder, path);
  let forbidden: string | null = null;
  for (const candidate of word === '' ? [] : candidates) {
    const verdict = judge(candidate);
    if (verdict === 'runs') return { found: true, path: candidate };
    if (verdict === 'forbidden') forbidden ??= candidate;
  }
  if (forbidden !== null)
    return { found: false, exit: 126, why: `'${word}' cannot be run: permission denied` };
  const where = word.includes('/') ? 'no such file' : 'not found on PATH';
  return { found: false, exit: 127, why: `'${word}' cannot be run: ${where}` };
}

function onPath(word: string, folder: string, path: string | undefined): string[] {
  const folders = (path ?? '/usr/local/bin:/usr/bin:/bin').split(delimiter);
  // An empty entry means the current folder.
  return folders.map((entry) => join(isAbsolute(entry) ? entry : resolve(folder, entry), word));
}

function judge(path: string): Verdict {
  try {
    if (!statSync(path).isFile()) return 'forbidden';
    accessSync(path, constants.X_OK);
    return 'runs';
  } catch (error) {
    const missing = ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'].includes(errno(error));
    return missing ? 'missing' : 'forbidden';
  }
}
