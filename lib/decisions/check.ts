/**
 * `check`: the claim of a turn judged (claim.ts), what became of the tree since, and the turn's note on a commit (note.ts).
 *
 * Reads only, unless the note is asked for.
 */
import { isLoss } from '../errors.js';
import { diffCheckpoints } from '../files/diff.js';
import type { Storage } from '../git/storage.js';
import { workspaceId } from '../lease/workspace.js';
import { checkTurn, type ClaimCheck } from './claim.js';
import { findTurn, type TurnRecord } from './claim-turn.js';
import { headOf } from '../git/head.js';
import { noteOf, writeNote, type TurnNote } from './note.js';

export interface CheckRequest {
  /** A turn's id or a prefix; default: the newest finished turn of this work tree. */
  readonly turn?: string;
  /** Writes the note where the turn's work is committed and the note is missing or out of date. Default false. */
  readonly note?: boolean;
}

export interface Check extends ClaimCheck {
  /** Files that differ between the claim's moment and now; null when that cannot be seen from here. */
  readonly changedSince: number | null;
  readonly note: TurnNote;
}

/** Errors: 'not-found', 'ambiguous', 'ledger-damaged', 'object-damaged'; with `note` those of writing one. */
export async function check(storage: Storage, request: CheckRequest = {}): Promise<Check> {
  const workspace = workspaceId(storage, { create: false });
  const record = await findTurn(storage, request.turn ?? null, workspace);
  const checked = await checkTurn(storage, record);
  const isHere = workspace !== null && record.turn.started.event.workspace === workspace;
  const changedSince = isHere ? await countSince(storage, checked.tree.after) : null;
  return { ...checked, changedSince, note: await noted(storage, record, request.note === true) };
}

function noted(storage: Storage, record: TurnRecord, isWanted: boolean): Promise<TurnNote> {
  return isWanted ? writeNote(storage, record, { head: headOf(storage) }) : noteOf(storage, record);
}

/** Null where the checkpoint is gone. */
async function countSince(storage: Storage, after: string | null): Promise<number | null> {
  if (after === null) return null;
  try {
    return (await diffCheckpoints(storage, after)).length;
  } catch (error) {
    if (isLoss(error)) return null;
    throw error;
  }
}
