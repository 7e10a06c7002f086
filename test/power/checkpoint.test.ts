import test from 'ava';
import { recordScenario, survivesCuts } from '../helpers/power-loss.js';

test('checkpoint: what was acknowledged outlives a power cut at any moment', async (t) => {
  await survivesCuts(t, await recordScenario(t, 'checkpoint'), 84);
});
