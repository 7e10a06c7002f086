import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { hasCode, type ErrorCode } from '../../lib/errors.js';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { systemHost, type Host } from '../../lib/host.js';
import { until } from '../helpers/processes.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { Worker } from '../helpers/worker.js';

const LEASE = 'refs/durable/leases/ws-a';
const TASK = 'refs/durable/tasks/a';
/** Long enough for one try and a wait, short enough for a test of what stays locked. */
const SHORT_MS = 60;

interface Opened {
  readonly place: Scratch;
  readonly storage: Storage;
  /** Four commits to move refs between. */
  readonly commits: readonly [string, string, string, string];
  readonly path: (ref: string) => string;
}

async function opened(t: ExecutionContext, more: Partial<Host> = {}): Promise<Opened> {
  const place = scratch(t);
  const commit = (message: string): string => place.git('commit-tree', '-m', message, 'HEAD^{tree}');
  const storage = await openStorage(place.dir, { ...systemHost(), env: place.env, ...more });
  t.teardown(() => storage.close());
  return {
    place,
    storage,
    commits: [commit('0'), commit('1'), commit('2'), commit('3')],
    path: (ref) => join(storage.layout.commonDir, ref),
  };
}

async function fails(t: ExecutionContext, code: ErrorCode, act: () => Promise<unknown>): Promise<string> {
  const error = await t.throwsAsync(act);
  t.true(hasCode(error, code), `expected ${code}: ${String(error)}`);
  return String(error);
}

/** Everything under refs/durable that is no ref: locks, values, and what else may be left over. */
function litter({ storage, place }: Opened): string[] {
  const dir = join(storage.layout.commonDir, 'refs/durable');
  const refs = new Set(place.git('for-each-ref', '--format=%(refname)').split('\n'));
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files
    .map((entry) => join(entry.parentPath, entry.name).slice(storage.layout.commonDir.length + 1))
    .filter((name) => !refs.has(name));
}

test('a ref is made, moved, and seen by git', async (t) => {
  const at = await opened(t);
  const { storage, commits, place } = at;
  t.is(storage.refs.read(TASK), null);
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: null, to: commits[0] } }), {
    moved: true,
  });
  t.is(place.git('rev-parse', TASK), commits[0]);
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: commits[0], to: commits[1] } }), {
    moved: true,
  });
  t.is(place.git('rev-parse', TASK), commits[1]);
  t.is(storage.refs.read(TASK), commits[1]);
  t.deepEqual(litter(at), []);
  place.git('fsck', '--strict');
});

test('a ref that is not where the change expects it stays, and the refusal says where it is', async (t) => {
  const at = await opened(t);
  const { storage, commits, place } = at;
  const [a, b, c] = commits;
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: a, to: b } }), {
    moved: false,
    ref: TASK,
    was: null,
  });
  place.git('update-ref', TASK, a);
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: null, to: b } }), {
    moved: false,
    ref: TASK,
    was: a,
  });
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: c, to: b } }), {
    moved: false,
    ref: TASK,
    was: a,
  });
  t.is(place.git('rev-parse', TASK), a);
  t.deepEqual(litter(at), []);
});

test('one ref moves only while the others are where they were verified', async (t) => {
  const at = await opened(t);
  const { storage, commits, place } = at;
  const [a, b] = commits;
  const move = { ref: TASK, from: null, to: b };
  t.deepEqual(await storage.refs.update({ verify: [{ ref: LEASE, oid: a }], move }), {
    moved: false,
    ref: LEASE,
    was: null,
  });
  place.git('update-ref', LEASE, b);
  t.deepEqual(await storage.refs.update({ verify: [{ ref: LEASE, oid: a }], move }), {
    moved: false,
    ref: LEASE,
    was: b,
  });
  t.is(storage.refs.read(TASK), null);
  t.deepEqual(await storage.refs.update({ verify: [{ ref: LEASE, oid: b }], move }), { moved: true });
  t.is(place.git('rev-parse', LEASE), b);
  t.deepEqual(litter(at), []);
});

