/**
 * The end of a turn. Order: what it says of itself is kept · what it left is snapshotted · `turn.finished` and `lease.released` in one ref move · the lease
 * freed · the fence taken down · a note on the commit that has the
 * work, if the turn made one · the journal packed when it has grown. Killed after the move, the turn is finished and the lease, whose holder is
 * dead, is free for the next one; killed before it, the turn is interrupted.
 */
import { encodeClaim, type Claim } from '../decisions/claim-shape.js';
import { noteAtEnd } from '../decisions/note.js';
import { headOf } from '../git/head.js';
import type { EventOf, ProcessRecord } from '../event.js';
import { takeCheckpoint } from '../files/checkpoint.js';
import { lowerFence } from '../fence/index-lock.js';
import { foreignMarkers } from '../lease/foreign.js';
import { findProcesses } from '../lease/processes.js';
import { sweepLitter } from '../git/sweep.js';
import { packJournal } from '../ledger/pack.js';
import { cut } from '../ledger/subject.js';
import { recordObserved, type TurnContext } from './context.js';

export interface TurnEnd {
  readonly outcome: EventOf<'turn.finished'>['outcome'];
  /** For people, cut at 2,000 characters. Default: the beginning of `result`. */
  readonly summary?: string;
  /** The agent's final text. It is kept whole, and `check` holds what it claims against the turn. */
  readonly result?: string;
  /** What the turn claims of itself, held to the record to the letter; it counts in place of `result`. */
  readonly claim?: Claim;
  readonly exit?: number | null;
  /** The agent's own transcript, and how long it is by now. */
  readonly transcript?: { readonly path: string; readonly bytes: number };
  /** Snapshot of what the turn left. Default true. */
  readonly checkpoint?: boolean;
}

/** Errors: 'usage' or 'path-outside' for a claim that cannot be kept, those of an append, the disk's. */
export async function finishTurn(context: TurnContext, end: TurnEnd): Promise<void> {
  const said = await keepSaid(context, end);
  await recordObserved(context, true);
  const checkpoint = end.checkpoint === false ? null : await endCheckpoint(context);
  const survivors = await survivorsOf(context);
  // While the fence stands: afterwards a person may move it.
  const head = headOf(context.storage);
  await context.append(() => [
    {
      type: 'turn.finished',
      turn: context.turn,
      outcome: end.outcome,
      summary: cut(end.summary ?? end.result ?? '', 2000),
      ...said,
      exit: end.exit ?? null,
      checkpoint,
      survivors,
      ...(end.transcript === undefined ? {} : { transcript: end.transcript }),
    },
    { type: 'lease.released', turn: context.turn },
  ]);
  await context.held.release();
  lowerFence(context.storage, context.turn);
  await noteAtEnd(context.storage, context.ledger, head);
  await packJournal(context.storage);
  sweepLitter(context.storage);
}

/** What the turn says of itself goes among the contents: it may be long, and may hold secrets. */
async function keepSaid(
  { ledger }: TurnContext,
  { result, claim }: TurnEnd,
): Promise<Pick<EventOf<'turn.finished'>, 'result' | 'claim'>> {
  const text = result === undefined || result === '' ? [] : [Buffer.from(result, 'utf8')];
  const claimed = claim === undefined ? [] : [encodeClaim(claim)];
  const kept = await ledger.contents.keep([...text, ...claimed]);
  return { result: text.length === 0 ? null : (kept[0] ?? null), claim: kept[text.length] ?? null };
}

export async function interruptTurn(context: TurnContext, reason: string): Promise<void> {
  const survivors = await survivorsOf(context);
  await context.append(() => [
    {
      type: 'turn.interrupted',
      turn: context.turn,
      detectedBy: 'library',
      reason: cut(reason, 200),
      survivors,
    },
  ]);
  await context.held.release();
  lowerFence(context.storage, context.turn);
}

async function endCheckpoint(context: TurnContext): Promise<string> {
  const taken = await takeCheckpoint(context.storage, context.ledger, {
    message: 'end of the turn',
    reason: 'turn-end',
    turn: context.turn,
    by: { agent: context.agent, workspace: context.workspace },
  });
  return taken.checkpoint;
}

/** Processes of this turn that are still alive: by the marker, by what was recorded, by descent. */
async function survivorsOf(context: TurnContext): Promise<ProcessRecord[]> {
  const { turn } = await context.ledger.state();
  const { keeper, markerHash } = context.held.record;
  return findProcesses({
    caller: context.storage.host.pid,
    markerHash,
    recorded: (turn?.processes ?? []).map((entry) => entry.process),
    except: keeper === null ? [] : [keeper],
    isForeign: foreignMarkers(context.storage),
  });
}
