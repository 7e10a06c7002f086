import { existsSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { AgentSession } from '../helpers/agent-session.js';
import { gitEvents } from '../helpers/git-events.js';
import { keeperSocket } from '../helpers/keeper-client.js';
import { keeperOf, killKeeper } from '../helpers/keeper.js';
import { stateOf, until } from '../helpers/processes.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Orphaned {
  readonly place: Scratch;
  readonly agent: AgentSession;
  readonly killed: number;
}

/** A turn whose keeper was killed. */
async function orphaned(t: ExecutionContext): Promise<Orphaned> {
  const place = scratch(t);
  const agent = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  agent.prompt('work', 'p1');
  const killed = await keeperOf(place);
  await killKeeper(place);
  return { place, agent, killed };
}

/** Waits for another one than that; a test's time limit bounds it. */
async function nextKeeper(place: Scratch, killed: number): Promise<number> {
  for (;;) {
    const now = await keeperOf(place);
    if (now !== killed) return now;
  }
}

const types = (place: Scratch): string[] => gitEvents<{ type: string }>(place).map(({ type }) => type);

test('a keeper that was killed in a turn is started anew at the next step: it listens, and sees the agent die', async (t) => {
  const { place, agent, killed } = await orphaned(t);
  t.is(agent.before('c1', 'Bash', { command: 'true' }).refused, null);
  const keeper = await nextKeeper(place, killed);
  t.false(['', 'Z'].includes(stateOf(keeper)));
  await until('it listens', () => existsSync(keeperSocket(place.dir)));
  agent.after('c1', 'Bash', { command: 'true' });
  t.is(await keeperOf(place), keeper, 'one that lives is left alone');
  await agent.kill();
  await until('the death is on record', () => types(place).includes('turn.interrupted'));
  await until('the keeper gone', () => ['', 'Z'].includes(stateOf(keeper)));
  t.is(durable(place, ['verify']).code, 0);
});

test('the end of a turn starts no keeper, nor does a session that holds none', async (t) => {
  const { place, agent, killed } = await orphaned(t);
  const other = AgentSession.start(t, place, { agent: 'claude-code', session: 's2' });
  t.not(other.before('c1', 'Write', { file_path: join(place.dir, 'x'), content: '' }).refused, null);
  t.is(await keeperOf(place), killed);
  agent.fire('Stop');
  t.is(types(place).at(-1), 'lease.released');
  t.false(existsSync(join(place.dir, '.git', 'index.lock')));
});
