/**
 * Git notes as git keeps them: a ref at a chain of commits whose tree names a note's blob by the id of what it is about.
 *
 *     await editNote(storage, { ref, about: commit, message, edit: (text) => `${text ?? ''}more\n` });
 *
 * The tree may be flat (`<id>`) or fanned out at any depth (`<ab>/<rest>`, `<ab>/<cd>/<rest>`), and git changes that as it likes;
 * a note is looked for at every depth and put back where it was. A new one goes where the tree leads; a level of more than 256
 * notes is fanned out, as git does, so that a write costs the level and not all notes. Entries that are no notes stay.
 *
 * The ref moves by our own compare-and-swap (refs.ts): no hook, no signing, no reflog. Killed before the move, objects that
 * nothing names are left; of two writers at once one begins again with what the other wrote.
 */
import { DurableError } from '../errors.js';
import { commitBody, parseCommit, parseTree, treeBody, type TreeEntry } from './objects-format.js';
import type { NewObject } from './objects.js';
import type { Storage } from './storage.js';

export interface NoteEdit {
  /** Full name, below refs/notes/. */
  readonly ref: string;
  /** The object's id that the note is about. */
  readonly about: string;
  /** Of the notes' own commit. */
  readonly message: string;
  /** The new text from the one that is there (null: none); the same text changes nothing. Called again after a lost race. */
  readonly edit: (text: string | null) => string;
  /** How long others are waited for. Default 10,000. */
  readonly budgetMs?: number;
}

const BUDGET_MS = 10_000;
const MOST_FLAT = 256;

/** The text of a note; null where there is none. Errors: 'object-missing', 'object-damaged', 'ref-damaged'. */
export async function readNote(storage: Storage, ref: string, about: string): Promise<string | null> {
  const tip = storage.refs.read(ref);
  if (tip === null) return null;
  const found = await find(storage, await rootOf(storage, tip), about);
  return found === null ? null : textOf(storage, found.oid);
}

/** True when a note was written. Errors: as `readNote`, 'ref-locked', 'ref-moved', the disk's. */
export async function editNote(storage: Storage, note: NoteEdit): Promise<boolean> {
  const { refs, objects, host } = storage;
  const budgetMs = note.budgetMs ?? BUDGET_MS;
  const deadline = host.monotonicMs() + budgetMs;
  for (;;) {
    const from = refs.read(note.ref);
    const root = from === null ? [] : await rootOf(storage, from);
    const found = await find(storage, root, note.about);
    const before = found === null ? null : await textOf(storage, found.oid);
    const after = note.edit(before);
    if (after === before) return false;
    const fresh = new Fresh(storage);
    const blob = fresh.add('blob', Buffer.from(after, 'utf8'));
    const tree = await fresh.put(root, note.about, { blob, wasAt: found?.name ?? null });
    const parents = from === null ? [] : [from];
    const to = fresh.add('commit', commitBody({ tree, parents, message: note.message, at: host.now() }));
    await objects.writeAll(fresh.objects);
    const outcome = await refs.update({ move: { ref: note.ref, from, to } }, budgetMs);
    if (outcome.moved) return true;
    if (host.monotonicMs() > deadline)
      throw new DurableError('ref-moved', { ref: note.ref, expected: from, actual: outcome.was });
  }
}

/** `name`: its whole path in the tree. */
interface Found {
  readonly name: string;
  readonly oid: string;
}

/** At whatever depth it is. */
async function find(
  storage: Storage,
  level: readonly TreeEntry[],
  id: string,
  above = '',
): Promise<Found | null> {
  const flat = level.find((entry) => isNote(entry, id.length) && nameOf(entry) === id);
  if (flat !== undefined) return { name: `${above}${id}`, oid: flat.oid };
  const folder = folderFor(level, id);
  if (folder === undefined) return null;
  return find(storage, await treeOf(storage, folder.oid), id.slice(2), `${above}${id.slice(0, 2)}/`);
}

