import test from 'ava';
import { knownText, type KnownApproval } from '../../lib/agents/known.js';
import { AgentSession } from '../helpers/agent-session.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Listed {
  readonly pending: readonly { readonly id: string; readonly args: { readonly command: string } }[];
}

const pending = (place: Scratch): Listed['pending'] =>
  (JSON.parse(durable(place, ['approvals', '--json']).stdout) as Listed).pending;

test('an agent that begins is told which requests were answered meanwhile, with the words of who answered, and which still wait', async (t) => {
  const place = scratch(t);
  const first = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  first.prompt('publish', 'p1');
  for (const command of ['npm publish', 'git push']) {
    first.before(command, 'Bash', { command });
    first.fire('PermissionRequest', { tool_name: 'Bash', tool_input: { command } });
  }
  await first.kill();
  const published = pending(place).find(({ args }) => args.command === 'npm publish');
  t.is(durable(place, ['reject', published?.id ?? '', '--feedback', 'the version is wrong']).code, 0);
  const next = AgentSession.start(t, place, { agent: 'codex', session: 's2' });
  const told = next.fire('SessionStart', { source: 'startup' }).context;
  t.regex(told, /was rejected by .*, saying: the version is wrong: Bash .*npm publish/);
  t.regex(told, /is pending: Bash .*git push/);
  t.regex(told, /Interrupted turn/);
  // Once more, with nothing interrupted any longer: what was answered still counts.
  t.regex(next.fire('SessionStart', { source: 'resume' }).context, /was rejected by/);
});

test('what an agent is told stays short however much there is, and says where the rest is', (t) => {
  const one: KnownApproval = {
    id: 'a',
    state: 'approved',
    by: 'someone',
    tool: 'Bash',
    args: 'x'.repeat(100_000),
    feedback: null,
  };
  const answered = Array.from({ length: 100 }, () => one);
  const waiting = answered.map((approval) => ({ ...approval, state: 'pending' }));
  const told = knownText([], [], { approvals: [...answered, ...waiting], late: [] }) ?? '';
  t.true(told.length < 9000, String(told.length));
  t.regex(told, /git durable approvals --json$/);
  t.is(knownText([], [], { approvals: [], late: [] }), null);
});