test('packed refs are read, moved and listed, and a loose one wins over its packed value', async (t) => {
  const { storage, commits, place } = await opened(t);
  const [a, b, c] = commits;
  for (const ref of [TASK, LEASE, 'refs/durable/tasks/b']) place.git('update-ref', ref, a);
  place.git('tag', '-m', 'annotated', 'tagged');
  place.git('pack-refs', '--all');
  t.is(storage.refs.read(TASK), a);
  t.is(storage.refs.read('refs/durable/tasks'), null);
  t.is(storage.refs.read('durable/tasks/a'), null);
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: null, to: b } }), {
    moved: false,
    ref: TASK,
    was: a,
  });
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: a, to: b } }), { moved: true });
  t.is(place.git('rev-parse', TASK), b);
  place.git('update-ref', 'refs/durable/tasks/c', c);
  for (const prefix of ['refs/', 'refs/durable/', 'refs/durable/tasks/', 'refs/tags/', 'refs/nothing/']) {
    const listed = [...storage.refs.list(prefix)].map(([ref, oid]) => `${ref} ${oid}`).join('\n');
    t.is(listed, place.git('for-each-ref', '--format=%(refname) %(objectname)', prefix), prefix);
  }
  t.deepEqual([...storage.refs.list('refs/durable/tasks/a').keys()], [TASK]);
  place.git('update-ref', '-d', TASK);
  t.is(storage.refs.read(TASK), null);
});

test('a name that would be a folder of another ref is refused, loose or packed', async (t) => {
  const at = await opened(t);
  const { storage, commits, place } = at;
  const [a] = commits;
  const make = (ref: string) => () => storage.refs.update({ move: { ref, from: null, to: a } });
  place.git('update-ref', 'refs/durable/tasks/one', a);
  place.git('update-ref', 'refs/durable/tasks/two/x', a);
  for (const how of ['loose', 'packed']) {
    if (how === 'packed') place.git('pack-refs', '--all');
    t.true(
      (await fails(t, 'ref-conflict', make('refs/durable/tasks/one/x'))).includes('refs/durable/tasks/one'),
    );
    await fails(t, 'ref-conflict', make('refs/durable/tasks/one/x/y'));
    await fails(t, 'ref-conflict', make('refs/durable/tasks/two'));
  }
  t.deepEqual(litter(at), []);
});

test('folders that git left empty are in nobody’s way', async (t) => {
  const { storage, commits, path } = await opened(t);
  mkdirSync(path(`${TASK}/empty/deeper`), { recursive: true });
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: null, to: commits[0] } }), {
    moved: true,
  });
});

test('ref folders that git removed are made again', async (t) => {
  const { storage, commits, path, place } = await opened(t);
  const [a, b] = commits;
  await storage.refs.update({ move: { ref: TASK, from: null, to: a } });
  place.git('pack-refs', '--all');
  if (existsSync(dirname(path(TASK)))) rmdirSync(dirname(path(TASK)));
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: a, to: b } }), { moved: true });
  t.is(place.git('rev-parse', TASK), b);
});

test('no reflog is written, whatever core.logAllRefUpdates says', async (t) => {
  const { storage, commits, place, path } = await opened(t);
  place.git('config', 'core.logAllRefUpdates', 'always');
  await storage.refs.update({ move: { ref: TASK, from: null, to: commits[0] } });
  t.false(existsSync(path('logs/refs/durable')));
});

test('a lock of git is waited for, never removed, and the refusal says how long', async (t) => {
  const at = await opened(t);
  const { storage, commits, path } = at;
  const change = { verify: [], move: { ref: TASK, from: null, to: commits[0] } };
  for (const content of ['', commits[1], '{"v":1,"id":"abc"']) {
    mkdirSync(dirname(path(TASK)), { recursive: true });
    writeFileSync(path(`${TASK}.lock`), content);
    t.true((await fails(t, 'ref-locked', () => storage.refs.update(change, SHORT_MS))).includes('git'));
    t.is(readFileSync(path(`${TASK}.lock`), 'utf8'), content);
  }
  const waiting = storage.refs.update(change);
  rmSync(path(`${TASK}.lock`));
  t.deepEqual(await waiting, { moved: true });
  t.deepEqual(litter(at), []);
});

test('a refusal does not wait for a lock', async (t) => {
  const { storage, commits, place, path } = await opened(t);
  const [a, b, c] = commits;
  place.git('update-ref', TASK, a);
  writeFileSync(path(`${TASK}.lock`), '');
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: b, to: c } }, 0), {
    moved: false,
    ref: TASK,
    was: a,
  });
});