/** Objects of one write, before they are written. */
class Fresh {
  readonly objects: NewObject[] = [];
  readonly #storage: Storage;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  add(type: NewObject['type'], body: Buffer): string {
    this.objects.push({ type, body });
    return this.#storage.objects.hash(type, body);
  }

  /** The tree of this level with the note in it; `wasAt` is where it is, from this level on. */
  async put(
    level: readonly TreeEntry[],
    id: string,
    note: { readonly blob: string; readonly wasAt: string | null },
  ): Promise<string> {
    const folder = folderFor(level, id);
    const goesDown = note.wasAt === null ? folder !== undefined : note.wasAt.includes('/');
    if (goesDown && folder !== undefined) {
      const below = await treeOf(this.#storage, folder.oid);
      const wasAt = note.wasAt?.slice(3) ?? null;
      const oid = await this.put(below, id.slice(2), { ...note, wasAt });
      return this.#tree(level.map((entry) => (entry === folder ? { ...entry, oid } : entry)));
    }
    if (note.wasAt === null && level.some(isFolder) && !level.some((entry) => isNote(entry, id.length))) {
      const oid = await this.put([], id.slice(2), note);
      return this.#tree([...level, { mode: '040000', name: id.slice(0, 2), oid }]);
    }
    const others = level.filter((entry) => !(isNote(entry, id.length) && nameOf(entry) === id));
    return this.#fanned([...others, { mode: '100644', name: id, oid: note.blob }], id.length);
  }

  #fanned(level: readonly TreeEntry[], length: number): string {
    const notes = level.filter((entry) => isNote(entry, length));
    // Into folders that are there already they would have to be merged: git does that at its next write.
    if (notes.length <= MOST_FLAT || level.some(isFolder) || length <= 2) return this.#tree(level);
    const groups = new Map<string, TreeEntry[]>();
    for (const entry of notes) {
      const name = nameOf(entry);
      const group = groups.get(name.slice(0, 2)) ?? [];
      group.push({ ...entry, name: name.slice(2) });
      groups.set(name.slice(0, 2), group);
    }
    const grouped = [...groups].map(([name, below]) => {
      return { mode: '040000', name, oid: this.#fanned(below, length - 2) };
    });
    return this.#tree([...level.filter((entry) => !notes.includes(entry)), ...grouped]);
  }

  #tree(entries: readonly TreeEntry[]): string {
    return this.add('tree', treeBody(entries));
  }
}

const nameOf = ({ name }: TreeEntry): string => name.toString('latin1');

function isNote(entry: TreeEntry, length: number): boolean {
  return entry.mode.startsWith('100') && entry.name.length === length && /^[0-9a-f]+$/.test(nameOf(entry));
}

const isFolder = (entry: TreeEntry): boolean =>
  entry.mode === '040000' && /^[0-9a-f]{2}$/.test(nameOf(entry));

function folderFor(level: readonly TreeEntry[], id: string): TreeEntry | undefined {
  return level.find((entry) => entry.mode === '040000' && nameOf(entry) === id.slice(0, 2));
}

async function rootOf(storage: Storage, commit: string): Promise<TreeEntry[]> {
  const object = await read(storage, commit, 'commit');
  return treeOf(storage, parseCommit(object).tree);
}

const treeOf = async (storage: Storage, oid: string): Promise<TreeEntry[]> =>
  parseTree(await read(storage, oid, 'tree'), storage.layout.objectFormat);

const textOf = async (storage: Storage, oid: string): Promise<string> =>
  (await read(storage, oid, 'blob')).toString('utf8');

async function read(storage: Storage, oid: string, type: string): Promise<Buffer> {
  const object = await storage.objects.read(oid);
  if (object === undefined) throw new DurableError('object-missing', { oid, needed: 'the notes of commits' });
  if (object.type === type) return object.body;
  throw new DurableError('object-damaged', { oid, detail: `a ${object.type} and not a ${type}` });
}
