import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { openRepository, systemHost, type Repository } from '../../lib/index.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const open = (place: Scratch): Promise<Repository> =>
  openRepository(place.dir, { ...systemHost(), env: place.env });

test('a restore by hand is undone by restoring the checkpoint that it returns', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const first = await repository.checkpoint({ message: 'before' });
  place.write('README', 'changed\n');
  place.write('new', 'new\n');
  const done = await repository.restore({ checkpoint: first.checkpoint.slice(0, 10) });
  t.deepEqual([done.restored, done.removed], [['README'], ['new']]);
  t.is(place.git('status', '--porcelain'), '');
  await repository.restore({ checkpoint: done.checkpoint ?? '' });
  t.is(readFileSync(join(place.dir, 'README'), 'utf8'), 'changed\n');
  t.is(readFileSync(join(place.dir, 'new'), 'utf8'), 'new\n');
  await repository.close();
});

test("a restore is refused under another's turn, and a turn under a restore finds the lease free again", async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const { checkpoint } = await repository.checkpoint();
  const turn = await repository.startTurn({
    objective: 'work',
    keeper: false,
    holder: { pid: 1, start: startOf(1) },
  });
  place.write('README', 'by the turn\n');
  const other = await openRepository(place.dir, { ...systemHost(), env: place.env, pid: 2 });
  await t.throwsAsync(other.restore({ checkpoint }), { message: /held by/ });
  t.is(readFileSync(join(place.dir, 'README'), 'utf8'), 'by the turn\n');
  await turn.finish({ outcome: 'completed' });
  await other.restore({ checkpoint });
  t.is(readFileSync(join(place.dir, 'README'), 'utf8'), 'hello\n');
  const next = await repository.startTurn({ objective: 'more', keeper: false });
  await next.finish({ outcome: 'completed' });
  await Promise.all([repository.close(), other.close()]);
});

function startOf(pid: number): string {
  const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}