test('a lock whose owner is alive is never removed, and the refusal names the owner', async (t) => {
  const at = await opened(t);
  const { storage, commits, path, place } = at;
  const worker = await Worker.start(t, place);
  mkdirSync(dirname(path(TASK)), { recursive: true });
  t.deepEqual(await worker.ask({ do: 'take', lock: path(`${TASK}.lock`) }), { taken: 'taken' });
  const change = { move: { ref: TASK, from: null, to: commits[0] } };
  const message = await fails(t, 'ref-locked', () => storage.refs.update(change, SHORT_MS));
  t.true(message.includes(`process ${String(worker.pid)}`), message);
  const waiting = storage.refs.update(change);
  t.deepEqual(await worker.ask({ do: 'release', lock: path(`${TASK}.lock`) }), { released: true });
  t.deepEqual(await waiting, { moved: true });
  await worker.finish();
  t.deepEqual(litter(at), []);
});

test('a lock whose owner was killed is removed by the next update, with all that the owner left', async (t) => {
  const at = await opened(t);
  const { storage, commits, path, place } = at;
  const worker = await Worker.start(t, place);
  mkdirSync(dirname(path(TASK)), { recursive: true });
  await worker.ask({ do: 'take', lock: path(`${TASK}.lock`) });
  worker.signal('SIGKILL');
  await worker.ended;
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: null, to: commits[0] } }), {
    moved: true,
  });
  t.deepEqual(litter(at), []);
  t.deepEqual(readdirSync(join(storage.layout.shared, 'claims')), []);
  t.deepEqual(readdirSync(join(storage.layout.shared, 'tickets')), [storage.tickets.id]);
});

test('a lock from before the machine was started again is removed, one of another machine never', async (t) => {
  const at = await opened(t);
  const { storage, commits, path, place } = at;
  mkdirSync(dirname(path(TASK)), { recursive: true });
  const change = { move: { ref: TASK, from: null, to: commits[0] } };
  const elsewhere = await Worker.start(t, place, { identity: { hostId: 'elsewhere', bootId: 'x' } });
  await elsewhere.ask({ do: 'take', lock: path(`${TASK}.lock`) });
  elsewhere.signal('SIGKILL');
  await elsewhere.ended;
  t.true(
    (await fails(t, 'ref-locked', () => storage.refs.update(change, SHORT_MS))).includes('another host'),
  );
  rmSync(path(`${TASK}.lock`));
  const before = await Worker.start(t, place, { identity: { bootId: 'before' } });
  await before.ask({ do: 'take', lock: path(`${TASK}.lock`) });
  t.deepEqual(await storage.refs.update(change, SHORT_MS), { moved: true });
  t.deepEqual(litter(at), []);
});

test('a ref whose file is empty or torn is damaged, not absent', async (t) => {
  const { storage, commits, path } = await opened(t);
  mkdirSync(dirname(path(TASK)), { recursive: true });
  for (const torn of ['', '\n', commits[0].slice(1), `${commits[0]}0`, 'x'.repeat(40)]) {
    writeFileSync(path(TASK), torn);
    const error = t.throws(() => storage.refs.read(TASK));
    t.true(hasCode(error, 'ref-damaged'), JSON.stringify(torn));
    await fails(t, 'ref-damaged', () =>
      storage.refs.update({ move: { ref: TASK, from: null, to: commits[0] } }),
    );
  }
  t.false(existsSync(path(`${TASK}.lock`)));
});

test('symbolic refs are followed, a circle is damage', async (t) => {
  const { storage, place } = await opened(t);
  t.is(storage.refs.read('HEAD'), place.git('rev-parse', 'HEAD'));
  place.git('symbolic-ref', 'refs/durable/a', 'refs/durable/b');
  t.is(storage.refs.read('refs/durable/a'), null);
  place.git('symbolic-ref', 'refs/durable/b', 'refs/durable/a');
  t.true(
    hasCode(
      t.throws(() => storage.refs.read('refs/durable/a')),
      'ref-damaged',
    ),
  );
});

