/** A folder of the real disk as plain data, read and made again, hard links and all. */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  linkSync,
  writeFileSync,
} from 'node:fs';

/** A folder as plain data; two names of one file hold the same `File` object. */
export interface Folder {
  readonly kind: 'folder';
  readonly mode: number;
  readonly entries: Map<string, Entry>;
}
export interface File {
  readonly kind: 'file';
  readonly content: Buffer;
  readonly mode: number;
}
export interface LinkNode {
  readonly kind: 'symlink';
  readonly target: string;
}
export type Entry = File | LinkNode | Folder;

/** One line a path, for people and for comparing: kind, mode, digest or target. */
export function listing(folder: Folder, prefix = ''): string[] {
  return [...folder.entries].flatMap(([name, entry]) => {
    const path = prefix + name;
    if (entry.kind === 'symlink') return [`${path} -> ${entry.target}`];
    const mode = entry.mode.toString(8);
    if (entry.kind === 'folder') return [`${path}/ ${mode}`, ...listing(entry, `${path}/`)];
    const digest = createHash('sha256').update(entry.content).digest('hex');
    return [`${path} ${mode} ${String(entry.content.length)} ${digest.slice(0, 16)}`];
  });
}

const raw = (path: string): Buffer => Buffer.from(path, 'latin1');

/** Reads a folder from the real disk. */
export function readFolder(path: string, links = new Map<string, File>()): Folder {
  const entries = new Map<string, Entry>();
  for (const name of readdirSync(raw(path), { encoding: 'latin1' })) {
    const below = `${path}/${name}`;
    const stat = lstatSync(raw(below));
    if (stat.isDirectory()) entries.set(name, readFolder(below, links));
    else if (stat.isSymbolicLink())
      entries.set(name, { kind: 'symlink', target: readlinkSync(raw(below), 'latin1') });
    else if (stat.isFile()) {
      const id = `${String(stat.dev)}:${String(stat.ino)}`;
      const file = links.get(id) ?? {
        kind: 'file',
        content: readFileSync(raw(below)),
        mode: stat.mode & 0o777,
      };
      links.set(id, file);
      entries.set(name, file);
    }
  }
  return { kind: 'folder', mode: lstatSync(raw(path)).mode & 0o777, entries };
}

/**
 * Makes the folder on the real disk exactly this one. Folders that are in both stay the same inode, as they do on a
 * disk that comes back: a workspace knows its git dir by it.
 */
export function writeFolder(path: string, folder: Folder, links = new Map<File, string>()): void {
  for (const name of readdirSync(raw(path), { encoding: 'latin1' })) {
    const below = `${path}/${name}`;
    const stays = folder.entries.get(name)?.kind === 'folder' && lstatSync(raw(below)).isDirectory();
    if (!stays) rmSync(raw(below), { recursive: true, force: true });
  }
  for (const [name, entry] of folder.entries) {
    const below = `${path}/${name}`;
    if (entry.kind === 'folder') {
      mkdirSync(raw(below), { recursive: true });
      writeFolder(below, entry, links);
    } else if (entry.kind === 'symlink') symlinkSync(raw(entry.target), raw(below));
    else writeFile(below, entry, links);
  }
}

function writeFile(path: string, file: File, links: Map<File, string>): void {
  const first = links.get(file);
  if (first !== undefined) {
    linkSync(raw(first), raw(path));
    return;
  }
  writeFileSync(raw(path), file.content);
  chmodSync(raw(path), file.mode);
  links.set(file, path);
}
