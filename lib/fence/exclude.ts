/**
 * Hooks of ours in a folder of the work tree (`core.hooksPath` relative to it) stay out of `git status`: their names stand in
 * `info/exclude` between two lines of ours, unless the folder is ignored already (husky's is).
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Storage } from '../git/storage.js';

const BEGIN = '# git-durable hooks';
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
  const after = `${withoutOurs(before)}${[BEGIN, ...patterns, END].join('\n')}\n`;
  if (after !== before) write(storage, after);
}

export function includeHooks(storage: Storage): void {
  const before = read(storage);
  const after = withoutOurs(before);
  if (after !== before) write(storage, after);
}

const excludeFile = ({ layout }: Storage): string => join(layout.commonDir, 'info', 'exclude');

const read = (storage: Storage): string =>
  existsSync(excludeFile(storage)) ? readFileSync(excludeFile(storage), 'latin1') : '';

const withoutOurs = (text: string): string => text.replace(new RegExp(`${BEGIN}\\n[\\s\\S]*?${END}\\n`), '');

function write(storage: Storage, text: string): void {
  const file = excludeFile(storage);
  storage.disk.makePassingDir('fence.hook', join(storage.layout.commonDir, 'info'), 0o777);
  storage.disk.createPassing('fence.hook', `${file}.durable-new`, Buffer.from(text, 'latin1'), 0o666);
  storage.disk.rename('fence.hook', `${file}.durable-new`, file);
}
