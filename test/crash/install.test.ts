import test from 'ava';
import { survivesKills } from '../helpers/process-death.js';

test('init and uninstall: killed at any fault point, git commits with the hooks of its user, either verb finishes when it is done again, and nothing stays', async (t) => {
  await survivesKills(t, 'installing');
});
