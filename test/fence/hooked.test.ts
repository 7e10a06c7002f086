import test from 'ava';
import { AgentSession } from '../helpers/agent-session.js';
import { durable } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';

test('an agent with hooks has no shim: its git stages nothing in the mode strict, and as ever in the mode hooks', (t) => {
  for (const mode of ['strict', 'hooks']) {
    const place = scratch(t);
    t.is(durable(place, ['init', '--fence', mode]).code, 0);
    place.write('made', 'by the agent\n');
    const agent = AgentSession.start(t, place, { agent: 'claude-code', session: mode });
    agent.prompt('stage it', 'p1');
    t.is(agent.before('c1', 'Bash', { command: 'git add made' }).refused, null);
    const added = place.run('git', ['add', 'made']);
    t.is(added.code, mode === 'strict' ? 128 : 0, mode);
    if (mode === 'strict') t.regex(added.stderr, /index\.lock/);
    t.is(place.git('diff', '--cached', '--name-only'), mode === 'strict' ? '' : 'made');
    agent.after('c1', 'Bash', { command: 'git add made' });
    agent.fire('Stop');
    place.git('add', 'made');
  }
});
