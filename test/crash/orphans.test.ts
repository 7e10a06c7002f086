import test from 'ava';
import { survivesKills } from '../helpers/process-death.js';

test('orphans: killed at any fault point of reconciling and of ending them, each is ended and recorded once', async (t) => {
  await survivesKills(t, 'orphans');
});
