/**
 * What is broken in a repository's records, and what mends it: named checks in order, each of which only looks.
 *
 *   settings     every setting can be read
 *   writable     what we record can be written
 *   leases       every lease record can be read
 *   ledgers      every ledger is whole (all of it with `deep`, else its newest event)
 *   locks        no lock in our namespace whose owner is dead, or that names nobody, and no old one of git's own
 *   fence        hooks and index.lock are where they belong
 *   interrupted  no turn waits for recovery
 *
 * `mend` does what is safe without a decision: a lock of a proven-dead owner goes by the claim chain, a torn newest event is set
 * aside (lib/ledger/repair.ts), and a damaged ref of a lease or of contents is found again. Recovery is a person's decision and is only named. A check that fails to look is a problem of its own.
 */
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { hasCode, isDurableError, type DurableError } from './errors.js';
import { CONTENTS_PREFIX } from './git/contents.js';
import { entriesOf } from './git/loose-refs.js';
import { deliverAll } from './agents/gate.js';
import { inboxFiles, readPayload, type InboxFile } from './agents/inbox.js';
import type { Storage } from './git/storage.js';
import { fenceHealth } from './fence/health.js';
import { healFences } from './fence/heal.js';
import { readTicket } from './git/tickets.js';
import { leaseOf, isDamage, LEASE_PREFIX, leaseRef, newestRecord, readLease } from './lease/record.js';
import { workspaceId } from './lease/workspace.js';
import { newestContents } from './ledger/contents-mend.js';
import { Ledger, listTasks } from './ledger/ledger.js';
import { quantity } from './quantity.js';
import { recoveryReport } from './recovery/report.js';

export interface Problem {
  /** An error's or a finding's code, or 'stale-lock', 'foreign-lock', 'turn-interrupted', 'not-writable', 'inbox', 'setting', or one of hooks/installed-agents.ts. */
  readonly code: string;
  readonly detail: string;
  /** What to type; '' where nothing is known to help. */
  readonly fix: string;
}

export interface Look {
  /** Read every event of every ledger, not the newest one only. */
  readonly deep: boolean;
}

const FIX = 'git durable doctor --fix';

type Check = (storage: Storage, look: Look) => Promise<Problem[]>;

/** Writes nothing. Never throws for what it finds. */
export async function diagnose(storage: Storage, look: Look): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const check of [settings, writable, damagedLeases, ledgers, locks, fence, inbox, interrupted])
    problems.push(...(await looked(check, storage, look)));
  // What one check could not look past, another one may have met as well.
  return [...new Map(problems.map((one) => [`${one.code} ${one.detail}`, one])).values()];
}

function settings({ unreadable }: Storage): Promise<Problem[]> {
  return Promise.resolve(unreadable.map((one) => ({ code: 'setting', ...one })));
}

/** Mends what needs no decision; returns one line for each thing done. Errors: the disk's. */
export async function mend(storage: Storage): Promise<string[]> {
  const done = healFences(storage).map((path) => `removed the lock of a dead process: ${path}`);
  for (const task of listTasks(storage)) {
    if (await Ledger.open(storage, task).repair('doctor'))
      done.push(`put the ledger of task ${task} back to its newest event that can be read`);
  }
  for (const ref of storage.refs.names(LEASE_PREFIX)) {
    const mended = await mendLease(storage, ref.slice(LEASE_PREFIX.length));
    if (mended) done.push(`put '${ref}' back to its newest record`);
  }
  for (const ref of storage.refs.names(CONTENTS_PREFIX)) {
    const mended = await mendContents(storage, ref.slice(CONTENTS_PREFIX.length));
    if (mended) done.push(`put '${ref}' back to its newest commit`);
  }
  const { appended, late } = await deliverAll(storage);
  if (appended > 0) done.push(`recorded ${quantity(appended, 'report')} of agents from the inbox`);
  if (late.length > 0)
    done.push(`set ${quantity(late.length, 'report')} aside that came too late for their turn`);
  return done;
}

