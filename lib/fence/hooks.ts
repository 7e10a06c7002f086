/**
 * The hooks of the fence: provided for by `init`, in place during turns, removed by `uninstall`.
 *
 * Two ways: settings `hook.durable-NAME.*` (git 2.54 and newer reads them, older git ignores them; they name scripts in
 * `<git dir>/durable/hooks`), always; and files in the folder that git uses (`core.hooksPath`, never set by us), for older git,
 * chained in front of what is there, during turns only: with no turn there is nothing to refuse, and a `pre-commit` that does
 * nothing but end makes `git commit` 1.24 to 1.30 times as costly (processor time, 150 commits), `reference-transaction`
 * a fetch. `<git dir>/durable/installed` says what `init` did; without it a turn touches no hook.
 *
 * Calling order: `installHooks` · at each turn's start `armHooks`, while it runs `restoreHooks`, at its end `disarmHooks` ·
 * `removeHooks`. Killed in between, the next start or `removeHooks` does the rest: a hook that is left behind refuses nothing
 * without a living turn.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import * as v from 'valibot';
import { errno, namesIn } from '../git/disk.js';
import type { Settings, Storage } from '../git/storage.js';
import { setConfig, unsetConfig } from './config.js';
import { excludeHooks, includeHooks } from './exclude.js';
import { isHookPresent, placeHook, strays, takeHook, trackedHooks, writeHook } from './hook-files.js';

const HOOKS = [
  'pre-commit',
  'pre-merge-commit',
  'pre-rebase',
  'pre-push',
  'pre-auto-gc',
  // This one and the last tell the observer who did what.
  'reference-transaction',
  'post-index-change',
] as const;

const INSTALLED = v.object({
  v: v.literal(1),
  /** The hooks folder, absolute. */
  dir: v.string(),
  /** Where the repository was when that was written: it may have been moved or copied since. */
  at: v.object({ workTree: v.string(), commonDir: v.string() }),
  /** Names of hooks that are tracked files of the user's and were left alone. */
  tracked: v.array(v.string()),
  madeDir: v.boolean(),
  /** `durable.fence` of the repository's own config before `init` set it; undefined when it did not. */
  fenceBefore: v.optional(v.nullable(v.string())),
});

export type InstalledHooks = v.InferOutput<typeof INSTALLED>;

/** What `init` did here, or where this was copied from; null when it installed no hooks. */
export function installedHooks(storage: Storage): InstalledHooks | null {
  return readInstalled(storage, manifest(storage));
}

/** Idempotent. Returns the paths it wrote. With the mode 'off' there are no hooks. Errors: 'git-failed', the disk's. */
export async function installHooks(storage: Storage, mode: Settings['fence'] | null): Promise<string[]> {
  const dir = await hooksDir(storage);
  const before = installedHooks(storage);
  const isOff = (mode ?? storage.settings.fence) === 'off';
  const files = isOff ? await takeAll(storage, dir) : await configure(storage);
  const tracked = isOff ? [] : await trackedHooks(storage, dir, HOOKS);
  if (!isOff && needsFiles(storage)) await excludeHooks(storage, dir, HOOKS);
  const fence = await modeBefore(storage, mode, before);
  record(storage, { v: 1, dir, at: here(storage), tracked, madeDir: before?.madeDir === true, ...fence });
  // What it was is on record by now: killed here, `removeHooks` puts it back all the same.
  if (mode !== null) await setConfig(storage, ['durable.fence', mode]);
  return [...(before === null ? [manifest(storage)] : []), ...files];
}

/** What `installHooks` would write in a work tree that has none. */
export function plannedHooks(storage: Storage): string[] {
  if (installedHooks(storage) !== null) return [];
  return [manifest(storage), ...HOOKS.map((name) => join(scriptDir(storage), name))];
}

