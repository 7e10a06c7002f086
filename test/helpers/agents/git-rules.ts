/** Rules for the git that an agent's own shell runs, and for an agent that a turn has started. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { AgentName } from '../../../lib/agents/step.js';
import { PROGRAMS } from '../../../lib/package.js';
import { document } from '../events.js';
import { at } from '../json.js';
import { durable } from '../program.js';
import { HOLD, Scene } from './scene.js';
import { TOOLS } from './short-rules.js';

/** The shells of the others read the turn's environment. */
const WITHOUT_SHIM: readonly AgentName[] = ['codex'];

export const stagesItself = test.macro({
  title: (_, name: AgentName) =>
    `${name}: in the mode strict its own git stages and commits, and a person’s git ${WITHOUT_SHIM.includes(name) ? 'is refused by hooks, as status says' : 'is refused by the lock'}`,
  exec: async (t, name: AgentName) => {
    const scene = await Scene.open(t);
    const { place } = scene;
    const agent = scene.agent(name);
    const steps = [
      { write: 'a.txt', content: 'a\n' },
      { shell: HOLD },
      { shell: 'git add a.txt && git commit -qm "by the agent"' },
    ];
    scene.model.follow({ '#first': steps });
    const run = await agent.started({ prompt: 'do #first' });
    await scene.line('at');
    const hasShim = !WITHOUT_SHIM.includes(name);
    t.is(existsSync(join(place.dir, '.git', 'index.lock')), hasShim);
    t.is(at(document(place, ['status'])['fence'], 'mode'), hasShim ? 'strict' : 'hooks');
    place.write('of a person', '');
    if (hasShim) t.is(place.run('git', ['add', 'of a person']).code, 128);
    t.not(place.run('git', ['commit', '--allow-empty', '-m', 'of a person']).code, 0);
    place.write('go', '');
    t.is(await run.ended, 0, run.said);
    t.is(place.git('log', '-1', '--format=%s'), 'by the agent', run.said);
    t.is(place.git('show', '--name-only', '--format='), 'a.txt');
    t.deepEqual(
      scene.events('invocation.finished').map(({ state }) => state),
      ['finished', 'finished', 'finished'],
    );
    t.is(document(place, ['status'])['lease'], null);
    t.is(durable(place, ['verify']).code, 0);
  },
});

export const startedByRun = test.macro({
  title: (_, name: AgentName) =>
    `${name}: started by run and with our hooks, its calls are recorded in the turn of run, and its git stages`,
  exec: async (t, name: AgentName) => {
    const scene = await Scene.open(t);
    const agent = scene.agent(name);
    scene.model.follow({
      '#first': [
        { write: 'a.txt', content: 'a\n' },
        { shell: 'git add a.txt && git commit -qm "by the agent"' },
      ],
    });
    const below = [process.execPath, PROGRAMS.main, 'run', '--'];
    const run = await agent.run({ prompt: 'do #first', below });
    t.is(await run.ended, 0, run.said);
    t.is(scene.place.git('log', '-1', '--format=%s'), 'by the agent', run.said);
    t.deepEqual(
      scene.events('invocation.proposed').map(({ tool }) => tool),
      ['run', TOOLS[name].write, TOOLS[name].shell],
    );
    t.is(scene.events('turn.started').length, 1);
    t.deepEqual(
      scene.events('turn.finished').map(({ exit }) => exit),
      [0],
    );
    t.is(durable(scene.place, ['verify']).code, 0);
  },
});
