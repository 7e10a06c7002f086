import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { openRepository, systemHost, type Repository } from '../../lib/index.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const open = (place: Scratch): Promise<Repository> =>
  openRepository(place.dir, { ...systemHost(), env: place.env });
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

test('a turn grounds itself: HEAD, branch, index, status and instruction files', async (t) => {
  const place = scratch(t);
  place.write('AGENTS.md', 'be careful\n');
  place.write('sub/CLAUDE.md', 'here too\n');
  place.git('add', '--', 'AGENTS.md');
  const index = sha256(readFileSync(join(place.dir, '.git/index')));
  const repository = await open(place);
  const turn = await repository.startTurn({ objective: 'ground', keeper: false });
  const events = [];
  for await (const recorded of repository.events(turn.task)) events.push(recorded.event);
  const started = events.find((event) => event.type === 'turn.started');
  t.is(started?.baseline.head, place.git('rev-parse', 'HEAD'));
  t.is(started?.baseline.branch, 'refs/heads/main');
  t.is(started?.baseline.index, index);
  t.deepEqual(started?.instructions, [
    { path: 'AGENTS.md', digest: sha256(Buffer.from('be careful\n')) },
    { path: 'sub/CLAUDE.md', digest: sha256(Buffer.from('here too\n')) },
  ]);
  const status = await repository.storage.objects.read(started?.baseline.status.oid ?? '');
  t.is(status?.body.toString('utf8'), 'A  AGENTS.md\0?? sub/CLAUDE.md\0');
  await turn.finish({ outcome: 'completed' });
  t.is(sha256(readFileSync(join(place.dir, '.git/index'))), index);
  await repository.close();
});

test('the loser of a turn key is given the identity of the winner', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const turn = await repository.startTurn({ objective: 'once', key: 'k', keeper: false });
  await t.throwsAsync(repository.startTurn({ objective: 'once', key: 'k', keeper: false }), {
    message: new RegExp(turn.id),
  });
  const error = await t.throwsAsync(repository.startTurn({ objective: 'once', key: 'k', keeper: false }));
  t.like(error, { code: 'turn-claimed', fields: { turn: turn.id, holder: { pid: process.pid } } });
  await t.throwsAsync(repository.startTurn({ objective: 'another', key: 'other', keeper: false }), {
    message: /held by/,
  });
  await turn.finish({ outcome: 'completed' });
  const late = await t.throwsAsync(repository.startTurn({ objective: 'once', key: 'k', keeper: false }));
  t.like(late, { code: 'turn-claimed', fields: { turn: turn.id, state: 'finished' } });
  await repository.close();
});

test('a key is remembered over any number of turns of its task', async (t) => {
  const repository = await open(scratch(t));
  const first = await repository.startTurn({ objective: 'first', key: 'k', task: 'job', keeper: false });
  await first.finish({ outcome: 'completed' });
  for (let n = 0; n < 3; n++) {
    const turn = await repository.startTurn({ objective: 'more', task: 'job', keeper: false });
    await turn.finish({ outcome: 'completed' });
  }
  t.like(
    await t.throwsAsync(repository.startTurn({ objective: 'again', key: 'k', task: 'job', keeper: false })),
    {
      code: 'turn-claimed',
      fields: { turn: first.id },
    },
  );
  await repository.close();
});
