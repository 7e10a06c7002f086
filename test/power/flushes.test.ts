/**
 * Every flush is needed: each kind (fault point, and file or folder) is left out of the recordings, and some cut must
 * break a promise; a flush that nothing misses has to go from the code. A kind that one scenario was seen to miss
 * is not tried again in the next.
 */
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { systemHost } from '../../lib/host.js';
import { openRepository } from '../../lib/repository.js';
import { Judge } from '../helpers/ledger-judge.js';
import { cutsUntilDamage, flushKinds, recordScenario } from '../helpers/power-loss.js';
import { RECORDED } from '../helpers/scenarios.js';
import { scratch } from '../helpers/scratch.js';
import { readTree, treeDigest } from '../helpers/tree-state.js';

/** Cuts without damage before a flush is called needless. */
const TRIES = 200;

/**
 * Kept though no cut was seen to miss it: git compares no checksum of an index that it reads, and what it makes of a torn one
 * is the business of each of its versions. For the one at hand the test below shows it.
 */
const KEPT = 'snapshot.index:fsync of a file';

test('with any one kind of flush taken out, some power cut breaks a promise', async (t) => {
  t.timeout(25 * 60 * 1000);
  const missed = new Set<string>([KEPT]);
  const needless = new Set<string>();
  for (const name of RECORDED) {
    const recorded = await recordScenario(t, name);
    for (const [kind, indexes] of flushKinds(recorded)) {
      if (missed.has(kind)) continue;
      const cuts = await cutsUntilDamage(recorded, indexes, TRIES);
      t.log(
        `${name}: ${kind}: ${cuts === undefined ? 'nothing missed it' : `missed after ${String(cuts)} cuts`}`,
      );
      if (cuts === undefined) needless.add(kind);
      else missed.add(kind);
    }
  }
  t.deepEqual(
    [...needless].filter((kind) => !missed.has(kind)),
    [],
  );
  t.true(missed.size >= 14);
});

test('a private index that lost any one sector gives a whole checkpoint all the same', async (t) => {
  const { dir, env } = scratch(t);
  const judge = new Judge(dir, env);
  const taken = async (): Promise<string> => {
    const repository = await openRepository(dir, { ...systemHost(), env });
    const { checkpoint } = await repository.checkpoint({ message: 'taken' });
    await repository.close();
    return checkpoint;
  };
  const many = Array.from({ length: 40 }, (_, number) => join(dir, 'many', `file ${String(number)}`));
  writeFileSync(join(dir, 'first'), 'one\n');
  await taken();
  mkdirSync(join(dir, 'many'));
  for (const path of many) writeFileSync(path, `${path}\n`);
  await taken();
  for (const path of [join(dir, 'first'), ...many.slice(0, 4)]) writeFileSync(path, 'two\n');
  await taken();
  const snapshot = join(dir, '.git/durable/snapshot');
  const kept = join(dir, '.git/kept');
  cpSync(snapshot, kept, { recursive: true, preserveTimestamps: true });
  const whole = treeDigest(readTree(dir));
  let sectors = 0;
  for (const name of readdirSync(kept).filter((one) => /^(?:sharedindex\.|index$)/.test(one))) {
    const bytes = readFileSync(join(kept, name));
    for (let at = 0; at < bytes.length; at += 512) {
      rmSync(snapshot, { recursive: true });
      cpSync(kept, snapshot, { recursive: true, preserveTimestamps: true });
      chmodSync(join(snapshot, name), 0o644);
      writeFileSync(join(snapshot, name), Buffer.from(bytes).fill(0, at, Math.min(at + 512, bytes.length)));
      t.is(judge.checkpoint(await taken()), whole, `${name} at ${String(at)}`);
      sectors += 1;
    }
  }
  t.true(sectors > 8);
});
