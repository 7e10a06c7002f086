import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { answerWithin, LIMITS } from '../../lib/agents/limits.js';
import { AGENTS, type Step } from '../../lib/agents/step.js';
import { AgentSession } from '../helpers/agent-session.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const FROM = { session: 's', cwd: null, transcript: null };
const STEPS: readonly Step[] = [
  { ...FROM, kind: 'before-tool', call: 'c', tool: 'Bash', input: {} },
  { ...FROM, kind: 'stop', outcome: 'abandoned', summary: '', turn: null, model: null },
  { ...FROM, kind: 'session-end', reason: 'other' },
  { ...FROM, kind: 'permission', request: null, call: null, tool: 'Bash', input: {} },
];

for (const agent of AGENTS) {
  test(`a hook of ${agent} answers before the agent stops listening, and before the limit it was given`, (t) => {
    const { usual, interrupt, sessionEnd, question } = LIMITS[agent];
    for (const [n, limit] of [usual, interrupt, sessionEnd, question].entries()) {
      const step = STEPS[n];
      if (step === undefined) return t.fail();
      t.true(answerWithin(agent, step, 0) < limit);
      t.true(answerWithin(agent, step, 1000) < 1000);
    }
    return undefined;
  });
}

const ledgerOf = (place: Scratch): string =>
  place.git('for-each-ref', '--format=%(refname)', 'refs/durable/tasks/');

test('a change that cannot be put on record in the time of the hook is refused in that time; what reads is not', (t) => {
  const place = scratch(t);
  const agent = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  agent.prompt('write', 'p1');
  const lock = join(place.dir, '.git', `${ledgerOf(place)}.lock`);
  // A git of a person's that holds the ref, for longer than any hook may wait.
  writeFileSync(lock, '');
  place.git('config', 'durable.hookLimit', '1');
  t.regex(agent.before('c1', 'Bash', { command: 'true' }).refused ?? '', /time limit/);
  t.is(agent.before('c2', 'Read', { file_path: 'README' }).refused, null);
  rmSync(lock);
  place.git('config', '--unset', 'durable.hookLimit');
  t.is(agent.before('c3', 'Bash', { command: 'true' }).refused, null);
  t.is(durable(place, ['verify']).code, 0);
});

test('a session that ends with an open turn records the end alone, since its host waits for no snapshot', (t) => {
  const place = scratch(t);
  const agent = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  agent.prompt('write', 'p1');
  agent.end();
  const finished = place
    .git('log', '--format=%B', ledgerOf(place))
    .split('\n')
    .filter((line) => line.startsWith('{') && line.includes('"type":"turn.finished"'))
    .map((line) => JSON.parse(line) as { outcome: string; checkpoint: string | null });
  t.deepEqual(
    finished.map(({ outcome, checkpoint }) => [outcome, checkpoint]),
    [['abandoned', null]],
  );
});
