import test from 'ava';
import { told } from '../../cli/drill/agents/scripted-model.js';
import { BOUND_MS } from '../../cli/drill/agents/bound.js';
import { approvals } from '../helpers/asking.js';
import { CodexServer } from '../helpers/agents/codex-server.js';
import { Scene } from '../helpers/agents/scene.js';
import { report } from '../helpers/interrupted-run.js';
import { until } from '../helpers/processes.js';
import { durable } from '../helpers/program.js';

const COMMAND = 'echo "to  production" >> ../deployed.txt';

for (const answer of ['approve', 'reject'] as const)
  test.serial(
    `codex app-server: a question is on record with its exact arguments, and ${answer} from another terminal answers it`,
    async (t) => {
      const scene = await Scene.open(t);
      const { place } = scene;
      place.git('config', 'durable.wait', '600');
      const agent = scene.agent('codex');
      scene.model.follow({ '#first': [{ shell: COMMAND, isOutside: true }] });
      const server = await CodexServer.open(agent, place.dir);
      await server.begin(place.dir, 'do #first');
      await until('a question is on record', () => approvals(place).pending.length === 1, BOUND_MS);
      const [pending] = approvals(place).pending;
      t.is((pending?.['args'] as { command: string }).command, COMMAND);
      t.is(scene.file('../deployed.txt'), null);
      const words = answer === 'reject' ? ['--feedback', 'not on a Friday'] : [];
      t.is(durable(place, [answer, String(pending?.['id']), ...words]).code, 0);
      await server.turnIsOver();
      t.is(scene.file('../deployed.txt'), answer === 'approve' ? 'to  production\n' : null);
      t.deepEqual(server.asked, []);
      t.deepEqual(approvals(place).pending, []);
      const said = told(scene.model.requests('#first').at(-1), 'tool');
      if (answer === 'reject') t.regex(said, /not on a Friday/);
      t.deepEqual(
        scene.events('invocation.finished').map(({ state }) => state),
        [answer === 'approve' ? 'finished' : 'denied'],
      );
      await server.kill();
      t.is(durable(place, ['verify']).code, 0);
    },
  );

test.serial(
  'codex app-server: killed at a question, the turn is interrupted, the question is kept and nothing ran',
  async (t) => {
    const scene = await Scene.open(t);
    const { place } = scene;
    const agent = scene.agent('codex');
    scene.model.follow({ '#first': [{ shell: COMMAND, isOutside: true }] });
    const server = await CodexServer.open(agent, place.dir);
    await server.begin(place.dir, 'do #first');
    await until('Codex asks its person', () => server.asked.length === 1, BOUND_MS);
    await server.kill();
    const [found] = report(place).interrupted;
    t.deepEqual(
      found?.approvals.map(({ args }) => (args as { command: string }).command),
      [COMMAND],
    );
    t.is(scene.file('../deployed.txt'), null);
    const holder = scene.events('turn.started')[0]?.['holder'] as { pid: number };
    t.is(holder.pid, server.pid);
  },
);
