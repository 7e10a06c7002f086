/**
 * What a session was asked while its prompt could start no turn (another one holds the work tree), so that the turn which its first
 * tool starts later says what it is for: `<git dir>/durable/agents/asked-HASH`, for its owner alone (0600).
 *
 * Bounded: as much of a prompt as an objective takes, of the newest MOST sessions. It goes when a prompt of the session starts a turn, and
 * when the session ends. Nothing depends on it: what cannot be kept, or read, is a turn whose objective names its first tool.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { digest } from '../canonical.js';
import { errno, namesIn } from '../git/disk.js';
import type { Storage } from '../git/storage.js';
import { cut } from '../ledger/subject.js';
import type { AgentName } from './step.js';

/** Characters: as an event of a turn's start takes. */
const LONGEST = 2000;
const MOST = 64;

export interface Session {
  readonly agent: AgentName;
  readonly session: string;
}

/** Errors: the disk's. */
export function keepAsked(storage: Storage, of: Session, text: string): void {
  const { disk, layout, host } = storage;
  const folder = folderOf(storage);
  const file = fileOf(storage, of);
  const fresh = `${file}.${String(host.pid)}`;
  disk.makePassingDir('agent.asked', folder, layout.bits.privateDir);
  disk.unlink('agent.asked', fresh);
  disk.createPassing('agent.asked', fresh, Buffer.from(cut(text.toWellFormed(), LONGEST)), { exact: 0o600 });
  disk.rename('agent.asked', fresh, file);
  for (const old of oldestIn(folder)) disk.unlink('agent.asked', join(folder, old));
}

/** Null where nothing was kept, or it cannot be read. */
export function askedOf(storage: Storage, of: Session): string | null {
  try {
    return readFileSync(fileOf(storage, of), 'utf8');
  } catch (error) {
    if (errno(error) === '') throw error;
    return null;
  }
}

/** Errors: the disk's. */
export function dropAsked(storage: Storage, of: Session): void {
  if (askedOf(storage, of) !== null) storage.disk.unlink('agent.asked', fileOf(storage, of));
}

/** Beyond the newest: of sessions that never ended. */
function oldestIn(folder: string): string[] {
  const names = namesIn(folder).filter((name) => name.startsWith(PREFIX));
  if (names.length <= MOST) return [];
  const at = (name: string): number => statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const byAge = names.map((name) => ({ name, at: at(name) })).sort((a, b) => b.at - a.at);
  return byAge.slice(MOST).map(({ name }) => name);
}

const PREFIX = 'asked-';

const folderOf = ({ layout }: Storage): string => join(layout.local, 'agents');

/** A session's id is whatever an agent calls it. */
const fileOf = (storage: Storage, { agent, session }: Session): string =>
  join(folderOf(storage), `${PREFIX}${digest(`${agent} ${session}`).slice(0, 32)}`);
