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
import { join } from 'node:path';
import * as v from 'valibot';
import { hasCode, type DurableError } from '../errors.js';
import { errno, namesIn } from '../git/disk.js';
import type { Settings, Storage } from '../git/storage.js';
import { setConfig, unsetConfig } from './config.js';
import { excludeHooks, includeHooks } from './exclude.js';
import { findHooksDir, isOutdated, whyNoHooks } from './hooks-dir.js';
import { aloneIn, FOLDER_FILES, leave, use, usedBy } from './hooks-folder.js';
import { isHookPresent, placeHook, strays, takeHook, trackedHooks, writeHook } from './hook-files.js';
import { shellQuoted } from '../shell-quoted.js';

const HOOKS = [
  'pre-commit',
  'pre-merge-commit',
  'pre-rebase',
  'pre-push',
  'pre-auto-gc',
  // This one and those after it tell the observer who did what.
  'reference-transaction',
  'post-index-change',
  'post-checkout',
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
  /** Why there are no hooks in `dir` all the same, for the end of a sentence: the folder looked as if it could hold some. */
  refused: v.optional(v.string()),
  /** The files of settings that `dir` is from, as they were at the last turn's start (hooks-dir.ts). */
  settings: v.optional(v.record(v.string(), v.string())),
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
  const before = installedHooks(storage);
  const { dir } = await findHooksDir(storage);
  const isOff = (mode ?? storage.settings.fence) === 'off';
  const files = isOff ? await takeAll(storage, dir) : await configure(storage);
  const tracked = isOff ? [] : await trackedHooks(storage, dir, HOOKS);
  if (!isOff && needsFiles(storage) && whyNoHooks(dir) === null)
    await excludeHooks(storage, dir, [...HOOKS, ...FOLDER_FILES]);
  const fence = await modeBefore(storage, mode, before);
  const madeDir = before?.madeDir === true;
  record(storage, { v: 1, dir, at: here(storage), tracked, madeDir, settings: before?.settings, ...fence });
  // What it was is on record by now: killed here, `removeHooks` puts it back all the same.
  if (mode !== null) await setConfig(storage, ['durable.fence', mode]);
  return [...(before === null ? [manifest(storage)] : []), ...files];
}

/** What `installHooks` would write in a work tree that has none. */
export function plannedHooks(storage: Storage): string[] {
  if (installedHooks(storage) !== null) return [];
  return [manifest(storage), ...HOOKS.map((name) => join(scriptDir(storage), name))];
}

/**
 * Idempotent. What other work trees use stays; with the last one all goes. `isExact`: settings are what they were already.
 * Errors: 'git-failed', the disk's.
 */
export async function removeHooks(
  storage: Storage,
  { isLast, isExact }: { readonly isLast: boolean; readonly isExact: boolean },
): Promise<string[]> {
  const installed = installedHooks(storage);
  const { disk } = storage;
  const dir = installed?.dir ?? (await findHooksDir(storage)).dir;
  const taken = isShared(storage, dir) ? [] : takeFrom(storage, dir);
  includeHooks(storage);
  if (installed?.madeDir === true) disk.removeDir('fence.hook', dir);
  if (!isExact) await resetConfig(storage, installed, isLast);
  disk.unlink('fence.hook', manifest(storage));
  return taken;
}

async function resetConfig(
  storage: Storage,
  installed: InstalledHooks | null,
  isLast: boolean,
): Promise<void> {
  if (isLast) await unconfigure(storage);
  const before = installed?.fenceBefore;
  if (before === undefined) return;
  if (before === null) await unsetConfig(storage, ['--unset-all', 'durable.fence']);
  else if ((await ownMode(storage)) !== before) await setConfig(storage, ['durable.fence', before]);
}

/**
 * At a turn's start, where `init` provided for hooks: all in place where git looks now. A folder that can hold none is left
 * alone: the turn has its lock, and `hooklessness` says what it has not.
 */
