import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { commitBody } from '../../lib/git/objects-format.js';
import { Ledger } from '../../lib/ledger/ledger.js';
import { packJournal } from '../../lib/ledger/pack.js';
import { anyone, observed, openRepository, openTurn, steering } from '../helpers/turn.js';

const counted = (text: string, name: string): number =>
  Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(text)?.[1]);

test('a journal that has grown becomes one pack with .keep; events and contents are read as before', async (t) => {
  const { scratch, storage, ledger, append } = await openTurn(t);
  const [kept] = await ledger.contents.keep([Buffer.from('exact arguments')]);
  for (let n = 0; n < 30; n += 1) await append(steering(`note ${String(n)}`));
  t.is(await packJournal(storage, 1000), 0);
  const loose = counted(scratch.git('count-objects', '-v'), 'count');
  const packed = await packJournal(storage, 10);
  t.true(packed >= 36);
  const objects = scratch.git('count-objects', '-v');
  t.is(counted(objects, 'count'), loose - packed);
  t.is(counted(objects, 'in-pack'), packed);
  t.is(
    readdirSync(join(scratch.dir, '.git/objects/pack')).filter((name) => name.endsWith('.keep')).length,
    1,
  );
  const [lease] = storage.refs.list('refs/durable/leases/').values();
  t.deepEqual(storage.loose.journalled(), [lease]);
  t.is(scratch.git('fsck', '--strict', '--no-dangling'), '');
  const cold = Ledger.open(await openRepository(t, scratch), ledger.task);
  t.is(await intact(cold), 33);
  t.true(kept !== undefined && (await cold.contents.read(kept)).toString() === 'exact arguments');
  await append(steering('and on'));
  t.is(await intact(ledger), 34);
});

test('what no ref reaches yet keeps its place in the journal: it may be an append in flight', async (t) => {
  const { scratch, storage, ledger } = await openTurn(t);
  const head = storage.refs.read(ledger.ref) ?? '';
  const tree = scratch.git('rev-parse', `${head}^{tree}`);
  const at = storage.host.now();
  const flying = await storage.objects.write(
    'commit',
    commitBody({ tree, parents: [head], message: 'x', at }),
  );
  await packJournal(storage, 1);
  t.true(storage.loose.journalled().includes(flying));
  scratch.git('gc', '-q', '--force', '--prune=now');
  t.is((await storage.objects.read(flying))?.type, 'commit');
});

test('git gc, repack and prune after packing lose nothing', async (t) => {
  const { scratch, storage, ledger } = await openTurn(t);
  for (let n = 0; n < 20; n += 1) await ledger.append(() => [observed(String(n))], anyone);
  await packJournal(storage, 1);
  scratch.git('gc', '-q', '--force', '--prune=now');
  scratch.git('repack', '-adq');
  scratch.git('prune', '--expire=now');
  t.like(await ledger.verify(), { ok: true, events: 23 });
  t.is(scratch.git('fsck', '--strict'), '');
});

test('a sha256 repository is packed the same way', async (t) => {
  const { storage, ledger } = await openTurn(t, { objectFormat: 'sha256' });
  const [kept] = await ledger.contents.keep([Buffer.from('x')]);
  await packJournal(storage, 1);
  t.is(storage.loose.journalled().length, 1);
  t.true(kept !== undefined && (await ledger.contents.read(kept)).toString() === 'x');
  t.is(await intact(ledger), 3);
});

/** How many events verify; the made-up contents of the fixtures aside. */
async function intact(ledger: Ledger): Promise<number> {
  const { events, findings } = await ledger.verify();
  return findings.some(({ code }) => code !== 'contents-missing') ? -1 : events;
}
