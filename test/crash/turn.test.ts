import test from 'ava';
import { survivesKills } from '../helpers/process-death.js';

test('a turn with its keeper: killed at any fault point, the keeper says so and ends', async (t) => {
  await survivesKills(t, 'turn');
});