/** Idempotent. What other work trees use stays; with the `last` one all goes. Errors: 'git-failed', the disk's. */
export async function removeHooks(storage: Storage, last: boolean): Promise<string[]> {
  const installed = installedHooks(storage);
  const { disk } = storage;
  const dir = installed?.dir ?? (await hooksDir(storage));
  const taken = isShared(storage, dir) ? [] : takeFrom(storage, dir);
  if (last) await unconfigure(storage);
  includeHooks(storage);
  if (installed?.madeDir === true) disk.removeDir('fence.hook', dir);
  if (installed?.fenceBefore === null) await unsetConfig(storage, ['--unset-all', 'durable.fence']);
  else if (installed?.fenceBefore !== undefined)
    await setConfig(storage, ['durable.fence', installed.fenceBefore]);
  disk.unlink('fence.hook', manifest(storage));
  return taken;
}

/** At a turn's start, where `init` provided for hooks: all in place where git looks now. */
export async function armHooks(storage: Storage): Promise<void> {
  const installed = installedHooks(storage);
  if (storage.settings.fence === 'off' || installed === null) return;
  const dir = await hooksDir(storage);
  if (dir !== installed.dir && !isShared(storage, installed.dir)) takeFrom(storage, installed.dir);
  const tracked = await trackedHooks(storage, dir, HOOKS);
  const madeDir = (dir === installed.dir && installed.madeDir) || (needsFiles(storage) && !existsSync(dir));
  record(storage, { ...installed, dir, at: here(storage), tracked, madeDir });
  if (!needsFiles(storage)) return;
  storage.disk.makePassingDir('fence.hook', dir, 0o777);
  await excludeHooks(storage, dir, HOOKS);
  for (const name of HOOKS) if (!tracked.includes(name)) placeHook(storage, dir, name);
}

/** While a turn is open: puts hooks that somebody wiped back; returns their names. */
export async function restoreHooks(storage: Storage): Promise<string[]> {
  const missing = missingHooks(storage);
  if (missing.length > 0) await armHooks(storage);
  return missing;
}

/** At a turn's end, or its death: they go, unless another work tree's turn needs them. */
export function disarmHooks(storage: Storage): void {
  const installed = installedHooks(storage);
  if (installed === null || fencedDirs(storage).length > 0) return;
  takeFrom(storage, installed.dir);
}

/** Names of hooks that are to be in place during a turn and are not; [] where none are provided for. */
export function missingHooks(storage: Storage): string[] {
  const installed = installedHooks(storage);
  if (installed === null || storage.settings.fence === 'off' || !needsFiles(storage)) return [];
  return HOOKS.filter((name) => !installed.tracked.includes(name) && !isHookPresent(installed.dir, name));
}

/** Names of hooks that are tracked files of the user's, so that ours is not in front of them; git 2.54 runs ours beside them. */
export function unchainedHooks(storage: Storage): readonly string[] {
  return needsFiles(storage) ? (installedHooks(storage)?.tracked ?? []) : [];
}

/** What `removeHooks` has left in the folder that git uses. */
export async function hooksLeft(storage: Storage): Promise<string[]> {
  const dir = await hooksDir(storage);
  return HOOKS.flatMap((name) => strays(dir, name));
}

/** Where git looks, `core.hooksPath` or `hooks` of the common git dir. Our own git has that setting off, as its last value. */
async function hooksDir({ git, layout }: Storage): Promise<string> {
  const asked = await git.run(['config', '--type=path', '--null', '--get-all', 'core.hooksPath']);
  const given = asked.stdout.toString('utf8').split('\0').slice(0, -2).at(-1);
  return given === undefined ? join(layout.commonDir, 'hooks') : resolve(layout.workTree, given);
}

function needsFiles({ layout }: Storage): boolean {
  const [major = 0, minor = 0] = layout.gitVersion.split('.').map(Number);
  return major < 2 || (major === 2 && minor < 54);
}

const manifest = ({ layout }: Storage): string => join(layout.local, 'installed');

/** Each turn's start comes by here, and mostly with what is on record already. */
function record(storage: Storage, installed: InstalledHooks): void {
  const { disk } = storage;
  const file = manifest(storage);
  if (isDeepStrictEqual(parseInstalled(file), installed)) return;
  disk.unlink('fence.hook', `${file}.new`);
  disk.createPassing('fence.hook', `${file}.new`, Buffer.from(`${JSON.stringify(installed)}\n`), 0o600);
  disk.rename('fence.hook', `${file}.new`, file);
}

