/** Rules that every agent is held to; each is one test, and takes several runs of agents. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { AGENTS, type AgentName } from '../../../lib/agents/step.js';
import { entryOf } from '../../../lib/lease/processes.js';
import { leaseOf, readLease, swapLease } from '../../../lib/lease/record.js';
import { workspaceId } from '../../../lib/lease/workspace.js';
import { document } from '../events.js';
import { killKeeper } from '../keeper.js';
import { openAs } from '../lease-place.js';
import { until } from '../processes.js';
import { durable } from '../program.js';
import { BOUND_MS } from '../../../cli/drill/agents/bound.js';
import { HOLD, LONG, Scene } from './scene.js';
import { told } from '../../../cli/drill/agents/scripted-model.js';
import { TOOLS } from './short-rules.js';

/** Another agent for each. */
const nextTo = (name: AgentName): AgentName => AGENTS[(AGENTS.indexOf(name) + 1) % AGENTS.length] ?? name;

/** In whose tool input the whole new content stands, so that a file can be called written. */
const TELLS_CONTENT: readonly AgentName[] = ['claude-code'];

export const killedInEdit = test.macro({
  title: (_, name: AgentName) =>
    `${name}: killed in an edit, what is said of the file is what its bytes say, and the call has not failed`,
  exec: async (t, name: AgentName) => {
    const scene = await Scene.open(t);
    const agent = scene.agent(name);
    const content = 'a line of the edit\n'.repeat(20_000);
    scene.model.follow({ '#first': [{ write: 'a.txt', content }] });
    const run = await agent.started({ prompt: 'do #first' });
    await until('the edit has begun', () => scene.file('a.txt') !== null, BOUND_MS);
    await run.kill();
    const found = scene.interrupted();
    const [call] = found.invocations;
    t.is(call?.['tool'], TOOLS[name].write);
    // The hook that tells of the end may have been started already, and lives on.
    t.true(['in-doubt', 'finished'].includes(String(call?.['state'])), String(call?.['state']));
    const isWhole = scene.file('a.txt') === content;
    const expected = TELLS_CONTENT.includes(name) ? (isWhole ? 'written' : 'partial') : 'changed';
    t.deepEqual(
      found.files.map(({ path, state, now }) => [path, state, now]),
      [['a.txt', expected, scene.place.git('hash-object', '--no-filters', '--', 'a.txt')]],
    );
    t.true(found.gitStatusMatches);
    scene.model.follow({ '#second': [] });
    const again = await agent.run({ prompt: 'go on with #second', isResumed: true });
    const said = told(scene.model.requests('#second')[0], 'system', 'person');
    t.regex(said, new RegExp(`file a\\.txt: ${expected}`), again.said);
    const undone = durable(scene.place, ['restore', String(scene.events('turn.started')[0]?.['checkpoint'])]);
    t.is(undone.code, 0, undone.stderr);
    t.is(scene.file('a.txt'), null);
  },
});

export const resumedByAnother = test.macro({
  title: (_, name: AgentName) =>
    `${name}: what was interrupted is told to ${nextTo(name)}, which goes on in the same task`,
  exec: async (t, name: AgentName) => {
    const scene = await Scene.open(t);
    const [first, second] = [scene.agent(name), scene.agent(nextTo(name))];
    scene.model.follow({ '#first': [{ write: 'a.txt', content: 'a\n' }, { shell: LONG }] });
    const run = await first.started({ prompt: 'do #first' });
    await scene.line('at');
    await run.kill();
    scene.model.follow({ '#second': [{ shell: 'echo b > b.txt' }] });
    const other = await second.run({ prompt: 'go on with #second' });
    const said = told(scene.model.requests('#second')[0], 'system', 'person');
    t.regex(said, new RegExp(`Interrupted turn \\w+ of ${name}, begun .*: .*do #first`), other.said);
    t.regex(said, new RegExp(`call ${TOOLS[name].shell} \\(in-doubt\\): .*exec sleep 600`));
    t.is(scene.file('b.txt'), 'b\n');
    const started = scene.events('turn.started');
    t.deepEqual(
      started.map(({ agent }) => agent),
      [name, second.name],
    );
    t.is(new Set(started.map(({ task }) => task)).size, 1);
    t.is(document(scene.place, ['status'])['lease'], null);
    t.is(durable(scene.place, ['verify']).code, 0);
  },
});

export const twoAtOnce = test.macro({
  title: (_, name: AgentName) =>
    `${name}: a second session of ${nextTo(name)} is refused its change by name, and the first ends whole`,
  exec: async (t, name: AgentName) => {
    const scene = await Scene.open(t);
    const [first, second] = [scene.agent(name), scene.agent(nextTo(name))];
    scene.model.follow({ '#first': [{ shell: HOLD }], '#second': [{ write: 'b.txt', content: 'b\n' }] });
    const run = await first.started({ prompt: 'do #first' });
    await scene.line('at');
    const other = await second.run({ prompt: 'do #second' });
    const answer = told(scene.model.requests('#second').at(-1), 'tool');
    t.regex(answer, /nothing ran/, other.said);
    for (const word of [name, 'do #first']) t.true(answer.includes(word), answer);
    t.is(scene.file('b.txt'), null);
    writeFileSync(join(scene.place.dir, 'go'), '');
    t.is(await run.ended, 0, run.said);
    t.deepEqual(
      scene.events('turn.finished').map(({ agent, outcome }) => [agent, outcome]),
      [[name, 'completed']],
    );
    t.is(durable(scene.place, ['verify']).code, 0);
  },
});

export const leaseLost = test.macro({
  title: (_, name: AgentName) =>
    `${name}: with its keeper killed and its lease another's, its next tool is refused, and the model reads whose it is`,
  exec: async (t, name: AgentName) => {
    const scene = await Scene.open(t);
    const agent = scene.agent(name);
    scene.model.follow({ '#first': [{ shell: HOLD }, { write: 'late.txt', content: 'late\n' }] });
    const run = await agent.started({ prompt: 'do #first' });
    await scene.line('at');
    await killKeeper(scene.place);
    await takeLease(t, scene);
    writeFileSync(join(scene.place.dir, 'go'), '');
    await run.ended;
    const answer = told(scene.model.requests('#first').at(-1), 'tool');
    t.regex(answer, /git-durable.*nothing ran/, run.said);
    for (const word of ['thief', 'it was taken']) t.true(answer.includes(word), answer);
    t.is(scene.file('late.txt'), null);
    const finished = scene.events('invocation.finished').map(({ invocation }) => invocation);
    t.deepEqual(finished, [], 'nothing was recorded under a lease that is lost');
  },
});

/** As another process of this host would have it, had it ended the agent first: the agent here lives on. */
async function takeLease(t: Parameters<typeof openAs>[0], { place }: Scene): Promise<void> {
  const storage = await openAs(t, place);
  const lease = leaseOf(workspaceId(storage, { create: false }) ?? '');
  const current = await readLease(storage, lease);
  if (current === null) throw new Error('no lease to take');
  const { record } = current;
  const start = entryOf(process.pid)?.start ?? '';
  const holder = { ...record.holder, agent: 'thief', runtime: 'thief', pid: process.pid, start };
  const taken = { epoch: record.epoch + 1, acquisition: 'thief', objective: 'it was taken', holder };
  const none = { sessions: [], markerHash: null, keeper: null, task: null, turn: null, turnKey: null };
  const swapped = await swapLease(storage, current.oid, { ...record, ...none, ...taken });
  if (!swapped.moved) throw new Error('the lease moved under the thief');
}
