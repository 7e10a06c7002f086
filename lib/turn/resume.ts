/**
 * Durable execution: an interrupted turn goes on from its events, under a new epoch.
 *
 * The dead holder's lease is taken over in the order of PROTOCOL.md 11, the report of what was found is recorded with the
 * action 'resume', no byte of the work tree changes, and the turn is open again. What its function then asks for is
 * answered from the record where the record knows (lib/turn/replay.ts). Killed anywhere in between, it is resumed the same way.
 */
import { DurableError } from '../errors.js';
import type { Storage } from '../git/storage.js';
import type { Held } from '../lease/hold.js';
import { lowerFence, raiseFence } from '../fence/index-lock.js';
import { armHooks } from '../fence/hooks.js';
import { beginObserving } from '../fence/observer.js';
import { showState } from '../fence/state.js';
import { ownWorkspace } from '../lease/take.js';
import { takeOver } from '../lease/takeover.js';
import { Ledger } from '../ledger/ledger.js';
import { turnOnLine } from '../ledger/line.js';
import type { TurnState } from '../ledger/state.js';
import { reconcileLeft } from '../orphans/reconcile.js';
import { recoveredDraft } from '../recovery/repair.js';
import { acquiredDraft } from './lease-events.js';
import { turnContext } from './context.js';
import { Replay } from './replay.js';
import { freshMarker } from './marker.js';
import { fencedTurn, leaseRequest, type StartTurn } from './start.js';
import { Turn, type TurnOptions } from './turn.js';

export interface Resume {
  readonly options: StartTurn & { readonly key: string };
  readonly interrupted: { readonly task: string; readonly turn: string; readonly objective: string };
}

export async function resumeTurn(storage: Storage, resume: Resume, more: TurnOptions): Promise<Turn> {
  const { interrupted, options } = resume;
  const ledger = Ledger.open(storage, interrupted.task);
  const turn = (await ledger.state()).turn;
  if (turn?.id !== interrupted.turn || turn.started.event.key !== options.key) {
    throw new DurableError('recovery-needed', interrupted);
  }
  try {
    await raiseFence(storage, fencedTurn(storage, options, { task: ledger.task, turn: turn.id }), () =>
      Promise.resolve(),
    );
    return await takeUp(storage, { ledger, turn: turn.id, options }, more);
  } catch (error) {
    lowerFence(storage, turn.id);
    throw error;
  }
}

async function takeUp(
  storage: Storage,
  { ledger, turn, options }: { ledger: Ledger; turn: string; options: Resume['options'] },
  more: TurnOptions,
): Promise<Turn> {
  const marker = freshMarker(storage, ownWorkspace(storage));
  const held = await takeOver(
    storage,
    leaseRequest(options, { key: options.key, task: ledger.task, turn, marker }),
  );
  try {
    showState(storage, held.record, { marker, hasShim: options.ownGit !== 'none' });
    await armHooks(storage);
    beginObserving(storage, { turn, stageDir: held.stageDir });
    if (options.keeper !== false) await held.startKeeper(options.holder ?? storage.identity.self());
    return await reopened(storage, { ledger, held, options }, { ...more, marker });
  } catch (error) {
    await held.letGo();
    throw error;
  }
}

async function reopened(
  storage: Storage,
  at: { ledger: Ledger; held: Held; options: StartTurn },
  more: TurnOptions,
): Promise<Turn> {
  const { ledger, held } = at;
  const workspace = ownWorkspace(storage);
  const turn = await openTurn(ledger);
  const context = turnContext({
    storage,
    ledger,
    held,
    agent: at.options.agent ?? 'library',
    workspace,
    turn: turn.id,
  });
  await reconcileLeft(storage, held, { agent: context.agent, workspace });
  const recovered = await recoveredDraft(storage, ledger, { held, turn: turn.id, action: 'resume' });
  await context.append(() => [acquiredDraft(held), recovered]);
  return new Turn(context, { ...more, replay: new Replay(await openTurn(ledger)) });
}

async function openTurn(ledger: Ledger): Promise<TurnState> {
  const turn = turnOnLine(await ledger.state());
  if (turn === null) throw new DurableError('no-turn', { detail: `task ${ledger.task} has none` });
  return turn;
}