const takeFrom = (storage: Storage, dir: string): string[] =>
  HOOKS.filter((name) => takeHook(storage, dir, name)).map((name) => join(dir, name));

async function takeAll(storage: Storage, dir: string): Promise<string[]> {
  if (!isShared(storage, dir)) takeFrom(storage, dir);
  await unconfigure(storage);
  return [];
}

const scriptDir = ({ layout }: Storage): string => join(layout.shared, 'hooks');

/** The settings and their scripts. Returns the scripts that were not there. */
async function configure(storage: Storage): Promise<string[]> {
  const dir = scriptDir(storage);
  storage.disk.makePassingDir('fence.hook', dir, storage.layout.bits.privateDir);
  const fresh: string[] = [];
  for (const name of HOOKS) {
    const path = join(dir, name);
    if (!existsSync(path)) fresh.push(path);
    writeHook(storage, path, name);
    const section = `hook.durable-${name}`;
    // The command first: git refuses to go on with an event that has none.
    await setConfig(storage, [`${section}.command`, commandFor(path)]);
    await setConfig(storage, [`${section}.event`, name]);
  }
  return fresh;
}

/** Git hands it to a shell, with the arguments behind it. In a repository that was moved the script is not there any more. */
function commandFor(script: string): string {
  const quoted = `'${script.replaceAll("'", `'\\''`)}'`;
  return `! [ -x ${quoted} ] || ${quoted}`;
}

async function unconfigure(storage: Storage): Promise<void> {
  for (const name of HOOKS) await unsetConfig(storage, ['--remove-section', `hook.durable-${name}`]);
}

/** What `durable.fence` was before the first `init` that set it; {} where none has and this one does not. */
async function modeBefore(
  { git }: Storage,
  mode: string | null,
  before: InstalledHooks | null,
): Promise<Pick<InstalledHooks, 'fenceBefore'>> {
  if (before?.fenceBefore !== undefined) return { fenceBefore: before.fenceBefore };
  if (mode === null) return {};
  const asked = await git.run(['config', '--local', 'durable.fence']);
  return { fenceBefore: asked.code === 0 ? asked.stdout.toString('utf8').trim() : null };
}

/** Whether another work tree has its hooks in this folder. */
function isShared(storage: Storage, dir: string): boolean {
  const others = gitDirs(storage).filter((gitDir) => gitDir !== storage.layout.gitDir);
  return others.some((gitDir) => readInstalled(storage, join(gitDir, 'durable', 'installed'))?.dir === dir);
}

const fencedDirs = (storage: Storage): string[] =>
  gitDirs(storage).filter((gitDir) => existsSync(join(gitDir, 'durable', 'fence')));

function gitDirs({ layout }: Storage): string[] {
  const linked = join(layout.commonDir, 'worktrees');
  return [layout.commonDir, ...namesIn(linked).map((name) => join(linked, name))];
}

const here = ({ layout }: Storage): InstalledHooks['at'] => ({
  workTree: layout.workTree,
  commonDir: layout.commonDir,
});

/**
 * In a repository that was moved or copied, its own hooks folder. One outside of both (`core.hooksPath`) has hooks of ours of
 * where it was copied from, as long as that stands: nothing of the copy's is in it before a turn of the copy has said so.
 */
function readInstalled(storage: Storage, file: string): InstalledHooks | null {
  const installed = parseInstalled(file);
  const { workTree, commonDir } = storage.layout;
  if (installed === null || installed.at.commonDir === commonDir) return installed;
  const { dir, at } = installed;
  const moved = movedWith(dir, at.commonDir, commonDir) ?? movedWith(dir, at.workTree, workTree);
  return { ...installed, dir: moved ?? (existsSync(at.commonDir) ? join(commonDir, 'hooks') : dir) };
}

function movedWith(path: string, from: string, to: string): string | null {
  return path === from || path.startsWith(`${from}/`) ? `${to}${path.slice(from.length)}` : null;
}

function parseInstalled(file: string): InstalledHooks | null {
  try {
    const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), INSTALLED), readFileSync(file, 'utf8'));
    return parsed.success ? parsed.output : null;
  } catch (error) {
    if (errno(error) === 'ENOENT') return null;
    throw error;
  }
}
