/**
 * The note of a turn: on the commit that contains its work, under `refs/notes/durable`, so that `git log --notes=durable` shows task,
 * turn, agent, ledger position and verdict beside it.
 *
 *     Durable-Turn: …
 *     Durable-Task: …
 *     Durable-Agent: claude-code
 *     Durable-Event: 17 <commit of turn.finished>
 *     Durable-Chain: sha256:…
 *     Durable-Outcome: completed
 *     Durable-Claim: holds (final text)
 *
 * One paragraph a turn: those of other turns, and whatever else stands in the note, are kept. A note is a projection of the ledger, so
 * it is written after the turn's end is recorded, and one that is missing is written later: at the turn's own end when HEAD has the
 * work by then, at the start of the work tree's next turn (the person committed in between; the process died in between), and by
 * `check --note`. Written twice it is once. That a note could not be written fails no turn.
 */
import { isDurableError, isLoss } from '../errors.js';
import { installedHooks } from '../fence/hooks.js';
import { headOf } from '../git/head.js';
import { editNote, readNote } from '../git/notes.js';
import type { Storage } from '../git/storage.js';
import { leaseOf, readLease } from '../lease/record.js';
import { Ledger } from '../ledger/ledger.js';
import { checkTurn, type ClaimCheck } from './claim.js';
import { treesOf } from './claim-facts.js';
import type { TurnRecord } from './claim-turn.js';
import { followRewrites, NOTES_REF } from './rewrite-ref.js';
import { workCommit, type Look } from './work-commit.js';
import { quantity } from '../quantity.js';

export interface TurnNote {
  /** The commit that contains the turn's work; null when there is none that is known. */
  readonly commit: string | null;
  /** The commit's note has this turn. */
  readonly written: boolean;
}

/** Where the turn's note is, or would be. Reads only. */
export async function noteOf(storage: Storage, record: TurnRecord): Promise<TurnNote> {
  const commit = await commitOf(storage, record, { head: headOf(storage) });
  if (commit === null) return { commit, written: false };
  const text = await readNote(storage, NOTES_REF, commit);
  return { commit, written: text !== null && paragraphOf(text, record.turn.id) !== null };
}

/** Writes the note where there is a commit for it. Errors: those of reading and writing notes. */
export async function writeNote(
  storage: Storage,
  record: TurnRecord,
  { budgetMs, ...look }: Omit<Look, 'trees'> & { readonly budgetMs?: number },
): Promise<TurnNote> {
  const finished = record.turn.finished;
  const commit = finished === null ? null : await commitOf(storage, record, look);
  if (finished === null || commit === null) return { commit: null, written: false };
  const lines = linesOf(await checkTurn(storage, record), finished);
  await editNote(storage, {
    ref: NOTES_REF,
    about: commit,
    message: `turn ${record.turn.id}`,
    edit: (text) => withParagraph(text, record.turn.id, lines),
    ...(budgetMs === undefined ? {} : { budgetMs }),
  });
  if (installedHooks(storage) !== null) await withoutFailing(() => followRewrites(storage));
  return { commit, written: true };
}

/** Nobody waits for a note that can be written later. */
const NO_WAIT_MS = 1000;

/** At the end of a turn. `head`: HEAD as the turn left it. */
export async function noteAtEnd(storage: Storage, ledger: Ledger, head: string | null): Promise<void> {
  await withoutFailing(async () => {
    const { turn } = await ledger.state();
    if (turn !== null)
      await writeNote(storage, { ledger, turn }, { head, isEnd: true, budgetMs: NO_WAIT_MS });
  });
}

/** A start waits for no long search. */
const AT_START = 10;

/** At the start of a turn: of the work tree's turn before it, whose work may have been committed since. */
export async function noteBefore(storage: Storage, workspace: string): Promise<void> {
  await withoutFailing(async () => {
    const last = await readLease(storage, leaseOf(workspace));
    const { task = null, turn: id = null } = last?.record ?? {};
    if (task === null || id === null) return;
    const ledger = Ledger.open(storage, task);
    const { turn } = await ledger.state();
    if (turn?.id !== id || turn.state !== 'finished') return;
    await writeNote(
      storage,
      { ledger, turn },
      { head: headOf(storage), most: AT_START, budgetMs: NO_WAIT_MS },
    );
  });
}

/** A missing note is written later, and `check --note` says why it cannot be. */
async function withoutFailing(write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!isDurableError(error)) throw error;
  }
}

async function commitOf(
  storage: Storage,
  record: TurnRecord,
  look: Omit<Look, 'trees'>,
): Promise<string | null> {
  // Most turns end without a commit: then nothing of the trees is read.
  if (look.head === null || look.head === record.turn.started.event.baseline.head) return null;
  try {
    return await workCommit(storage, record, { ...look, trees: await treesOf(storage, record) });
  } catch (error) {
    if (isLoss(error)) return null;
    throw error;
  }
}

const SOURCES = { text: ' (final text)', structured: ' (structured claim)' } as const;

function linesOf(
  check: ClaimCheck,
  { commit, chain, event }: NonNullable<TurnRecord['turn']['finished']>,
): string {
  const count = check.findings.length;
  const findings = count === 0 ? '' : `, ${quantity(count, 'finding')}`;
  const source = check.source === null ? '' : SOURCES[check.source];
  return [
    `Durable-Turn: ${check.turn}`,
    `Durable-Task: ${check.task}`,
    `Durable-Agent: ${onOneLine(check.agent)}`,
    `Durable-Event: ${String(event.seq)} ${commit}`,
    `Durable-Chain: sha256:${chain}`,
    `Durable-Outcome: ${event.outcome}`,
    `Durable-Claim: ${check.verdict}${findings}${source}`,
  ].join('\n');
}

const onOneLine = (text: string): string =>
  text
    .replace(/[\p{Cc}\p{Cs}\u2028\u2029\s]+/gu, ' ')
    .trim()
    .slice(0, 200);

/** The lines of a turn in a note, and none that a person wrote above or below them; null when it has none. */
function paragraphOf(text: string, turn: string): string | null {
  const lines = text.split('\n');
  const from = lines.indexOf(`Durable-Turn: ${turn}`);
  if (from < 0) return null;
  const end = lines.findIndex((line, at) => at > from && !/^Durable-(?!Turn:)[A-Z][a-z]+: /.test(line));
  return lines.slice(from, end < 0 ? lines.length : end).join('\n');
}

function withParagraph(text: string | null, turn: string, lines: string): string {
  if (text === null || text.trim() === '') return `${lines}\n`;
  const own = paragraphOf(text, turn);
  if (own !== null) return text.replace(own, () => lines);
  return `${text.replace(/\n+$/, '')}\n\n${lines}\n`;
}
