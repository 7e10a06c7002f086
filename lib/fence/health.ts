/** Whether the fence is what its mode says, for `status` and `doctor`. Reads only. */
import type { Settings, Storage } from '../git/storage.js';
import { readTicket } from '../git/tickets.js';
import type { LeaseRecord } from '../lease/record.js';
import {
  hooklessness,
  missingHooks,
  movedHooks,
  stuckHooks,
  unchainedHooks,
  type Hookless,
} from './hooks.js';
import { indexLock } from './place.js';
import { readState, stateFile } from './state.js';

export interface FenceHealth {
  /** How the turn under way is fenced; without one `durable.fence`. */
  readonly mode: Settings['fence'];
  /** Why a turn is fenced by less than `durable.fence` says; null where it is not. */
  readonly reason: string | null;
  readonly healthy: boolean;
  readonly problems: readonly string[];
}

/** `held`: the record of the lease while it is held. Errors: 'git-missing'. */
export async function fenceHealth(storage: Storage, held: LeaseRecord | null): Promise<FenceHealth> {
  const problems = [...lockProblems(storage, held), ...(await hookProblems(storage, held))];
  const reason = held === null || isLocked(storage, held) ? null : withoutShim(held);
  const { fence } = storage.settings;
  return { mode: reason === null ? fence : 'hooks', reason, healthy: problems.length === 0, problems };
}

/** Whether the turn under way is fenced by the lock, if the mode is strict: its own git has the shim. */
function isLocked({ settings, layout }: Storage, { turn }: LeaseRecord): boolean {
  const state = settings.fence === 'strict' ? readState(stateFile(layout)) : null;
  return state === null || state.turn !== turn || state.mode === 'strict';
}

function withoutShim({ holder }: LeaseRecord): string {
  return `the git of ${holder.agent} has no shim and would be refused by the lock like any other git: it is not held, hooks alone refuse, and staging beside the turn is not refused`;
}

function lockProblems(storage: Storage, held: LeaseRecord | null): string[] {
  const path = indexLock(storage.layout.gitDir);
  const owner = readTicket(path);
  if (owner === 'foreign')
    return held === null ? [] : [`'${path}' is of another git: the turn is not fenced while it is there`];
  const wanted =
    storage.settings.fence === 'strict' &&
    held?.kind === 'turn' &&
    isAlive(storage, held) &&
    isLocked(storage, held);
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

async function hookProblems(storage: Storage, held: LeaseRecord | null): Promise<string[]> {
  const isOpen = held?.kind === 'turn' && isAlive(storage, held);
  const moved = await movedHooks(storage);
  const none = hooklessness(storage, moved?.dir);
  const stuck = isOpen ? [] : stuckHooks(storage);
  return [
    ...(none === null ? [] : [hookless(storage, none)]),
    ...(isOpen && moved !== null && none === null
      ? [`core.hooksPath is '${moved.dir}' now: the turn's next step puts its hooks there`]
      : []),
    ...stuck.map(
      (path) =>
        `'${path}' is a hook of a turn that is over, in a folder that cannot be written: rm '${path}'`,
    ),
    ...(isOpen ? missingHooks(storage) : []).map(
      (name) => `the hook '${name}' was removed; the turn's next step puts it back`,
    ),
    ...unchainedHooks(storage).map(
      (name) =>
        `the hook '${name}' is a tracked file: ours is not put in front of it, since git status would show that, and it refuses nothing`,
    ),
  ];
}

const OWN_FOLDER =
  'git config --local core.hooksPath "$(git rev-parse --path-format=absolute --git-common-dir)/hooks"';

function hookless({ settings }: Storage, { dir, why }: Hookless): string {
  const left =
    settings.fence === 'strict' ? 'index.lock alone refuses, and no branch, tag or push' : 'nothing refuses';
  return `git looks for hooks in '${dir}' (core.hooksPath), ${why}: a turn has no hooks, ${left}; let it be a folder that can be written, or: ${OWN_FOLDER}`;
}

const isAlive = (storage: Storage, { holder }: LeaseRecord): boolean =>
  storage.identity.judge(holder).verdict !== 'dead';