test('a linked work tree has its own HEAD and shares the other refs', async (t) => {
  const { place, commits } = await opened(t);
  place.git('worktree', 'add', '-q', '--detach', '../linked', commits[3]);
  const linked = await openStorage(join(place.top, 'linked'), { ...systemHost(), env: place.env });
  t.teardown(() => linked.close());
  t.is(linked.refs.read('HEAD'), commits[3]);
  await linked.refs.update({ move: { ref: TASK, from: null, to: commits[0] } });
  t.is(place.git('rev-parse', TASK), commits[0]);
});

test('a name that git would not take is refused as a mistake of the caller', async (t) => {
  const { storage, commits } = await opened(t);
  const wrong = [
    'HEAD',
    'refs/a/../b',
    'refs/a//b',
    'refs/a.lock',
    'refs/.a',
    'refs/a b',
    'refs/a/',
    'refs/a~1',
    'refs/a\n',
  ];
  for (const ref of wrong) {
    await t.throwsAsync(storage.refs.update({ move: { ref, from: null, to: commits[0] } }), {
      instanceOf: RangeError,
    });
  }
});

for (const point of ['ref.value:write:before', 'ref.value:fsync:before', 'ref.move:rename:before'] as const) {
  test(`no space at ${point} leaves the ref as it was and no lock`, async (t) => {
    const disk = { full: false };
    const at = await opened(t, {
      faults: {
        hit: (hit) => {
          if (disk.full && hit === point) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
        },
      },
    });
    const { storage, commits, place } = at;
    const [a, b] = commits;
    place.git('update-ref', TASK, a);
    disk.full = true;
    await fails(t, 'out-of-space', () => storage.refs.update({ move: { ref: TASK, from: a, to: b } }));
    t.is(place.git('rev-parse', TASK), a);
    t.deepEqual(litter(at), []);
    disk.full = false;
    t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: a, to: b } }), { moved: true });
  });
}

test('a lock taken away by hand and taken by another is not removed at the end of ours', async (t) => {
  const lock: { path?: string } = {};
  const at = await opened(t, {
    faults: {
      hit: (point) => {
        if (point !== 'ref.move:rename:after' || lock.path === undefined) return;
        rmSync(lock.path);
        writeFileSync(lock.path, 'of git');
      },
    },
  });
  lock.path = at.path(`${TASK}.lock`);
  await at.storage.refs.update({ move: { ref: TASK, from: null, to: at.commits[0] } });
  t.is(readFileSync(lock.path, 'utf8'), 'of git');
});

test('closing removes the ticket, and a storage that goes on writes another', async (t) => {
  const { storage, commits } = await opened(t);
  const [a, b] = commits;
  await storage.refs.update({ move: { ref: TASK, from: null, to: a } });
  const tickets = join(storage.layout.shared, 'tickets');
  t.is(readdirSync(tickets).length, 1);
  await storage.close();
  t.deepEqual(readdirSync(tickets), []);
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: a, to: b } }), { moved: true });
});

test('a ticket that somebody removed is written again', async (t) => {
  const { storage, commits } = await opened(t);
  const [a, b] = commits;
  await storage.refs.update({ move: { ref: TASK, from: null, to: a } });
  rmSync(storage.layout.shared, { recursive: true });
  t.deepEqual(await storage.refs.update({ move: { ref: TASK, from: a, to: b } }), { moved: true });
});

test('tickets and temporary files of the living stay, those of the dead go', async (t) => {
  const { storage, place } = await opened(t);
  const tickets = join(storage.layout.shared, 'tickets');
  const [alive, dead] = [await Worker.start(t, place), await Worker.start(t, place)];
  for (const worker of [alive, dead]) await worker.ask({ do: 'write', text: String(worker.pid) });
  const all = readdirSync(tickets);
  t.is(all.length, 2);
  for (const id of all) linkSync(join(tickets, id), join(tickets, `${id}.1`));
  dead.signal('SIGKILL');
  await dead.ended;
  await until('swept', () => storage.tickets.sweep() === 0);
  const left = readdirSync(tickets).filter((name) => !name.startsWith(storage.tickets.id));
  t.deepEqual(
    left.map((name) => name.split('.').length),
    [1, 2],
  );
  t.true(readFileSync(join(tickets, left[0] ?? ''), 'utf8').includes(`process ${String(alive.pid)}`));
});
