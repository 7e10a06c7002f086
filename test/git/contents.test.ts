import test from 'ava';
import { DurableError } from '../../lib/errors.js';
import { Contents } from '../../lib/git/contents.js';
import { newTask, openRepository } from '../helpers/turn.js';

const code = (expected: string) => ({ instanceOf: DurableError, code: expected });

test('kept bytes are reachable, come back exactly, and git sees them under payload/', async (t) => {
  const { scratch, ledger } = await newTask(t);
  const bytes = [Buffer.from([0, 255, 10, 13]), Buffer.alloc(0), Buffer.from('{"x":1}')];
  const kept = await ledger.contents.keep(bytes);
  for (const [index, entry] of kept.entries()) {
    t.deepEqual(await ledger.contents.read(entry), bytes[index]);
    t.is(scratch.git('rev-parse', `${ledger.contents.ref}:payload/${String(index)}`), entry.oid);
    t.is(entry.bytes, bytes[index]?.length ?? -1);
  }
  t.is(scratch.git('fsck', '--strict', '--unreachable'), '');
});

test('keeping nothing writes nothing', async (t) => {
  const { storage, ledger } = await newTask(t);
  t.deepEqual(await ledger.contents.keep([]), []);
  t.is(storage.refs.read(ledger.contents.ref), null);
});

test('many keepers at once lose nothing and leave no litter', async (t) => {
  const { scratch, ledger } = await newTask(t);
  const keepers = await Promise.all(
    [1, 2, 3].map(async () => new Contents(await openRepository(t, scratch), ledger.task)),
  );
  const kept = await Promise.all(
    keepers.flatMap((keeper, k) =>
      [1, 2, 3, 4].map((n) => keeper.keep([Buffer.from(`${String(k)} ${String(n)}`)])),
    ),
  );
  t.is(scratch.git('rev-list', '--count', ledger.contents.ref), '12');
  const reachable = scratch.git('rev-list', '--objects', ledger.contents.ref);
  t.true(kept.flat().every(({ oid }) => reachable.includes(oid)));
  t.is(scratch.git('fsck', '--strict', '--unreachable', '--no-reflogs'), '');
});

test('a commit of contents holds the work tree and the payload it was given', async (t) => {
  const { scratch, storage, ledger } = await newTask(t);
  const worktree = scratch.git('rev-parse', 'HEAD^{tree}');
  const blob = await storage.objects.write('blob', Buffer.from('note'));
  const commit = await ledger.contents.commitTree({
    worktree,
    payload: new Map([['absent', blob]]),
    message: 'checkpoint: by hand',
  });
  t.is(scratch.git('rev-parse', `${commit}:worktree`), worktree);
  t.is(scratch.git('show', `${commit}:payload/absent`), 'note');
  t.is(scratch.git('log', '-1', '--format=%s', commit), 'checkpoint: by hand');
});

test('bytes that were purged or are not what was kept are named and never returned', async (t) => {
  const { scratch, ledger } = await newTask(t);
  const [kept] = await ledger.contents.keep([Buffer.from('x')]);
  const oid = kept?.oid ?? '';
  await t.throwsAsync(ledger.contents.read({ oid: '0'.repeat(40) }), code('object-missing'));
  await t.throwsAsync(
    ledger.contents.read({ oid, digest: '0'.repeat(64), bytes: 1 }),
    code('object-damaged'),
  );
  await t.throwsAsync(
    ledger.contents.read({ oid: scratch.git('rev-parse', 'HEAD') }),
    code('object-damaged'),
  );
});