/** A ref that holds no object id, from the contents that are here; where there are none it stays, and is named. */
async function mendContents(storage: Storage, task: string): Promise<boolean> {
  const ref = `${CONTENTS_PREFIX}${task}`;
  try {
    storage.refs.read(ref);
    return false;
  } catch (error) {
    if (!hasCode(error, 'ref-damaged')) throw error;
  }
  const newest = await newestContents(storage, Ledger.open(storage, task));
  if (newest === null || !storage.refs.mend(ref, newest)) return false;
  const what = "the ref of the task's contents was damaged: it is at its newest commit again";
  await observe(storage, task, { what, ref, before: null, after: newest });
  return true;
}

/** From the newest record that is here; where there is none it stays, and is named. */
async function mendLease(storage: Storage, lease: string): Promise<boolean> {
  const ref = leaseRef(lease);
  try {
    await readLease(storage, lease);
    return false;
  } catch (error) {
    if (!isDamage(error)) throw error;
    const newest = await newestRecord(storage, lease);
    if (newest === null) return false;
    const { oid, record } = newest;
    const from = hasCode(error, 'ref-damaged') ? null : storage.refs.read(ref);
    const isMended =
      from === null
        ? storage.refs.mend(ref, oid)
        : (await storage.refs.update({ move: { ref, from, to: oid } })).moved;
    const what = "the lease's ref was damaged: it is at its newest record again";
    if (isMended && record.task !== null)
      await observe(storage, record.task, { what, ref, before: from, after: oid });
    return isMended;
  }
}

async function observe(
  storage: Storage,
  task: string,
  seen: { what: string; ref: string; before: string | null; after: string },
): Promise<void> {
  await Ledger.open(storage, task).append(
    () => [{ type: 'git.observed', turn: null, ...seen, process: null }],
    { lease: null, agent: 'doctor', workspace: null },
  );
}

async function looked(check: Check, storage: Storage, look: Look): Promise<Problem[]> {
  try {
    return await check(storage, look);
  } catch (error) {
    if (!isDurableError(error)) throw error;
    return [{ code: error.code, detail: error.message, fix: isDamage(error) ? FIX : '' }];
  }
}

/** Folders that a record goes into; one that is not there yet is made in one of the others. */
function writable({ layout }: Storage): Promise<Problem[]> {
  const { gitDir, commonDir, local, shared } = layout;
  const places = new Set([
    gitDir,
    commonDir,
    ...['objects', 'refs'].map((name) => join(commonDir, name)),
    local,
    shared,
  ]);
  const closed = [...places].filter((place) => existsSync(place) && !mayWrite(place));
  if (closed.length === 0) return Promise.resolve([]);
  const detail = `nothing can be recorded here: ${closed.map((place) => `'${place}'`).join(', ')} cannot be written`;
  return Promise.resolve([
    { code: 'not-writable', detail, fix: 'mend the mode or the owner, or mount it writable' },
  ]);
}

function mayWrite(place: string): boolean {
  try {
    accessSync(place, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Leases whose ref or record cannot be read. */
export async function damagedLeases(storage: Storage): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const ref of storage.refs.names(LEASE_PREFIX)) {
    const read = async (): Promise<Problem[]> => {
      await readLease(storage, ref.slice(LEASE_PREFIX.length));
      return [];
    };
    problems.push(...(await looked(read, storage, { deep: false })));
  }
  return problems;
}

async function ledgers(storage: Storage, look: Look): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const task of listTasks(storage)) {
    const ledger = Ledger.open(storage, task);
    problems.push(...(look.deep ? await wholeLedger(ledger) : await newestEvent(ledger)));
  }
  return problems;
}

async function wholeLedger(ledger: Ledger): Promise<Problem[]> {
  const { findings } = await ledger.verify();
  return findings.map(({ seq, code, detail }) => {
    // Nothing is broken, and no repair of this program's would help: the sentence names the commit, and what does.
    if (code === 'version-unsupported') return { code, detail, fix: '' };
    const where = seq === null ? `task ${ledger.task}` : `task ${ledger.task}, event ${String(seq)}`;
    // No repair brings bytes back; what else is lost is worth knowing.
    const isContents = code === 'contents-missing' || code === 'contents-damaged';
    return { code, detail: `${where}: ${detail}`, fix: isContents ? 'git durable verify --contents' : FIX };
  });
}

/**
 * Lease records and ledgers that cannot be read: every reading verb names them. `states`: of each ledger all that its state is
 * folded from, for who folds it anyway; else its newest event, one read a task.
 */
