import { watch } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { refMoved } from '../../lib/decisions/wait.js';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { systemHost } from '../../lib/host.js';
import { openRepository } from '../../lib/index.js';
import { pendingId, script } from '../helpers/asking.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const AN_HOUR = 3_600_000;
const REF = 'refs/durable/tasks/waited';

interface Watched {
  readonly place: Scratch;
  readonly storage: Storage;
  /** How often the ref was read. */
  readonly reads: () => number;
}

/** A repository in which somebody waits, and every read of a ref by the one who waits is counted. */
async function watched(t: ExecutionContext): Promise<Watched> {
  const place = scratch(t);
  const opened = await openStorage(place.dir, { ...systemHost(), env: place.env });
  t.teardown(() => opened.close());
  let count = 0;
  const refs = new Proxy(opened.refs, {
    get: (target, name) => {
      if (name !== 'read') return Reflect.get(target, name, target) as unknown;
      return (ref: string) => {
        count += 1;
        return target.read(ref);
      };
    },
  });
  return { place, storage: { ...opened, refs }, reads: () => count };
}

const waits = ({ storage }: Watched, oid: string | null, slowLookMs = AN_HOUR): Promise<boolean> =>
  refMoved(storage, REF, { oid, deadlineMs: storage.host.monotonicMs() + AN_HOUR, slowLookMs });

const head = (place: Scratch): string => place.git('rev-parse', 'HEAD');

/** Lets everything that is due run, many times over: a busy waiter would read each time. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise(setImmediate);
}

test('who waits is woken by the file system alone, whichever process moved the ref', async (t) => {
  const waiter = await watched(t);
  const { place } = waiter;
  place.git('update-ref', REF, head(place));
  const waiting = waits(waiter, head(place));
  place.git('commit', '-q', '--allow-empty', '-m', 'next');
  place.git('update-ref', REF, head(place));
  t.true(await waiting);
});

test('while nothing happens nothing is read, and then no more than once for each thing that happened', async (t) => {
  const waiter = await watched(t);
  const { place } = waiter;
  const first = head(place);
  place.git('update-ref', REF, first);
  let seen = 0;
  const watcher = watch(join(place.dir, '.git/refs/durable/tasks'), () => (seen += 1));
  t.teardown(() => {
    watcher.close();
  });
  const waiting = waits(waiter, first);
  await turns(2000);
  t.is(waiter.reads(), 1);
  for (const other of ['a', 'b', 'c']) place.git('update-ref', `${REF}-${other}`, first);
  await turns(2000);
  place.git('update-ref', '-d', REF);
  t.true(await waiting);
  await turns(10);
  t.true(waiter.reads() <= 1 + seen, `${String(waiter.reads())} reads, ${String(seen)} things seen`);
});

test('a ref in a folder that is not there yet wakes who waits for it', async (t) => {
  const waiter = await watched(t);
  const { place } = waiter;
  const waiting = waits(waiter, null);
  await turns(100);
  place.git('update-ref', REF, head(place));
  t.true(await waiting);
});

test('a ref that git packed, its folder gone with it, wakes who waits when it moves', async (t) => {
  const waiter = await watched(t);
  const { place } = waiter;
  const first = head(place);
  place.git('update-ref', REF, first);
  const waiting = waits(waiter, first);
  place.git('pack-refs', '--all', '--prune');
  await turns(2000);
  place.git('commit', '-q', '--allow-empty', '-m', 'next');
  place.git('update-ref', REF, head(place));
  t.true(await waiting);
});

test('where no event comes the slow look finds the move', async (t) => {
  const waiter = await watched(t);
  const { place, storage } = waiter;
  // Held by packed-refs alone, in another folder than the watched one.
  const waiting = refMoved(
    { ...storage, layout: { ...storage.layout, commonDir: join(place.top, 'home') } },
    REF,
    { oid: null, deadlineMs: storage.host.monotonicMs() + AN_HOUR, slowLookMs: 20 },
  );
  place.git('update-ref', REF, head(place));
  t.true(await waiting);
});

test('the wait ends at its deadline, and when it is called off', async (t) => {
  const { storage } = await watched(t);
  const now = storage.host.monotonicMs();
  t.false(await refMoved(storage, REF, { oid: null, deadlineMs: now + 20 }));
  const control = new AbortController();
  const waiting = refMoved(storage, REF, { oid: null, deadlineMs: now + AN_HOUR, signal: control.signal });
  control.abort();
  t.false(await waiting);
});

test('a call that waits in one process goes on by the answer of another', async (t) => {
  const place = scratch(t);
  const running = script(t, place, `durable ask --tool deploy --args '{}' --wait 3600 -- echo ran`);
  t.is(durable(place, ['approve', await pendingId(place)]).code, 0);
  t.is(await running.line(), 'ran');
  await running.ended;
  const repository = await openRepository(place.dir, { ...systemHost(), env: place.env });
  t.is((await repository.approvals())[0]?.approval.state, 'consumed');
  await repository.close();
});

/** Loaded into a process: each of its timers that is longer than a moment is said, and takes a thousand times as long. */
const NO_TIMERS = `
import { writeSync } from 'node:fs';
const timer = globalThis.setTimeout;
globalThis.setTimeout = (run, ms, ...more) => {
  if (ms < 100) return timer(run, ms, ...more);
  writeSync(1, 'asleep\\n');
  return timer(run, Math.min(ms * 1000, 2 ** 31 - 1), ...more);
};
`;

test('a call that waits in one process is woken by the answer of another, and not by its clock', async (t) => {
  const place = scratch(t);
  const loaded = `--import=data:text/javascript,${encodeURIComponent(NO_TIMERS).replaceAll("'", '%27')}`;
  const ask = `durable ask --tool deploy --args '{}' --wait 3600 -- echo ran`;
  const running = script(t, place, `export NODE_OPTIONS='${loaded}'; ${ask}`);
  t.is(await running.line(), 'asleep');
  t.is(durable(place, ['approve', await pendingId(place)]).code, 0);
  let line: string | undefined;
  do line = await running.line();
  while (line === 'asleep');
  t.is(line, 'ran');
  t.is((await running.ended).code, 0);
});
