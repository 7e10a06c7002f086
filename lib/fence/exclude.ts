/**
 * Hooks of ours in a folder of the work tree (`core.hooksPath` relative to it) stay out of `git status`: their names stand in
 * `info/exclude` between two lines of ours, unless the folder is ignored already (husky's is).
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Storage } from '../git/storage.js';

const BEGIN = '# git-durable hooks';
/** The first line where there was no such file before. */
const MADE = `${BEGIN}, in a file made for them`;
const END = '# git-durable hooks, end';

export async function excludeHooks(storage: Storage, dir: string, names: readonly string[]): Promise<void> {
  const { workTree, gitDir, commonDir } = storage.layout;
  const isInside = (folder: string): boolean => dir === folder || dir.startsWith(`${folder}/`);
  if (!isInside(workTree) || isInside(gitDir) || isInside(commonDir)) return;
  const ignored = await storage.git.run(['check-ignore', '-q', '--', join(dir, names[0] ?? '')]);
  if (ignored.code === 0) return;
  const folder = dir.slice(workTree.length).replace(/[*?[\\ ]/g, '\\$&');
  const patterns = names.flatMap((name) => [`${folder}/${name}`, `${folder}/${name}.durable-prev`]);
  const before = read(storage);
  const begin = before === null || before.includes(`${MADE}\n`) ? MADE : BEGIN;
  const after = `${withoutOurs(before ?? '')}${[begin, ...patterns, END].join('\n')}\n`;
  if (after !== before) write(storage, after);
}

export function includeHooks(storage: Storage): void {
  const { disk } = storage;
  const file = excludeFile(storage);
  disk.unlink('fence.hook', newOf(file));
  const before = read(storage);
  if (before === null) return;
  const after = withoutOurs(before);
  if (after === '' && before.includes(`${MADE}\n`)) {
    disk.unlink('fence.hook', file);
    disk.removeDir('fence.hook', dirname(file));
  } else if (after !== before) write(storage, after);
}

const excludeFile = ({ layout }: Storage): string => join(layout.commonDir, 'info', 'exclude');

const newOf = (file: string): string => `${file}.durable-new`;

const read = (storage: Storage): string | null =>
  existsSync(excludeFile(storage)) ? readFileSync(excludeFile(storage), 'latin1') : null;

const withoutOurs = (text: string): string =>
  text.replace(new RegExp(`(?:${MADE}|${BEGIN})\\n[\\s\\S]*?${END}\\n`), '');

function write(storage: Storage, text: string): void {
  const { disk } = storage;
  const file = excludeFile(storage);
  disk.makePassingDir('fence.hook', dirname(file), 0o777);
  disk.unlink('fence.hook', newOf(file));
  disk.createPassing('fence.hook', newOf(file), Buffer.from(text, 'latin1'), 0o666);
  disk.rename('fence.hook', newOf(file), file);
}
