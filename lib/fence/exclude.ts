/**
 * What of ours lies in the work tree stays out of `git status`: hooks in a folder of it (`core.hooksPath` relative to it), unless that is
 * ignored already (husky's is), and local files of agents. Patterns stand in `info/exclude` in a block for each of the two, between
 * two lines of ours. A file that was made for a block goes with the last of them.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Storage } from '../git/storage.js';

type Block = 'hooks' | 'agents';

const BLOCKS: readonly Block[] = ['hooks', 'agents'];

const begin = (block: Block): string => `# git-durable ${block}`;
/** The first line of the first block where there was no such file before. */
const made = (block: Block): string => `${begin(block)}, in a file made for them`;
const end = (block: Block): string => `# git-durable ${block}, end`;

export async function excludeHooks(storage: Storage, dir: string, names: readonly string[]): Promise<void> {
  const { workTree, gitDir, commonDir } = storage.layout;
  const isInside = (folder: string): boolean => dir === folder || dir.startsWith(`${folder}/`);
  if (!isInside(workTree) || isInside(gitDir) || isInside(commonDir)) return;
  const ignored = await storage.git.run(['check-ignore', '-q', '--', join(dir, names[0] ?? '')]);
  if (ignored.code === 0) return;
  const folder = dir.slice(workTree.length + 1);
  const paths = names.flatMap((name) => [`${folder}/${name}`, `${folder}/${name}.durable-prev`]);
  excludeAs(storage, 'hooks', paths);
}

export function includeHooks(storage: Storage): void {
  excludeAs(storage, 'hooks', []);
}

/** `paths`: relative to the work tree, of all work trees, since they share the file; none takes the block away. */
export function excludeAgents(storage: Storage, paths: readonly string[]): void {
  excludeAs(storage, 'agents', paths);
}

/** True when `excludeAgents` would write. */
export function wantsExcluding(storage: Storage, paths: readonly string[]): boolean {
  const before = read(storage);
  return withBlock(before, 'agents', paths) !== before;
}

export const excludeFile = ({ layout }: Storage): string => join(layout.commonDir, 'info', 'exclude');

function excludeAs(storage: Storage, block: Block, paths: readonly string[]): void {
  const { disk } = storage;
  const file = excludeFile(storage);
  disk.unlink('fence.hook', newOf(file));
  const before = read(storage);
  const after = withBlock(before, block, paths);
  if (after === before) return;
  if (after !== null) write(storage, after);
  else {
    disk.unlink('fence.hook', file);
    disk.removeDir('fence.hook', dirname(file));
  }
}

const newOf = (file: string): string => `${file}.durable-new`;

const read = (storage: Storage): string | null =>
  existsSync(excludeFile(storage)) ? readFileSync(excludeFile(storage), 'latin1') : null;

/** The file with this block holding these paths; null for a file that was made for blocks and has none any more. */
function withBlock(before: string | null, block: Block, paths: readonly string[]): string | null {
  const text = before ?? '';
  const isMade = before === null || BLOCKS.some((one) => text.includes(`${made(one)}\n`));
  const patterns = [...new Set(paths)].map((path) => `/${path.replace(/[*?[\\ ]/g, '\\$&')}`);
  const lines = patterns.length === 0 ? [] : [begin(block), ...patterns, end(block)];
  const blocks = BLOCKS.flatMap((one) => (one === block ? lines : linesOf(text, one)));
  const rest = BLOCKS.reduce((left, one) => left.replace(pattern(one), ''), text);
  if (blocks.length === 0) return rest === '' && isMade ? null : rest;
  if (isMade) blocks[0] = `${blocks[0] ?? ''}, in a file made for them`;
  return `${rest}${blocks.join('\n')}\n`;
}

/** A block as it stands, its first line without what it says of the file. */
function linesOf(text: string, block: Block): string[] {
  const [found] = pattern(block).exec(text) ?? [];
  return found === undefined ? [] : [begin(block), ...found.split('\n').slice(1, -1)];
}

const pattern = (block: Block): RegExp =>
  new RegExp(`(?:${made(block)}|${begin(block)})\\n[\\s\\S]*?${end(block)}\\n`);

function write(storage: Storage, text: string): void {
  const { disk } = storage;
  const file = excludeFile(storage);
  disk.makePassingDir('fence.hook', dirname(file), 0o777);
  disk.unlink('fence.hook', newOf(file));
  disk.createPassing('fence.hook', newOf(file), Buffer.from(text, 'latin1'), 0o666);
  disk.rename('fence.hook', newOf(file), file);
}
