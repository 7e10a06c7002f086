/**
 * What `init` puts into a repository, and `uninstall`, which takes away that and all that turns have put beside it.
 *
 * Installed are the workspace id (`<git dir>/durable/workspace`), the fence's hooks with their settings (lib/fence/hooks.ts),
 * a value of `notes.rewriteRef` (lib/decisions/rewrite-ref.ts) and agents' hooks (install-agents.ts), which are planned first: what an agent's file
 * refuses is refused before anything is written. Order of an uninstall: nobody's turn is open · with `purge` the refs, in one
 * transaction of git · agents' hooks · the work tree's own files · with the last work tree that has an id what all share · the proof:
 * what is still there is looked for and named. Killed in between, it is simply done again.
 *
 * Without `purge` the refs stay, and with them everything they record: a later `init` finds it again.
 * Caveat: the objects that only our refs reached go when git next collects garbage.
 */
import { existsSync, lstatSync, rmdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fsExtra from 'fs-extra';
import { diskError, errno, namesIn } from '../lib/git/disk.js';
import { followRewrites, forgetRewrites, NOTES_REF } from '../lib/decisions/rewrite-ref.js';
import { dropKeeps } from '../lib/git/keep.js';
import { healFences } from '../lib/fence/heal.js';
import { configLeft } from '../lib/fence/config.js';
import { editConfig, restoreConfig } from '../lib/fence/config-trace.js';
import { lockLeft } from '../lib/fence/index-lock.js';
import { hooksLeft, installHooks, plannedHooks, removeHooks } from '../lib/fence/hooks.js';
import type { Settings, Storage } from '../lib/git/storage.js';
import { inboxFiles } from '../lib/agents/inbox.js';
import type { AgentName } from '../lib/agents/step.js';
import { DurableError } from '../lib/errors.js';
import { installAgents, planAgents, uninstallAgents, type AgentChange } from './install-agents.js';
import { dropMaintenance } from '../lib/lease/maintenance.js';
import { LEASE_PREFIX, readLease, type LeaseRecord } from '../lib/lease/record.js';
import { heldBy, unprovenBy } from '../lib/lease/refusal.js';
import { workspaceId } from '../lib/lease/workspace.js';

export interface Installed {
  /** Null in a dry run on a work tree that has none. */
  readonly workspace: string | null;
  /** False when it was there already, or in a dry run: nothing was touched. */
  readonly created: boolean;
  /** Absolute paths created, or, in a dry run, that would be; a folder ends in a slash. */
  readonly files: readonly string[];
  /** Absolute paths of files that were there and were, or would be, edited. */
  readonly edited: readonly string[];
  readonly agents: readonly AgentChange[];
}

export interface InstallOptions {
  readonly dryRun: boolean;
  /** `durable.fence` of this repository; null leaves it as it is. With 'off' no hook is installed. */
  readonly fence: Settings['fence'] | null;
  /** Whose hooks to install; default nobody's. */
  readonly agents?: readonly AgentName[];
  /** Into the files of an agent that are committed, default into local ones. */
  readonly shared?: boolean;
}

/** Errors: those of `planAgents`, 'git-failed', those of the disk. */
export async function install(storage: Storage, options: InstallOptions): Promise<Installed> {
  const { local } = storage.layout;
  const plan = await planAgents(storage, options.agents ?? [], options.shared === true ? 'shared' : 'local');
  const { changes: agents, edited } = plan;
  const present = workspaceId(storage, { create: false });
  const folders = existsSync(local) ? [] : [`${local}/`];
  const own = present === null ? [...folders, join(local, 'workspace')] : [];
  const wantsHooks = (options.fence ?? storage.settings.fence) !== 'off';
  if (options.dryRun) {
    const hooks = wantsHooks ? plannedHooks(storage) : [];
    return {
      workspace: present,
      created: false,
      files: [...own, ...hooks, ...plan.created],
      edited,
      agents,
    };
  }
  const workspace = workspaceId(storage, { create: true });
  const hooks = await editConfig(storage, () => installHooks(storage, options.fence));
  await followRewrites(storage);
  installAgents(storage, plan);
  return {
    workspace,
    created: present === null,
    files: [...own, ...hooks, ...plan.created],
    edited,
    agents,
  };
}

export interface Uninstalled {
  /** Absolute paths and full ref names that were there and are gone. */
  readonly removed: readonly string[];
  /** Absolute paths of agents' files that are without our hooks again. */
  readonly restored: readonly string[];
  /** Git dirs of other work trees that still have an id, so that what all share stayed. */
  readonly others: readonly string[];
  /** What should be gone and is not. */
  readonly residue: readonly string[];
}

/** What a git dir shares between its work trees, by name in `<common git dir>/durable/`. */
const SHARED = ['hooks', 'config', 'journal', 'tickets', 'claims', 'torn', 'inbox', 'cache'];
const NAMESPACES = ['refs/durable/', 'refs/durable-remote/'];
const FOLDERS = ['refs/durable', 'refs/durable-remote'];

/**
 * Errors: 'lease-held' while a turn or an operation is open, 'lease-unproven' when nobody knows, 'undelivered' where the inbox of
 * the last work tree is not empty and no purge was asked for, 'git-failed', the disk's.
 */
export async function uninstall(
  storage: Storage,
  options: { readonly purge: boolean },
): Promise<Uninstalled> {
  const { layout } = storage;
  const others = otherWorkTrees(storage);
  const dead = await deadHolders(storage, options.purge);
  if (others.length === 0 && !options.purge) refuseUndelivered(storage);
  // A dead holder could not take its own gc.pid away.
  for (const record of dead) dropMaintenance(storage, record.holder.pid);
  // Nothing of ours is left afterwards that could take a dead turn's lock away.
  const locks = healFences(storage);
  const refs = options.purge ? await purgeRefs(storage) : [];
  const isLast = others.length === 0;
  const isExact = isLast && restoreConfig(storage);
  const remove = (): Promise<string[]> => removeHooks(storage, { isLast, isExact });
  const hooks = await (isLast ? remove() : editConfig(storage, remove));
  if (isLast && !isExact) await forgetRewrites(storage);
  const agents = uninstallAgents(storage);
  const files = await removeFiles(storage, others.length === 0);
  const removed = [...locks, ...refs, ...hooks, ...agents.removed, ...files];
  const wanted = others.length === 0 ? [layout.local, layout.shared] : [join(layout.local, 'workspace')];
  const residue = [...wanted.filter((path) => isThere(path)), ...lockLeft(storage), ...agents.residue];
  if (others.length === 0) residue.push(...(await hooksLeft(storage)), ...(await configLeft(storage)));
  if (options.purge) residue.push(...listRefs(storage).keys(), ...refFolders(storage));
  return { removed, restored: agents.restored, others, residue: [...new Set(residue)] };
}

/** With the refs that stay it would be the only record of what an agent told; a purge takes that too. */
function refuseUndelivered(storage: Storage): void {
  const files = inboxFiles(storage);
  const [oldest] = files;
  if (oldest === undefined) return;
  const { since, path } = oldest;
  throw new DurableError('undelivered', { count: files.length, since, folder: dirname(path) });
}

/** A purge takes every work tree's refs, so any live holder refuses it; else this work tree's own does. */
async function deadHolders(storage: Storage, all: boolean): Promise<LeaseRecord[]> {
  const own = `ws-${workspaceId(storage, { create: false }) ?? ''}`;
  const dead: LeaseRecord[] = [];
  for (const ref of storage.refs.list(LEASE_PREFIX).keys()) {
    const lease = ref.slice(LEASE_PREFIX.length);
    const record = all || lease === own ? (await readLease(storage, lease))?.record : undefined;
    if (record?.state !== 'held') continue;
    refuseUnlessDead(storage, record);
    dead.push(record);
  }
  return dead;
}

function refuseUnlessDead(storage: Storage, record: LeaseRecord): void {
  const { verdict, why } = storage.identity.judge(record.holder);
  if (verdict === 'alive') throw heldBy(storage, record, why);
  if (verdict === 'unproven') throw unprovenBy(storage, record, why);
}

/** Git dirs of the other work trees that have a workspace id. */
function otherWorkTrees(storage: Storage): string[] {
  const { commonDir, gitDir } = storage.layout;
  const linked = namesIn(join(commonDir, 'worktrees')).map((name) => join(commonDir, 'worktrees', name));
  return [commonDir, ...linked].filter((dir) => dir !== gitDir && isThere(join(dir, 'durable', 'workspace')));
}

async function removeFiles(storage: Storage, last: boolean): Promise<string[]> {
  const { local, shared } = storage.layout;
  // Its own ticket would otherwise be removed under this process, and looked for at the end.
  storage.tickets.drop();
  if (last) return removeAll(storage, [local, shared]);
  if (local !== shared) return removeAll(storage, [local]);
  const own = namesIn(local).filter((name) => !SHARED.includes(name));
  return removeAll(
    storage,
    own.map((name) => join(local, name)),
  );
}

async function removeAll({ host }: Storage, paths: readonly string[]): Promise<string[]> {
  const there = [...new Set(paths)].filter((path) => isThere(path));
  for (const path of there) {
    try {
      host.faults.hit('install.remove:unlink:before');
      await fsExtra.remove(path);
      host.faults.hit('install.remove:unlink:after');
    } catch (error) {
      throw diskError(error, path);
    }
  }
  return there;
}

async function purgeRefs(storage: Storage): Promise<string[]> {
  const refs = listRefs(storage);
  for (const ref of refs.keys()) storage.locks.heal(join(storage.layout.commonDir, `${ref}.lock`));
  const commands = [...refs].map(([ref, oid]) => `delete ${ref} ${oid}\n`).join('');
  if (refs.size > 0)
    await storage.git.output(['update-ref', '--stdin'], {
      input: Buffer.from(commands, 'utf8'),
      site: 'install.purge',
    });
  // Nothing of ours is worth keeping now, and a pack with .keep would never be collected.
  dropKeeps(storage);
  // Git leaves folders that it has emptied, and a killed process the value it was about to move.
  await removeAll(storage, refFolders(storage));
  for (const folder of ['refs/notes', 'logs/refs/notes'])
    removeIfEmpty(join(storage.layout.commonDir, folder));
  return [...refs.keys()];
}

function listRefs(storage: Storage): Map<string, string> {
  // By its whole name: `refs/notes/durable-goods` is somebody else's.
  const notes = storage.refs.read(NOTES_REF);
  const own = NAMESPACES.flatMap((prefix) => [...storage.refs.list(prefix)]);
  return new Map(notes === null ? own : [...own, [NOTES_REF, notes]]);
}

const refFolders = (storage: Storage): string[] =>
  FOLDERS.map((folder) => join(storage.layout.commonDir, folder)).filter((folder) => isThere(folder));

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(errno(error))) throw diskError(error, folder);
  }
}

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
