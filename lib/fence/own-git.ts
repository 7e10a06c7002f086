/**
 * How the shells of an agent whose turn is started by its hooks come to the turn's environment (shim.ts): each takes it anew from
 * a file of that agent's process, `<git dir>/durable/own-git/<pid>.<start>`.
 *
 * The process itself was started before its turn, and by somebody else: no variable can be given to it. Empty is the file
 * between turns; that it is there says that the agent's shells read it, so that a turn may hold index.lock (strict) without
 * refusing the agent's own git. What is in it: a line `export NAME='value'` each, the turn's marker among them (0600), and one
 * that puts the shim first on whatever PATH that shell has. The process in its name keeps another agent, in the same work tree and with this one's turn
 * open, from taking it for its own.
 *
 * Crash points: killed with its agent, a file stays that nobody reads; the next turn's start or end takes it away.
 */
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { diskError, isAbsence, namesIn } from '../git/disk.js';
import type { Storage } from '../git/storage.js';
import { isRunning, type ProcessIdentity } from '../lease/processes.js';
import { shellQuoted } from '../shell-quoted.js';

/** Says that this process's shells read its file from now on. Returns its path. Errors: the disk's. */
export function offerOwnGit(storage: Storage, process: ProcessIdentity): string {
  const file = ownGitFile(storage, process);
  storage.disk.makePassingDir('fence.state', folderOf(storage), storage.layout.bits.privateDir);
  sweep(storage);
  if (readText(file) === null) write(storage, file, '');
  return file;
}

/** Whether this process's shells read its file. Errors: the disk's. */
export const readsOwnGit = (storage: Storage, process: ProcessIdentity): boolean =>
  readText(ownGitFile(storage, process)) !== null;

/** Puts a turn's environment there; nothing for a process that does not read it. Errors: the disk's. */
export function fillOwnGit(
  storage: Storage,
  process: ProcessIdentity,
  { turn, variables }: { readonly turn: string; readonly variables: Readonly<Record<string, string>> },
): void {
  if (!readsOwnGit(storage, process)) return;
  const others = Object.entries(variables).filter(([name]) => name !== 'PATH');
  const lines = [turnLine(turn), ...others.map(([name, value]) => `export ${name}=${shellQuoted(value)}\n`)];
  if (variables['DURABLE_SHIM'] !== undefined) lines.push(FIRST_ON_PATH);
  write(storage, ownGitFile(storage, process), lines.join(''));
}

/** That turn is over: nobody takes its environment any more. Idempotent. Errors: the disk's. */
export function emptyOwnGit(storage: Storage, turn: string): void {
  sweep(storage);
  for (const file of filesIn(storage))
    if (readText(file)?.startsWith(turnLine(turn)) === true) write(storage, file, '');
}

/** Files of processes that are gone. */
function sweep(storage: Storage): void {
  for (const file of filesIn(storage)) {
    const [pid = '', start = ''] = basename(file).split('.');
    if (!isRunning({ pid: Number(pid), start })) storage.disk.unlink('fence.lower', file);
  }
}

const filesIn = (storage: Storage): string[] =>
  namesIn(folderOf(storage)).map((name) => join(folderOf(storage), name));

/** For a shell that is to take it, whether there is a turn or not. */
export const takingLine = (file: string): string => `[ ! -r ${shellQuoted(file)} ] || . ${shellQuoted(file)}`;

const FIRST_ON_PATH = 'case $PATH in "$DURABLE_SHIM":*) ;; *) export PATH="$DURABLE_SHIM:$PATH" ;; esac\n';

const turnLine = (turn: string): string => `# turn ${turn}\n`;

const folderOf = ({ layout }: Storage): string => join(layout.local, 'own-git');

const ownGitFile = (storage: Storage, { pid, start }: ProcessIdentity): string =>
  join(folderOf(storage), `${String(pid)}.${start}`);

function write(storage: Storage, file: string, text: string): void {
  const temp = storage.tickets.temp();
  storage.disk.createPassing('fence.state', temp, Buffer.from(text, 'utf8'), { exact: 0o600 });
  storage.disk.rename('fence.state', temp, file);
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (isAbsence(error)) return null;
    throw diskError(error, file);
  }
}
