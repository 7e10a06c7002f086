/**
 * What a hook in sh reads about the turn: `<git dir of the work tree>/durable/fence`, there while a turn holds the tree.
 *
 * Lines: holder's pid · its start time · digest of the turn's marker · turn id · epoch · the sentence for people · when it was
 * acquired, in seconds since 1970 · how the turn is fenced. A digest is git's
 * own id of the marker as a blob, since `git hash-object` is the one digest that is there wherever a hook runs. The file is
 * replaced whole. It decides nothing by itself: a hook that finds the holder dead refuses nothing.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { diskError, errno } from '../git/disk.js';
import type { Layout } from '../git/layout.js';
import type { Settings, Storage } from '../git/storage.js';
import type { LeaseRecord } from '../lease/record.js';

export const stateFile = ({ local }: Layout): string => join(local, 'fence');

/** How a turn is fenced: as `durable.fence` says, or with the mode `hooks` where its own git has no shim. */
export function fenceOf(
  { settings }: Storage,
  { hasShim }: { readonly hasShim: boolean },
): Settings['fence'] {
  return settings.fence === 'strict' && !hasShim ? 'hooks' : settings.fence;
}

/** Puts the file there for the turn of `record`, unless the fence is off. Errors: the disk's. */
export function showState(
  storage: Storage,
  record: LeaseRecord,
  shown: { readonly marker: string; readonly hasShim: boolean },
): void {
  if (storage.settings.fence === 'off') return;
  const { layout, disk, objects, tickets } = storage;
  const { pid, start } = record.holder;
  const lines = [
    String(pid),
    start,
    objects.hash('blob', Buffer.from(shown.marker, 'utf8')),
    record.turn ?? '-',
    String(record.epoch),
    oneLine(holderSentence(record)),
    String(Math.floor(Date.parse(record.acquiredAt) / 1000)),
    fenceOf(storage, shown),
  ];
  const temp = tickets.temp();
  const bytes = Buffer.from(`${lines.join('\n')}\n`, 'utf8');
  disk.createPassing('fence.state', temp, bytes, layout.bits.privateFile);
  disk.rename('fence.state', temp, stateFile(layout));
}

/** Takes the file away when it is about that turn, or, without one, in any case. */
export function hideState(storage: Storage, turn: string | null): void {
  const file = stateFile(storage.layout);
  if (turn === null || readState(file)?.turn === turn) storage.disk.unlink('fence.lower', file);
}

export interface FenceState {
  readonly turn: string;
  readonly epoch: number;
  /** Empty in a file of an older program. */
  readonly mode: string;
}

/** What the file is about; null when there is none. */
export function readState(file: string): FenceState | null {
  try {
    const [, , , turn = '', epoch = '', , , mode = ''] = readFileSync(file, 'utf8').split('\n');
    return { turn, epoch: Number(epoch), mode };
  } catch (error) {
    if (errno(error) === 'ENOENT') return null;
    throw diskError(error, file);
  }
}

export interface Holder {
  readonly holder: { readonly agent: string; readonly pid: number; readonly hostname: string };
  readonly task: string | null;
  readonly objective: string;
  readonly acquiredAt: string;
}

/** Who holds the work tree, since when, for what. */
export function holderSentence({ holder, task, objective, acquiredAt }: Holder): string {
  const { agent, pid, hostname } = holder;
  return `the work tree is held by ${agent} (pid ${String(pid)} on ${hostname}) since ${acquiredAt}, for '${objective}'${task === null ? '' : ` (task ${task})`}`;
}

/** A terminal reads it: no control character passes. */
function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ');
}