export async function armHooks(storage: Storage): Promise<void> {
  const installed = installedHooks(storage);
  if (storage.settings.fence === 'off' || installed === null) return;
  const { dir, stamps } = await findHooksDir(storage, installed.settings);
  if (dir !== installed.dir && !isShared(storage, installed.dir)) takeIfMay(storage, installed.dir);
  const wants = needsFiles(storage) && whyNoHooks(dir) === null;
  const tracked = wants ? await trackedHooks(storage, dir, HOOKS) : [];
  const madeDir = (dir === installed.dir && installed.madeDir) || (wants && !existsSync(dir));
  const more = { dir, at: here(storage), tracked, madeDir, settings: stamps };
  const now: InstalledHooks = { ...installed, ...more, refused: undefined };
  record(storage, now);
  if (!wants) return;
  await excludeHooks(storage, dir, [...HOOKS, ...FOLDER_FILES]);
  const refused = place(
    storage,
    dir,
    HOOKS.filter((name) => !tracked.includes(name)),
  );
  if (refused !== null) record(storage, { ...now, refused });
}

/** Null when they are in place; else why not, and none is. */
function place(storage: Storage, dir: string, names: readonly string[]): string | null {
  try {
    storage.disk.makePassingDir('fence.hook', dir, 0o777);
    // Where another process has been at work for too long they are missing, and the keeper's next look puts them there.
    aloneIn(storage, dir, () => {
      use(storage, dir);
      for (const name of names) placeHook(storage, dir, name);
    });
    return null;
  } catch (error) {
    if (!isShut(error)) throw error;
    takeIfMay(storage, dir);
    return `which takes none: ${error.message}`;
  }
}

/** While a turn is open: what went wrong with its hooks meanwhile and was put right, a sentence each. */
export async function restoreHooks(storage: Storage): Promise<string[]> {
  const before = armed(storage);
  if (before === null) return [];
  const isMoved = isOutdated(before.settings);
  const missing = missingHooks(storage);
  if (!isMoved && missing.length === 0) return [];
  await armHooks(storage);
  const { dir } = installedHooks(storage) ?? before;
  if (dir === before.dir)
    return missing.map((name) => `the hook '${name}' was removed by somebody, and put back`);
  const none = hooklessness(storage);
  const went = none === null ? 'and the hooks of the turn went there' : 'and the turn has no hooks there';
  return [
    `core.hooksPath was changed: git looks for hooks in '${dir}' now and not in '${before.dir}', ${went}`,
  ];
}

/** At a turn's end, or its death: they go, unless the turn of another work tree, or of another repository, needs them. A folder that cannot be written keeps them. */
export function disarmHooks(storage: Storage): void {
  const installed = installedHooks(storage);
  const isNeeded = (): boolean => fencedDirs(storage).length > 0;
  if (installed === null || isNeeded()) return;
  takeIfMay(storage, installed.dir, () => !isNeeded());
}

/** Names of hooks that are to be in place during a turn and are not; [] where none can be. */
export function missingHooks(storage: Storage): string[] {
  const installed = armed(storage);
  if (installed === null || hooklessness(storage) !== null) return [];
  return HOOKS.filter((name) => !installed.tracked.includes(name) && !isHookPresent(installed.dir, name));
}

export interface Hookless {
  readonly dir: string;
  /** For the end of a sentence. */
  readonly why: string;
}

/** Why a turn has no hooks where `init` provided for some; null when it has. `moved`: the folder, where that is not on record. */
export function hooklessness(storage: Storage, moved?: string): Hookless | null {
  const installed = armed(storage);
  if (installed === null) return null;
  const dir = moved ?? installed.dir;
  const why = whyNoHooks(dir) ?? (moved === undefined ? installed.refused : undefined);
  return why === undefined ? null : { dir, why };
}

