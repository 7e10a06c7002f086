import test from 'ava';
import { survivesKills } from '../helpers/process-death.js';

test('housekeeping: killed at any fault point, nothing acknowledged is lost and the next run needs no help', async (t) => {
  await survivesKills(t, 'housekeeping');
});
