import test from 'ava';
import { survivesKills } from '../helpers/process-death.js';

test('inbox: killed at any fault point of it, what was kept is on record once or lies there whole, and the next agent takes in what it can', async (t) => {
  await survivesKills(t, 'inbox');
});
