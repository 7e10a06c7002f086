/** What becomes of an agent's own question when the agent is killed at it. */
import test from 'ava';
import type { AgentName } from '../../../lib/agents/step.js';
import { approvals } from '../asking.js';
import { until } from '../processes.js';
import { durable } from '../program.js';
import { BOUND_MS } from '../../../cli/drill/agents/bound.js';
import { Scene } from './scene.js';
import { told } from '../../../cli/drill/agents/scripted-model.js';

const COMMAND = 'echo "to  production" >> deployed.txt';

export const killedAtQuestion = test.macro({
  title: (_, name: AgentName) =>
    `${name}: killed at a question, it is kept with its exact arguments; answered meanwhile, the call runs once without another`,
  exec: async (t, name: AgentName) => {
    const scene = await Scene.open(t);
    scene.place.git('config', 'durable.wait', '600');
    const agent = scene.agent(name);
    scene.model.follow({ '#first': [{ shell: COMMAND }] });
    const run = await agent.started({ prompt: 'do #first', asks: true });
    await until('a question is on record', () => approvals(scene.place).pending.length === 1, BOUND_MS);
    await run.kill();
    const [pending] = approvals(scene.place).pending;
    const args = { command: COMMAND, description: 'as the script says' };
    t.deepEqual(pending?.['args'], args);
    t.is(scene.file('deployed.txt'), null);
    t.deepEqual(
      scene.interrupted().approvals.map(({ id, args: asked }) => [id, asked]),
      [[pending?.['id'], args]],
    );
    const approved = durable(scene.place, ['approve', String(pending?.['id'])]);
    t.is(approved.code, 0, approved.stderr);
    scene.model.follow({ '#second': [{ shell: COMMAND }] });
    const again = await agent.run({ prompt: 'go on with #second', isResumed: true, asks: true });
    const said = told(scene.model.requests('#second')[0], 'system', 'person');
    t.regex(said, /git-durable: earlier work in this repository was interrupted/, again.said);
    t.is(scene.file('deployed.txt'), 'to  production\n', again.said);
    t.deepEqual(approvals(scene.place).pending, []);
    t.is(scene.events('approval.requested').length, 1);
    t.is(scene.events('approval.consumed').length, 1);
    t.is(durable(scene.place, ['verify']).code, 0);
  },
});
