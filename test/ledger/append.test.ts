import test from 'ava';
import { systemHost } from '../../lib/host.js';
import { openStorage } from '../../lib/git/storage.js';
import { openTask } from '../../lib/ledger/ledger.js';
import { acquire } from '../../lib/lease/acquire.js';
import { mixedTurn } from '../helpers/event-mix.js';
import { scratch } from '../helpers/scratch.js';

test('a turn of events is appended, folded, and readable in git log', async (t) => {
  const { dir, env } = scratch(t);
  const storage = await openStorage(dir, { ...systemHost(), env });
  const ledger = await openTask(storage, { objective: 'Rename the parser', agent: 'test', workspace: null });
  const held = await acquire(storage, {
    kind: 'turn',
    task: ledger.task,
    turn: 'turn-1',
    turnKey: null,
    objective: 'x',
    agent: 'test',
  });
  const by = { lease: held.token, agent: 'test', workspace: null };
  const drafts = mixedTurn(1, { seed: 1, lease: held.token.lease, runtime: held.token.runtime });
  for (const draft of drafts) await ledger.append(() => [draft], by);
  const state = await ledger.state();
  t.is(state.turn?.state, 'finished');
  t.is(state.turn?.invocations.length, 12);
  await storage.close();
});
