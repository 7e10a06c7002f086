/**
 * Every flush is needed: each kind (fault point, and file or folder) is left out of the recordings, and some cut must
 * break a promise; a flush that nothing misses has to go from the code. A kind that one scenario was seen to miss
 * is not tried again in the next.
 */
import test from 'ava';
import { cutsUntilDamage, flushKinds, recordScenario } from '../helpers/power-loss.js';
import { SCENARIOS } from '../helpers/scenarios.js';

/** Cuts without damage before a flush is called needless. */
const TRIES = 200;

test('with any one kind of flush taken out, some power cut breaks a promise', async (t) => {
  t.timeout(20 * 60 * 1000);
  const missed = new Set<string>();
  const needless = new Set<string>();
  for (const name of Object.keys(SCENARIOS)) {
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
  t.true(missed.size >= 7);
});
