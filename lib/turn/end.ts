/**
 * The end of a turn. Order: what it left is snapshotted · `turn.finished` and `lease.released` in one ref move · the lease
 * freed · the fence taken down · the journal packed when it has grown. Killed after the move, the turn is finished and the lease, whose holder is
 * dead, is free for the next one; killed before it, the turn is interrupted.
 */
import type { EventOf, ProcessRecord } from '../event.js';
import { takeCheckpoint } from '../files/checkpoint.js';
import { lowerFence } from '../fence/index-lock.js';
import { findProcesses } from '../lease/processes.js';
import { sweepLitter } from '../git/sweep.js';
import { packJournal } from '../ledger/pack.js';
import { cut } from '../ledger/subject.js';
import { recordObserved, type TurnContext } from './context.js';

export interface TurnEnd {
  readonly outcome: EventOf<'turn.finished'>['outcome'];
  readonly summary?: string;
  readonly exit?: number | null;
  /** Snapshot of what the turn left. Default true. */
  readonly checkpoint?: boolean;
}

export async function finishTurn(context: TurnContext, end: TurnEnd): Promise<void> {
  await recordObserved(context);
  const checkpoint = end.checkpoint === false ? null : await endCheckpoint(context);
  const survivors = await survivorsOf(context);
  await context.append(() => [
    {
      type: 'turn.finished',
      turn: context.turn,
      outcome: end.outcome,
      summary: cut(end.summary ?? '', 2000),
      exit: end.exit ?? null,
      checkpoint,
      survivors,
    },
    { type: 'lease.released', turn: context.turn },
  ]);
  await context.held.release();
  lowerFence(context.storage, context.turn);
  await packJournal(context.storage);
  sweepLitter(context.storage);
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
  });
}
