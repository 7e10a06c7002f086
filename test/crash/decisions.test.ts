import test from 'ava';
import { survivesKills } from '../helpers/process-death.js';

test('approvals: killed at any fault point, no answer is lost, used twice or given twice', async (t) => {
  await survivesKills(t, 'decisions');
});
