/**
 * One file of an agent's in the work tree: read, judged, and replaced in one rename.
 *
 * Refused are a path through a symbolic link, or that is one (it may lead out of the work tree, and a rename would put a file in its
 * place), and for a local installation a file that git tracks: it would show in `git status`, with paths of this machine in it.
 */
import { lstatSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DurableError } from '../../lib/errors.js';
import type { FileBits } from '../../lib/git/disk.js';
import type { Storage } from '../../lib/git/storage.js';
import { foldersAbove, refuseDetour, statOf } from '../../lib/git/tree-path.js';
import { readWhole } from './record.js';

export interface AgentFile {
  /** Relative to the work tree's top. */
  readonly path: string;
  /** Absolute. */
  readonly file: string;
  /** Null where there is none. */
  readonly bytes: Buffer | null;
}

/** Throws 'path-outside', 'path-refused', 'agent-file', the disk's. */
export function readAgentFile({ layout }: Storage, path: string): AgentFile {
  refuseDetour(layout, path);
  const file = join(layout.workTree, path);
  const stat = statOf(file);
  if (stat !== null && !stat.isFile()) {
    const why = stat.isSymbolicLink() ? 'it is a symbolic link' : 'it is no file';
    throw new DurableError('agent-file', {
      path,
      why,
      todo: 'put a file in its place, and type the same again',
    });
  }
  return { path, file, bytes: stat === null ? null : readWhole(file) };
}

export async function isTracked({ git }: Storage, path: string): Promise<boolean> {
  const listed = await git.output(['ls-files', '-z', '--', `:(top,literal)${path}`]);
  return listed.length > 0;
}

/** Folders above it that are not there, outermost first. */
export function missingFolders({ layout }: Storage, path: string): string[] {
  return foldersAbove(path).filter((folder) => statOf(join(layout.workTree, folder)) === null);
}

/**
 * Puts other bytes in the place of those that were read, or takes the file away. The mode stays; a new one is cut by the umask.
 * Throws 'agent-file' when somebody has written it since it was read.
 */
export function replaceAgentFile(storage: Storage, known: AgentFile, bytes: Buffer | null): void {
  const { disk, host, layout } = storage;
  const { file, path } = known;
  disk.unlink('agent.file', besideOf(file));
  const now = readAgentFile(storage, path).bytes;
  const isSame = now === null || known.bytes === null ? now === known.bytes : now.equals(known.bytes);
  if (!isSame)
    throw new DurableError('agent-file', {
      path,
      why: 'another program has just written it',
      todo: 'type the same again',
    });
  if (bytes === null) {
    if (disk.unlink('agent.file', file)) disk.syncDir('agent.file', dirname(file));
    return;
  }
  const bits: FileBits = now === null ? 0o666 : { exact: lstatSync(file).mode & 0o7777 };
  disk.makeDir('agent.file', dirname(file), 0o777);
  const folder = join(layout.local, 'agents');
  disk.makePassingDir('agent.file', folder, layout.bits.privateDir);
  const fresh = join(folder, `new-${String(host.pid)}`);
  disk.unlink('agent.file', fresh);
  disk.create('agent.file', fresh, bytes, bits);
  if (disk.rename('agent.file', fresh, file) === 'cross-device') {
    disk.unlink('agent.file', fresh);
    disk.create('agent.file', besideOf(file), bytes, bits);
    disk.rename('agent.file', besideOf(file), file);
  }
  disk.syncDir('agent.file', dirname(file));
}

/** Where the git dir lies on another file system, for the moment before the rename. */
export const besideOf = (path: string): string => `${path}.durable-new`;