/** Where git looks now, when that is another folder than the one on record. */
export async function movedHooks(storage: Storage): Promise<{ readonly dir: string } | null> {
  const installed = armed(storage);
  if (installed === null || !isOutdated(installed.settings)) return null;
  const { dir } = await findHooksDir(storage, installed.settings);
  return dir === installed.dir ? null : { dir };
}

/** Hooks of ours that lie in a folder where they can not be taken away. */
export function stuckHooks(storage: Storage): string[] {
  const installed = installedHooks(storage);
  if (installed === null || whyNoHooks(installed.dir) === null) return [];
  return HOOKS.filter((name) => isHookPresent(installed.dir, name)).map((name) => join(installed.dir, name));
}

/** What `init` did, where turns have files for hooks. */
function armed(storage: Storage): InstalledHooks | null {
  return storage.settings.fence === 'off' || !needsFiles(storage) ? null : installedHooks(storage);
}

/** Names of hooks that are tracked files of the user's, so that ours is not in front of them; git 2.54 runs ours beside them. */
export function unchainedHooks(storage: Storage): readonly string[] {
  return needsFiles(storage) ? (installedHooks(storage)?.tracked ?? []) : [];
}

/** What `removeHooks` has left in the folder that git uses. */
export async function hooksLeft(storage: Storage): Promise<string[]> {
  const { dir } = await findHooksDir(storage);
  return usedBy(storage, dir).length > 0 ? [] : HOOKS.flatMap((name) => strays(dir, name));
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
  const text = `${JSON.stringify(installed)}\n`;
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return;
  disk.unlink('fence.hook', `${file}.new`);
  disk.createPassing('fence.hook', `${file}.new`, Buffer.from(text), 0o600);
  disk.rename('fence.hook', `${file}.new`, file);
}

/** Nothing while another repository's turn has its hooks there. `isWanted` is asked once nobody else is at work there. */
function takeFrom(storage: Storage, dir: string, isWanted = (): boolean => true): string[] {
  const taken = aloneIn(storage, dir, () => {
    if (!isWanted() || !leave(storage, dir)) return [];
    return HOOKS.filter((name) => takeHook(storage, dir, name)).map((name) => join(dir, name));
  });
  return taken ?? [];
}

/** As far as the folder lets: what is left in it refuses nothing, and no turn's start or end fails for it. */
function takeIfMay(storage: Storage, dir: string, isWanted?: () => boolean): void {
  try {
    takeFrom(storage, dir, isWanted);
  } catch (error) {
    if (!isShut(error)) throw error;
  }
}

const isShut = (error: unknown): error is DurableError =>
  hasCode(error, 'permission-denied') || hasCode(error, 'io-failed');

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
  const quoted = shellQuoted(script);
  return `! [ -x ${quoted} ] || ${quoted}`;
}

async function unconfigure(storage: Storage): Promise<void> {
  for (const name of HOOKS) await unsetConfig(storage, ['--remove-section', `hook.durable-${name}`]);
}

/** What `durable.fence` was before the first `init` that set it; {} where none has and this one does not. */
async function modeBefore(
  storage: Storage,
  mode: string | null,
  before: InstalledHooks | null,
): Promise<Pick<InstalledHooks, 'fenceBefore'>> {
  if (before?.fenceBefore !== undefined) return { fenceBefore: before.fenceBefore };
  if (mode === null) return {};
  return { fenceBefore: await ownMode(storage) };
}

/** `durable.fence` of the repository's own config. */
async function ownMode({ git }: Storage): Promise<string | null> {
  const asked = await git.run(['config', '--local', 'durable.fence']);
  return asked.code === 0 ? asked.stdout.toString('utf8').trim() : null;
}

/** Whether `init` was done in any work tree of the repository. */
export function isInstalledAnywhere(storage: Storage): boolean {
  return gitDirs(storage).some((gitDir) => existsSync(join(gitDir, 'durable', 'installed')));
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
