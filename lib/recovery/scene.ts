/**
 * The scene: the work tree as a dead turn left it, a checkpoint taken by whoever first detects the death.
 *
 * A call of unknown effect (a shell command, the agent under `run`) says nothing of the paths it writes; they are found by
 * comparing the tree with the checkpoint before the call. What a person changes after the death differs from that one as
 * well, so without a second point in time a repair would take it for the turn's. The scene is that point: what
 * differs from it is not the turn's, but somebody else's, or of a process that the turn left running.
 *
 * Taken by the keeper, right after it has recorded the death, and by a turn or an operation that is refused because of the dead
 * turn. Reading verbs take none. A scene counts only when it stands in the ledger before the first move of a repair: one whose
 * taker was overtaken by a repair may hold half of that.
 *
 * Without a scene (keeper killed too, disk full) there is only time: a path whose inode changed after the turn was certainly
 * over (`deadBy`) is not the turn's; any other is in doubt, and is taken for the turn's, since the checkpoint of the repair has it.
 */
import { hasCode, isDurableError } from '../errors.js';
import { takeCheckpoint } from '../files/checkpoint.js';
import { readCheckpoint } from '../files/checkpoint-read.js';
import type { Storage } from '../git/storage.js';
import type { LeaseRecord } from '../lease/record.js';
import { ownWorkspace } from '../lease/take.js';
import { Ledger } from '../ledger/ledger.js';
import type { CheckpointFold, TurnState } from '../ledger/state.js';
import { openTurnIn, type OpenTurn } from './interrupted.js';
import { isRepair } from './outcome.js';
import { hasOpenEffect } from './touched.js';

/** What a death left to tell the turn's changes from later ones. */
export interface Aftermath {
  readonly scene: CheckpointFold | null;
  /** Wall clock, milliseconds: the turn wrote nothing later. null: not known. */
  readonly deadBy: number | null;
}

export function aftermathOf(storage: Storage, open: OpenTurn): Aftermath {
  return { scene: sceneOf(open.turn), deadBy: deadBy(storage, open) };
}

/** Whether the turn has calls for which a scene tells anything. */
export function needsScene({ invocations }: TurnState): boolean {
  return invocations.some(hasOpenEffect);
}

/**
 * Takes the scene of a dead turn of this work tree, unless there is one, a repair has begun, or nothing depends on it.
 * Errors: those of a checkpoint.
 */
export async function keepScene(storage: Storage, task: string, turn: string): Promise<void> {
  const ledger = Ledger.open(storage, task);
  const open = await openTurnIn(storage, ledger);
  if (open?.turn.id !== turn || !open.isOfHere || open.detectedBy === null) return;
  if (!needsScene(open.turn) || sceneOf(open.turn) !== null || firstRepair(open.turn) !== null) return;
  await takeCheckpoint(storage, ledger, {
    message: `as turn ${turn} left it`,
    reason: 'after-death',
    turn,
    by: { agent: 'recover', workspace: ownWorkspace(storage) },
    paths: await namedBefore(storage, open.turn),
  });
}

/**
 * Runs `start`; when that is refused because of a dead turn, takes its scene before it passes the refusal on. A scene that
 * cannot be taken changes nothing about the refusal: the report then says that there is none.
 */
export async function witnessing<T>(storage: Storage, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    if (hasCode(error, 'recovery-needed')) await keepSceneIfPossible(storage, error.fields);
    throw error;
  }
}

async function keepSceneIfPossible(
  storage: Storage,
  { task, turn }: { readonly task: string; readonly turn: string },
): Promise<void> {
  try {
    await keepScene(storage, task, turn);
  } catch (error) {
    if (!isDurableError(error)) throw error;
  }
}

/** The scene that counts; null when there is none. */
export function sceneOf(turn: TurnState): CheckpointFold | null {
  const since = turn.recovered?.event.seq ?? 0;
  const until = firstRepair(turn) ?? Infinity;
  const scenes = turn.checkpoints.filter(({ reason }) => reason === 'after-death');
  return scenes.find(({ seq }) => seq > since && seq < until) ?? null;
}

function firstRepair(turn: TurnState): number | null {
  return turn.transactions.find((one) => isRepair(one, turn))?.prepared.event.seq ?? null;
}

/** A path that is ignored, but was named to the checkpoint before, has to be in the one after as well. */
async function namedBefore(storage: Storage, { invocations }: TurnState): Promise<string[]> {
  const named = new Set<string>();
  for (const { checkpoint } of invocations.filter(hasOpenEffect)) {
    if (checkpoint === null) continue;
    for (const path of (await readCheckpoint(storage, checkpoint)).scope.named) named.add(path);
  }
  return [...named];
}

/** The earliest time by which the turn was over: its death recorded, another boot begun, or a heartbeat and a TTL past. */
function deadBy(storage: Storage, { turn, record }: OpenTurn): number | null {
  const { host, identity } = storage;
  const { holder } = turn.started.event;
  const here = identity.here();
  const known: number[] = [];
  if (turn.state === 'interrupted' && turn.interrupted !== null)
    known.push(Date.parse(turn.interrupted.event.at));
  if (holder.host === here.hostId && holder.boot !== here.bootId)
    known.push(host.now().getTime() - host.uptimeMs());
  const beat = record === null ? null : lastBeat(record, turn.id);
  if (beat !== null) known.push(beat);
  return known.length === 0 ? null : Math.min(...known);
}

/** Only a keeper renews; a turn without one gives no sign of life between its events. */
function lastBeat(record: LeaseRecord, turn: string): number | null {
  const own = record.kind === 'turn' && record.turn === turn ? record : null;
  const taken =
    own === null && record.recovering?.turn === turn
      ? record.older.find(({ keeper }) => keeper !== null)
      : undefined;
  const renewedAt = own === null ? taken?.renewedAt : own.keeper === null ? undefined : own.renewedAt;
  return renewedAt === undefined ? null : Date.parse(renewedAt) + record.ttlMs;
}
