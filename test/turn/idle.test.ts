import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import { openRepository, systemHost } from '../../lib/index.js';
import { leaseOf, readLease, tokenOf } from '../../lib/lease/record.js';
import { ownWorkspace } from '../../lib/lease/take.js';
import { abandonIdle } from '../../lib/turn/idle.js';
import { AgentSession } from '../helpers/agent-session.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Finished {
  readonly type: string;
  readonly outcome?: string;
  readonly summary?: string;
}

const events = (place: Scratch): Finished[] =>
  place
    .git(
      'log',
      '--reverse',
      '--format=%B',
      place.git('for-each-ref', '--format=%(refname)', 'refs/durable/tasks/'),
    )
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Finished);

const holder = (place: Scratch): unknown =>
  (JSON.parse(durable(place, ['status', '--json']).stdout) as { lease: unknown }).lease;

test('a turn of an agent that lives and does nothing more is abandoned by its keeper, and the next prompt begins another', async (t) => {
  const place = scratch(t);
  place.git('config', 'durable.idle', '1');
  const agent = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  agent.prompt('publish', 'p1');
  while (holder(place) !== null) await setImmediate();
  const [finished] = events(place).filter(({ type }) => type === 'turn.finished');
  t.is(finished?.outcome, 'abandoned');
  t.regex(finished?.summary ?? '', /durable\.idle/);
  t.is(agent.prompt('again', 'p2').context, '');
  t.is(durable(place, ['verify']).code, 0);
});

test('a turn with a call under way is not idle, and is once that call has ended', async (t) => {
  const place = scratch(t);
  const repository = await openRepository(place.dir, { ...systemHost(), env: place.env });
  const { storage } = repository;
  const turn = await repository.startTurn({ objective: 'work', keeper: false });
  const lease = await readLease(storage, leaseOf(ownWorkspace(storage)));
  if (lease === null) return t.fail();
  const token = tokenOf(lease.record);
  await turn.requestApproval({ tool: 'shell', args: 'x' });
  const call = await turn.begin({ tool: 'shell', args: 'sleep', mutates: false });
  t.false(await abandonIdle(storage, token, 0));
  t.is(events(place).at(-1)?.type, 'invocation.started');
  await call.end({ state: 'finished' });
  t.true(await abandonIdle(storage, token, 0));
  const [finished] = events(place).filter(({ type }) => type === 'turn.finished');
  t.is(finished?.outcome, 'abandoned');
  await t.throwsAsync(abandonIdle(storage, token, 0), { code: 'no-turn' });
  await repository.close();
  return undefined;
});

test('a call that only waits for an answer in its host keeps no turn from being idle', async (t) => {
  const place = scratch(t);
  place.git('config', 'durable.idle', '1');
  const agent = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  agent.prompt('publish', 'p1');
  const input = { command: 'npm publish' };
  agent.before('c1', 'Bash', input);
  agent.fire('PermissionRequest', { tool_name: 'Bash', tool_input: input });
  while (holder(place) !== null) await setImmediate();
  t.is(events(place).filter(({ type }) => type === 'turn.finished')[0]?.outcome, 'abandoned');
  t.is(durable(place, ['verify']).code, 0);
});
