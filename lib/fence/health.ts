/** Whether the fence is what its mode says, for `status` and `doctor`. Reads only. */
import type { Settings, Storage } from '../git/storage.js';
import { readTicket } from '../git/tickets.js';
import type { LeaseRecord } from '../lease/record.js';
import { missingHooks, unchainedHooks } from './hooks.js';
import { indexLock } from './place.js';

export interface FenceHealth {
  readonly mode: Settings['fence'];
  readonly healthy: boolean;
  readonly problems: readonly string[];
}

/** `held`: the record of the lease while it is held. */
export function fenceHealth(storage: Storage, held: LeaseRecord | null): FenceHealth {
  const problems = [...lockProblems(storage, held), ...hookProblems(storage, held)];
  return { mode: storage.settings.fence, healthy: problems.length === 0, problems };
}

function lockProblems(storage: Storage, held: LeaseRecord | null): string[] {
  const path = indexLock(storage.layout.gitDir);
  const owner = readTicket(path);
  if (owner === 'foreign')
    return held === null ? [] : [`'${path}' is of another git: the turn is not fenced while it is there`];
  const wanted = storage.settings.fence === 'strict' && held?.kind === 'turn' && isAlive(storage, held);
  if (owner === null)
    return wanted
      ? [`'${path}' is gone: somebody removed it, and staging beside the turn is not refused`]
      : [];
  if (storage.identity.judge(owner).verdict === 'dead')
    return [`'${path}' is of a dead turn: the next command of git durable takes it away`];
  if (held === null)
    return [
      `'${path}' is of turn ${owner.turn ?? ''}, and nobody holds this work tree: it was copied with the repository; when no turn is starting: rm '${path}'`,
    ];
  return [];
}

function hookProblems(storage: Storage, held: LeaseRecord | null): string[] {
  const missing = held?.kind === 'turn' && isAlive(storage, held) ? missingHooks(storage) : [];
  return [
    ...missing.map((name) => `the hook '${name}' was removed; the turn's next step puts it back`),
    ...unchainedHooks(storage).map(
      (name) =>
        `the hook '${name}' is a tracked file: ours is not put in front of it, since git status would show that, and it refuses nothing`,
    ),
  ];
}

const isAlive = (storage: Storage, { holder }: LeaseRecord): boolean =>
  storage.identity.judge(holder).verdict !== 'dead';
