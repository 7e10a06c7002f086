import test from 'ava';
import { survivesKills } from '../helpers/process-death.js';

test('writes to another file system: killed at any step of one, every path is before or after and no ticket is left', async (t) => {
  await survivesKills(t, 'elsewhere');
});
