import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { systemHost } from '../../lib/host.js';
import { openRepository } from '../../lib/index.js';
import { PACK_FROM } from '../../lib/ledger/pack.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const TURNS = 60;
const STEERED = 40;

const names = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => !entry.isDirectory())
        .map(({ name }) => name)
    : [];

/** Files of each kind below the git dir. */
function counts(place: Scratch): Record<string, number> {
  const git = join(place.dir, '.git');
  const ours = (folder: string): number => names(join(git, 'durable', folder)).length;
  return {
    tickets: ours('tickets'),
    claims: ours('claims'),
    stages: readdirSync(join(git, 'durable/stage')).length,
    quarantines: readdirSync(join(git, 'durable/quarantine')).length,
    writing: ours('writing'),
    torn: ours('torn'),
    snapshot: ours('snapshot'),
    journal: ours('journal'),
    keeps: names(join(git, 'objects/pack')).filter((name) => name.endsWith('.keep')).length,
    loose: Number(/^count: (\d+)$/m.exec(place.git('count-objects', '-v'))?.[1]),
    locks: names(git).filter((name) => name.endsWith('.lock')).length,
    leases: names(join(git, 'refs/durable/leases')).length,
  };
}

test(`what ${String(TURNS)} turns with checkpoints leave in the git dir is bounded, and one git gc packs the rest`, async (t) => {
  const place = scratch(t);
  place.git('config', 'durable.fsync', 'false');
  const repository = await openRepository(place.dir, { ...systemHost(), env: place.env });
  const most: Record<string, number> = {};
  for (let index = 0; index < TURNS; index += 1) {
    const turn = await repository.startTurn({
      objective: 'grow',
      agent: 'tester',
      task: 'grow',
      keeper: false,
    });
    for (let times = 0; times < STEERED; times += 1) await turn.steer(`${String(index)} ${String(times)}`);
    await turn.transaction([{ kind: 'write', path: 'grown', bytes: Buffer.from(`${String(index)}\n`) }]);
    await turn.checkpoint('a checkpoint');
    await turn.finish({ outcome: 'completed' });
    for (const [kind, count] of Object.entries(counts(place))) most[kind] = Math.max(most[kind] ?? 0, count);
  }
  await repository.close();
  // What a turn's end leaves for the next one at most, whichever turn it was.
  const {
    journal = 0,
    loose = 0,
    keeps = 0,
    snapshot = 0,
    tickets = 0,
    stages = 0,
    leases = 0,
    ...none
  } = most;
  t.deepEqual(none, { claims: 0, quarantines: 0, writing: 0, torn: 0, locks: 0 });
  t.true(tickets <= 1 && stages <= 1 && leases === 1, JSON.stringify(most));
  t.true(keeps <= 16, `${String(keeps)} packs are kept`);
  t.true(snapshot <= 16, `${String(snapshot)} files of the private git dir`);
  // One turn's events come on top of the number from which they are packed.
  const turnful = PACK_FROM + STEERED + 100;
  t.true(journal <= turnful && loose <= turnful + 100, JSON.stringify(most));
  const now = counts(place);
  t.true((now['journal'] ?? 0) < journal, 'the journal was packed at least once');
  t.deepEqual([now['tickets'], now['stages'], now['quarantines']], [0, 0, 0]);

  place.git('gc', '-q', '--prune=now');
  const { packs } = { packs: Number(/^packs: (\d+)$/m.exec(place.git('count-objects', '-v'))?.[1]) };
  t.true(packs <= 1 + keeps, `${String(packs)} packs after a gc`);
  t.is(place.git('fsck', '--strict', '--no-dangling'), '');
  const again = await openRepository(place.dir, { ...systemHost(), env: place.env });
  t.true((await again.verify('grow')).ok);
  await again.close();
});
