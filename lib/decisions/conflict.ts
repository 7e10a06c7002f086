/**
 * Looking at conflicts and deciding them. Compare, use what is there, or keep what was to come; nothing is chosen silently.
 *
 * `compareConflict` reads. `settleConflict` is for 'use-latest': one conditional append, no byte changes. 'keep-mine' needs the
 * work tree's lease: lib/turn/resolve.ts. Of any number of answers one counts, the others are told whose ('conflict-settled').
 */
import { everyDecision, type Decisions } from './history.js';
import { oldestFirst } from './order.js';
import { pickOne } from './pick.js';
import { hasCode } from '../errors.js';
import { isOf, type EventDraft, type EventOf, type Image, type Recorded } from '../event.js';
import { look } from '../files/revision.js';
import { matches, type Found } from '../files/verdict.js';
import type { Storage } from '../git/storage.js';
import { isUnsettled } from '../ledger/carried.js';
import { Ledger, listTasks } from '../ledger/ledger.js';
import { conflictSettled } from '../ledger/rules.js';
import type { ConflictState, TaskState } from '../ledger/state.js';

export interface ListedConflict {
  readonly task: string;
  readonly conflict: ConflictState;
  /** Nobody has decided, or what was decided is not carried out yet. */
  readonly isOpen: boolean;
}

/** Every conflict of every task, oldest first, settled ones of earlier turns included: reads whole ledgers. */
export async function listConflicts(storage: Storage): Promise<ListedConflict[]> {
  return collect(storage, (task) => everyDecision(storage, task));
}

/** The open ones, and those that the newest turns have settled: at the cost of those turns. */
export async function conflictsInView(storage: Storage): Promise<ListedConflict[]> {
  return collect(storage, (task) => newestOf(storage, task));
}

/** The open ones as far as this program can read: a ledger of a newer one hides those of no other. */
export async function openConflicts(storage: Storage): Promise<ListedConflict[]> {
  const found = await collect(storage, async (task) => {
    try {
      return await newestOf(storage, task);
    } catch (error) {
      if (hasCode(error, 'version-unsupported')) return null;
      throw error;
    }
  });
  return found.filter(({ isOpen }) => isOpen);
}

const newestOf = async (storage: Storage, task: string): Promise<Decisions> =>
  (await Ledger.open(storage, task).readable()).state;

async function collect(
  storage: Storage,
  decisionsOf: (task: string) => Promise<Decisions | null>,
): Promise<ListedConflict[]> {
  const all: ListedConflict[] = [];
  for (const task of listTasks(storage)) {
    const decisions = await decisionsOf(task);
    if (decisions === null) continue;
    for (const conflict of decisions.conflicts.values())
      all.push({ task, conflict, isOpen: isUnsettled(decisions, conflict) });
  }
  return oldestFirst(all, ({ conflict }) => conflict.detected.event);
}

/** By its id or a prefix. Errors: 'not-found', 'ambiguous'. */
export async function findConflict(storage: Storage, prefix: string): Promise<ListedConflict> {
  return pickOne('conflict', prefix, await listConflicts(storage), ({ conflict }) => conflict.id);
}

/** One of the four: its image and, where they are kept and are text, its content. */
export interface Side {
  /** 'unknown': nobody can say; 'elsewhere': the conflict is of another work tree. */
  readonly image: Found | 'unknown' | 'elsewhere';
  /** Null for what is no file, what nobody kept, and what is not UTF-8 text. */
  readonly text: string | null;
}

export interface Comparison extends ListedConflict {
  readonly base: Side;
  readonly theirs: Side;
  readonly mine: Side;
  /** What is at the path now, when somebody has gone on from `theirs`. */
  readonly now: Side;
  /** Unified diffs from `base`; null where one side's bytes are not there or the sides are no text. */
  readonly diff: { readonly theirs: string | null; readonly mine: string | null };
}

/** Reads only. `workspace`: of this work tree. Errors: as `findConflict`. */
export async function compareConflict(
  storage: Storage,
  prefix: string,
  workspace: string | null,
): Promise<Comparison> {
  const listed = await findConflict(storage, prefix);
  const { event } = listed.conflict.detected;
  const base = await sideOf(storage, event.base);
  const theirs = await sideOf(storage, event.theirs);
  const mine = await sideOf(storage, event.mine);
  const isHere = event.workspace === workspace;
  const now = isHere ? sightOf(storage, event.path) : { image: 'elsewhere' as const, text: null };
  const diff = {
    theirs: await diffOf(storage, base, theirs),
    mine: await diffOf(storage, base, mine),
  };
  return { ...listed, base, theirs, mine, now, diff };
}

