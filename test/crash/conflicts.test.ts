import test from 'ava';
import { survivesKills } from '../helpers/process-death.js';

test('conflicts: killed at any fault point, none is lost, and each answer is carried out or taken back', async (t) => {
  await survivesKills(t, 'conflicts');
});
