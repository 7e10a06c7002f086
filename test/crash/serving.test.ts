import test from 'ava';
import { survivesKills } from '../helpers/process-death.js';

test('serving: a keeper killed at any fault point loses no step that it answered, and the next run needs no help', async (t) => {
  await survivesKills(t, 'serving');
});