async function sideOf(storage: Storage, image: Found | 'unknown'): Promise<Side> {
  if (image === null || typeof image === 'string') return { image, text: null };
  const body = (await storage.objects.read(image.oid))?.body;
  return { image, text: body === undefined ? null : textOf(body) };
}

function sightOf(storage: Storage, path: string): Side {
  const { found, bytes } = look(storage, path);
  return { image: found, text: bytes === null ? null : textOf(bytes) };
}

function textOf(bytes: Buffer): string | null {
  const text = bytes.toString('utf8');
  return !text.includes('\0') && Buffer.from(text, 'utf8').equals(bytes) ? text : null;
}

/** git's own diff of two blobs, their modes first where they differ, else from the first hunk on; a side without a file is all lines gone or come. */
async function diffOf(storage: Storage, from: Side, to: Side): Promise<string | null> {
  const modes = modesOf(from.image, to.image);
  const text = await textDiff(storage, from, to);
  if (text === null) return modes !== '' && sameBytes(from.image, to.image) ? modes : null;
  return modes + text;
}

/** As git says it, where a file's mode is all that differs, or differs as well. */
function modesOf(from: Side['image'], to: Side['image']): string {
  if (!isImage(from) || !isImage(to) || from.mode === to.mode) return '';
  return `old mode ${from.mode}\nnew mode ${to.mode}\n`;
}

const sameBytes = (from: Side['image'], to: Side['image']): boolean =>
  isImage(from) && isImage(to) && from.oid === to.oid;

async function textDiff(storage: Storage, from: Side, to: Side): Promise<string | null> {
  if (sameBytes(from.image, to.image)) return '';
  if (from.image === null && to.text !== null) return lines('+', to.text);
  if (to.image === null && from.text !== null) return lines('-', from.text);
  if (from.text === null || to.text === null || !isImage(from.image) || !isImage(to.image)) return null;
  const diff = ['diff', '--no-color', '--no-ext-diff', '--no-textconv', from.image.oid, to.image.oid];
  const text = (await storage.git.output(diff)).toString('utf8');
  const start = text.indexOf('\n@@');
  return start === -1 ? '' : text.slice(start + 1);
}

function isImage(image: Side['image']): image is NonNullable<Image> {
  return image !== null && typeof image !== 'string';
}

function lines(mark: '+' | '-', text: string): string {
  return text.replace(/\n$/, '').replace(/^/gm, mark) + (text === '' ? '' : '\n');
}

/** As `findConflict`, for who decides it. Errors: 'conflict-settled' besides. */
export async function findUnsettled(storage: Storage, prefix: string): Promise<ListedConflict> {
  const found = await findConflict(storage, prefix);
  if (!found.isOpen) throw conflictSettled(found.conflict);
  return found;
}

/** Throws 'conflict-settled' when it was decided meanwhile. */
export function refuseSettled(state: TaskState, id: string): void {
  const conflict = state.conflicts.get(id);
  if (conflict?.resolved != null) throw conflictSettled(conflict);
}

export function resolvedDraft(
  conflict: ConflictState,
  choice: EventOf<'conflict.resolved'>['choice'],
  more: { readonly by: string; readonly transaction: string | null },
): EventDraft {
  return { type: 'conflict.resolved', turn: null, conflict: conflict.id, choice, ...more };
}

/** Records an answer for which nothing has to be written. Errors: 'conflict-settled', those of an append. */
export async function settleConflict(
  storage: Storage,
  { task, conflict }: ListedConflict,
  answer: { readonly choice: EventOf<'conflict.resolved'>['choice']; readonly by: string },
): Promise<Recorded<'conflict.resolved'>> {
  const [recorded] = await Ledger.open(storage, task).append(
    (state) => {
      refuseSettled(state, conflict.id);
      return [resolvedDraft(conflict, answer.choice, { by: answer.by, transaction: null })];
    },
    { lease: null, agent: 'person', workspace: conflict.detected.event.workspace },
  );
  if (recorded === undefined || !isOf(recorded, 'conflict.resolved'))
    throw new RangeError('the ledger recorded something else than was appended');
  return recorded;
}

/** True when the path holds what was to come already. */
export function holdsMine(storage: Storage, { detected: { event } }: ConflictState): boolean {
  return event.mine !== 'unknown' && matches(look(storage, event.path).found, event.mine);
}
