/**
 * Joining a turn that is under way, from another process of it: a script that runs `git durable ask`, a hook.
 *
 * The process proves that it belongs by the secret in its environment, of which the lease holds the hash, or by having a
 * process of the turn as ancestor (belonging.ts); it appends under the same token, verified as any other append is.
 */
import { DurableError } from '../errors.js';
import type { Storage } from '../git/storage.js';
import { Held } from '../lease/hold.js';
import { leaseOf, readLease, type LeaseRecord } from '../lease/record.js';
import { MARKER } from '../lease/processes.js';
import { workspaceId } from '../lease/workspace.js';
import { Ledger } from '../ledger/ledger.js';
import { belongsTo } from './belonging.js';
import { turnContext, type TurnContext } from './context.js';
import { JOINED_FROM } from './replay.js';
import { Turn } from './turn.js';

type Belongs = (storage: Storage, record: LeaseRecord) => boolean | Promise<boolean>;

export interface Attached {
  readonly turn: Turn;
  /** What the turn itself works with, for steps that it has no method for. */
  readonly context: TurnContext;
}

/**
 * `belongs`: another proof than the two above, of the record that holds the work tree.
 * Errors: 'no-turn' when this process belongs to no turn that holds this work tree, 'lease-lost'.
 */
export async function attachTurn(storage: Storage, belongs: Belongs = belongsTo): Promise<Turn> {
  return (await attach(storage, belongs)).turn;
}

/** Errors as `attachTurn`. */
export async function attach(storage: Storage, belongs: Belongs): Promise<Attached> {
  const workspace = workspaceId(storage, { create: false });
  const current = workspace === null ? null : await readLease(storage, leaseOf(workspace));
  const record = current?.record;
  if (workspace === null || record?.state !== 'held' || !(await belongs(storage, record)))
    throw new DurableError('no-turn', {
      detail: 'this process belongs to no turn that holds this work tree',
    });
  const { task, turn: id } = record;
  if (task === null || id === null)
    throw new DurableError('no-turn', { detail: 'the work tree is held for one operation' });
  const ledger = ledgerOf(storage, task, record.acquisition);
  const state = await ledger.state();
  if (state.turn?.id !== id) throw new DurableError('no-turn', { detail: `turn ${id} has not begun` });
  const held = new Held(storage, record);
  const context = turnContext({ storage, ledger, held, agent: record.holder.agent, workspace, turn: id });
  const indexes = state.turn.invocations.map((call) => call.index);
  const marker = storage.host.env[MARKER];
  const turn = new Turn(context, {
    ...(marker === undefined ? {} : { marker }),
    firstIndex: Math.max(JOINED_FROM - 1, ...indexes) + 1,
  });
  return { turn, context };
}

/**
 * One object for a holding, however often it is joined (a keeper does at each step of its turn): what a ledger has found out
 * while the lease is held, such as that no other task has an open conflict here, stays true until it is let go.
 */
function ledgerOf(storage: Storage, task: string, acquisition: string): Ledger {
  const known = JOINED.get(storage);
  if (known?.acquisition === acquisition && known.ledger.task === task) return known.ledger;
  const ledger = Ledger.open(storage, task);
  JOINED.set(storage, { acquisition, ledger });
  return ledger;
}

const JOINED = new WeakMap<Storage, { readonly acquisition: string; readonly ledger: Ledger }>();