export async function damagedRecords(storage: Storage, { states }: { states: boolean }): Promise<Problem[]> {
  const problems = await damagedLeases(storage);
  for (const task of listTasks(storage)) {
    const ledger = Ledger.open(storage, task);
    const check = async (): Promise<Problem[]> =>
      states ? newestEvent(ledger) : damageOf(await ledger.tipDamage());
    problems.push(...(await looked(check, storage, { deep: false })));
  }
  return problems;
}

async function newestEvent(ledger: Ledger): Promise<Problem[]> {
  return damageOf((await ledger.readable()).damage);
}

function damageOf(damage: DurableError | null): Problem[] {
  return damage === null ? [] : [{ code: damage.code, detail: damage.message, fix: FIX }];
}

function locks(storage: Storage): Promise<Problem[]> {
  const problems: Problem[] = [];
  const ours = locksBelow(join(storage.layout.commonDir, 'refs', 'durable'));
  for (const path of [...ours, ...oldLocksOfGit(storage)]) {
    const owner = readTicket(path);
    if (owner === null) continue;
    if (owner === 'foreign') {
      const detail = `'${path}' names nobody: git, or another program, holds it or has died`;
      problems.push({ code: 'foreign-lock', detail, fix: `when no git is running: rm '${path}'` });
      continue;
    }
    const { verdict, why } = storage.identity.judge(owner);
    if (verdict !== 'dead') continue;
    problems.push({ code: 'stale-lock', detail: `'${path}' is of a dead process (${why})`, fix: FIX });
  }
  return Promise.resolve(problems);
}

/** Locks that a git takes for a moment and that have been there for longer: every turn waits for them, and is refused. */
function oldLocksOfGit({ layout, host }: Storage): string[] {
  const own = ['index.lock', 'HEAD.lock'].map((name) => join(layout.gitDir, name));
  const shared = ['packed-refs.lock', 'config.lock'].map((name) => join(layout.commonDir, name));
  return [...own, ...shared].filter((path) => {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat !== undefined && host.now().getTime() - stat.mtimeMs > LONG_MS;
  });
}

const LONG_MS = 60_000;

/** Lock files, not the value that waits beside one (`<ref>.<ticket>.lock`). */
function locksBelow(dir: string): string[] {
  return entriesOf(dir).flatMap((entry) => {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) return locksBelow(path);
    return entry.name.endsWith('.lock') && !/\.[a-z2-7]{26}\.lock$/.test(entry.name) ? [path] : [];
  });
}

async function fence(storage: Storage): Promise<Problem[]> {
  const workspace = workspaceId(storage, { create: false });
  const current = workspace === null ? null : await readLease(storage, leaseOf(workspace));
  const { problems } = await fenceHealth(storage, current?.record.state === 'held' ? current.record : null);
  // What a lock or a hook needs stands in its sentence: no verb helps with a file that is somebody else's.
  return problems.map((detail) => ({ code: 'fence', detail, fix: '' }));
}

/** What agents told and nobody could record: what waits, what is too late for its turn, and what cannot be read. */
function inbox(storage: Storage): Promise<Problem[]> {
  const files = inboxFiles(storage);
  const late = files.filter(({ isLate }) => isLate);
  const waiting = files.filter((file) => !file.isLate && readPayload(file) !== null);
  const unread = files.filter((file) => !late.includes(file) && !waiting.includes(file));
  return Promise.resolve([
    ...kept(late, 'too late for their turn, kept whole', 'when you have read them, remove them'),
    ...kept(waiting, 'not on record yet, kept whole', FIX),
    ...kept(
      unread,
      'not written to their end, or by a newer program, left',
      'look at them, then remove them',
    ),
  ]);
}

function kept(files: readonly InboxFile[], how: string, fix: string): Problem[] {
  const [oldest] = files;
  if (oldest === undefined) return [];
  const number = quantity(files.length, 'report');
  const detail = `${number} of agents, the oldest of ${oldest.since}, ${how}: '${oldest.path}'`;
  return [{ code: 'inbox', detail, fix }];
}

async function interrupted(storage: Storage): Promise<Problem[]> {
  const report = await recoveryReport(storage, {});
  return report.interrupted.map(({ turn, objective }) => ({
    code: 'turn-interrupted',
    detail: `turn ${turn} was interrupted: ${objective}`,
    fix: 'git durable recover',
  }));
}
