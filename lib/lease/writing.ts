/**
 * Write tickets: work-tree writes where the staging directory cannot be (another file system, PROTOCOL.md 16).
 *
 * Order of a writer: show the ticket `writing/<pid>-<epoch>-<nonce>` · write the temp beside the target · check the
 * epoch · rename · remove the ticket. Order of a taker: swap the lease, then wait until no ticket of an older epoch is
 * left, breaking only those of proven-dead writers. A ticket names its temp, so that breaking it leaves no litter.
 *
 * Price: a paused writer blocks the takeover until it is resumed or ended. Crash points: a ticket left behind by a dead
 * writer, with or without its temp and its rename; who breaks it removes both.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { canonicalJson } from '../canonical.js';
import { DurableError } from '../errors.js';
import { diskError, errno, namesIn } from '../git/disk.js';
import { encodePath } from '../git/path.js';
import type { Storage } from '../git/storage.js';
import { freshId } from '../host.js';

const TICKET = v.strictObject({
  v: v.literal(1),
  epoch: v.number(),
  host: v.string(),
  boot: v.string(),
  pidNamespace: v.string(),
  pid: v.number(),
  start: v.string(),
  /** Absolute path of the temp beside the target. */
  temp: v.string(),
});

export type WriteTicket = v.InferOutput<typeof TICKET>;

export interface ShownTicket {
  readonly file: string;
  /** Null for a draft, whose writer has not shown it yet and so has written nothing, and for one that is gone by now. */
  readonly ticket: WriteTicket | null;
}

const writingDir = (storage: Storage): string => join(storage.layout.local, 'writing');

/** Shows the ticket, durable before it returns; returns its path. */
export function showTicket(storage: Storage, epoch: number, temp: string): string {
  const dir = writingDir(storage);
  const here = storage.identity.here();
  const self = storage.identity.self();
  const ticket: WriteTicket = {
    v: 1,
    epoch,
    host: here.hostId,
    boot: here.bootId,
    pidNamespace: here.pidNamespace,
    pid: self.pid,
    start: self.start,
    temp,
  };
  storage.disk.makeDir('writing.show', dir);
  const file = join(dir, `${String(self.pid)}-${String(epoch)}-${freshId(storage.host, 10)}`);
  const draft = `${file}.new`;
  storage.disk.create('writing.show', draft, Buffer.from(canonicalJson(ticket)));
  // A taker sweeps drafts of older epochs away: then this epoch is over.
  if (storage.disk.rename('writing.show', draft, file) !== 'done')
    throw new DurableError('stage-revoked', { epoch });
  storage.disk.syncDir('writing.show', dir);
  return file;
}

export function hideTicket(storage: Storage, file: string): void {
  storage.disk.unlink('writing.hide', file);
}

/** Removes a dead writer's ticket and its temp. The caller has proven the death. */
export function breakTicket(storage: Storage, shown: ShownTicket): void {
  if (shown.ticket !== null) storage.disk.unlink('writing.break', encodePath(shown.ticket.temp));
  storage.disk.unlink('writing.break', shown.file);
}

/** Tickets of epochs below `epoch`. */
export function olderTickets(storage: Storage, epoch: number): ShownTicket[] {
  const dir = writingDir(storage);
  return namesIn(dir)
    .filter((name) => Number(name.split('-')[1]) < epoch)
    .map((name) => ({ file: join(dir, name), ticket: readTicket(join(dir, name)) }));
}

function readTicket(file: string): WriteTicket | null {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (errno(error) === 'ENOENT') return null;
    throw diskError(error, file);
  }
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), TICKET), text);
  return parsed.success ? parsed.output : null;
}
