/**
 * A ledger's commits in bulk, as raw messages, in either direction, without holding them all.
 *
 * One `git rev-list` prints commits and messages together: measured against rev-list piped into `cat-file --batch`,
 * which inflates each commit twice, it took half the time. Batches instead of single items, because an await an event
 * costs as much as decoding it. When an object is missing rev-list fails as a whole; then the chain is walked commit by commit through
 * the object store, which puts a lost object back from the journal, and goes round a damaged event to the one before it
 * when that can be told (`before`).
 */
import { DurableError, factOf, hasCode, isDurableError } from '../errors.js';
import { parseCommit } from '../git/objects-format.js';
import type { Storage } from '../git/storage.js';
import { eventBefore } from './torn.js';

export interface RawEvent {
  readonly commit: string;
  readonly parents: readonly string[];
  readonly message: string;
}

export interface Range {
  /** Left out, with all before it; null: from the task's first event. */
  readonly after: string | null;
  readonly to: string;
  readonly oldestFirst: boolean;
}

/** Errors: 'ledger-damaged', thrown after all that can still be read has been given. */
export async function* rawEvents(
  storage: Storage,
  task: string,
  range: Range,
): AsyncGenerator<readonly RawEvent[], void> {
  let given = 0;
  if (range.to === range.after) return;
  try {
    for await (const batch of listed(storage, range)) {
      given += batch.length;
      yield batch;
    }
    // Of a tree or a blob rev-list lists nothing, and calls that a success.
    if (given > 0) return;
  } catch (error) {
    if (!hasCode(error, 'git-failed')) throw error;
  }
  yield* walked(storage, task, range, given);
}

async function* listed(storage: Storage, range: Range): AsyncGenerator<readonly RawEvent[], void> {
  const args = [
    'rev-list',
    '--first-parent',
    '--encoding=UTF-8',
    '--format=format:%P%n%B%x00',
    ...(range.oldestFirst ? ['--reverse'] : []),
    range.to,
    ...(range.after === null ? [] : [`^${range.after}`]),
    '--',
  ];
  const child = storage.git.start(args);
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', resolve).once('error', () => {
      resolve(null);
    });
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  child.stdin.end();
  try {
    let rest: Buffer = Buffer.alloc(0);
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      const end = bytes.lastIndexOf(0) + 1;
      rest = bytes.subarray(end);
      if (end > 0) yield parsed(bytes.toString('utf8', 0, end - 1));
    }
    const code = await ended;
    if (code === 0) return;
    throw new DurableError('git-failed', { command: `git ${args.join(' ')}`, code, detail: said.trim() });
  } finally {
    child.kill();
    await ended;
  }
}

/** `commit <id>`, parents, message; NUL between two of them. */
function parsed(text: string): RawEvent[] {
  return text.split('\0').map((record) => {
    const start = record.startsWith('\n') ? 1 : 0;
    const first = record.indexOf('\n', start);
    const second = record.indexOf('\n', first + 1);
    const parents = record.slice(first + 1, second);
    return {
      commit: record.slice(start + 'commit '.length, first),
      parents: parents === '' ? [] : parents.split(' '),
      message: record.slice(second + 1),
    };
  });
}

const BATCH = 64;

/** The slow way round damage. `skip` events were already given, and are not given again. */
async function* walked(
  storage: Storage,
  task: string,
  range: Range,
  skip: number,
): AsyncGenerator<readonly RawEvent[], void> {
  const path = await walkedPath(storage, task, range);
  const commits = range.oldestFirst ? path.commits.reverse() : path.commits;
  for (let at = skip; at < commits.length; at += BATCH) {
    const batch: RawEvent[] = [];
    for (const commit of commits.slice(at, at + BATCH)) {
      const raw = await readRaw(storage, commit);
      if (raw !== null) batch.push(raw);
    }
    yield batch;
  }
  if (path.damage !== null) throw path.damage;
}

interface Path {
  /** Readable commits, newest first. */
  readonly commits: string[];
  readonly damage: DurableError<'ledger-damaged'> | null;
}

/** The readable commits of a chain and the first damage on the way, newest first; goes commit by commit only if it must. */
export async function pathOf(
  storage: Storage,
  task: string,
  range: Omit<Range, 'oldestFirst'>,
): Promise<Path> {
  const args = [
    'rev-list',
    '--first-parent',
    range.to,
    ...(range.after === null ? [] : [`^${range.after}`]),
    '--',
  ];
  const listing = await storage.git.run(args);
  if (listing.code !== 0 || listing.stdout.length === 0) return walkedPath(storage, task, range);
  return { commits: listing.stdout.toString('latin1').trimEnd().split('\n'), damage: null };
}

async function walkedPath(storage: Storage, task: string, range: Omit<Range, 'oldestFirst'>): Promise<Path> {
  const commits: string[] = [];
  let damage: Path['damage'] = null;
  let below: number | null = null;
  for (let at: string | null = range.to; at !== null && at !== range.after;) {
    const raw: RawEvent | DurableError | null = await readRaw(storage, at).catch(asError);
    if (raw instanceof DurableError || raw === null) {
      damage ??= damaged(task, at, raw);
      at = await eventBefore(storage, task, at, below === null ? null : below - 2);
      below = below === null ? null : below - 1;
    } else {
      commits.push(at);
      below = seqOf(raw.message);
      at = raw.parents[0] ?? null;
    }
  }
  return { commits, damage };
}

/** One commit; null when it is nowhere. Errors: 'object-damaged', 'event-invalid' when it is no commit. */
export async function readRaw(storage: Storage, commit: string): Promise<RawEvent | null> {
  const object = await storage.objects.read(commit);
  if (object === undefined) return null;
  if (object.type !== 'commit') {
    throw new DurableError('event-invalid', { commit, detail: `it is a ${object.type}` });
  }
  const { parents, message } = parseCommit(object.body);
  return { commit, parents, message };
}

export function damaged(task: string, commit: string, cause: unknown): DurableError<'ledger-damaged'> {
  const detail = isDurableError(cause) ? factOf(cause) : 'its object is missing';
  return new DurableError('ledger-damaged', { task, commit, detail }, cause ?? undefined);
}

function seqOf(message: string): number | null {
  const seq = /\nDurable-Seq: (\d+)\n/.exec(message)?.[1];
  return seq === undefined ? null : Number(seq);
}

function asError(error: unknown): DurableError {
  if (isDurableError(error)) return error;
  throw error;
}
