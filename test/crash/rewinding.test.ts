import test from 'ava';
import { survivesKills } from '../helpers/process-death.js';

test('rewinds: killed at any fault point, the conversation stands where the last recorded one says', async (t) => {
  await survivesKills(t, 'rewinding');
});
