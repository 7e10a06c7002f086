import { appendFileSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { AgentSession } from '../helpers/agent-session.js';
import { document, events } from '../helpers/events.js';
import { at } from '../helpers/json.js';
import { durable } from '../helpers/program.js';
import { scratch, type Ran, type Scratch } from '../helpers/scratch.js';

interface Hooked {
  readonly place: Scratch;
  readonly agent: AgentSession;
  /** The file of which Claude Code runs the lines before each command. */
  readonly envFile: string;
}

/** Claude Code in its turn, which has told its hook of the file. */
function hooked(t: ExecutionContext, mode = 'strict'): Hooked {
  const place = scratch(t);
  t.is(durable(place, ['init', '--fence', mode]).code, 0);
  const agent = AgentSession.start(t, place, { agent: 'claude-code', session: mode });
  const envFile = join(place.top, 'env file');
  appendFileSync(envFile, 'export OF_ANOTHER=1');
  agent.fire('SessionStart', { source: 'startup' }, { CLAUDE_ENV_FILE: envFile });
  return { place, agent, envFile };
}

/** A command of its shell tool, on record, and run as the agent runs it. */
function shell({ place, agent, envFile }: Hooked, call: string, command: string): Ran {
  const refused = agent.before(call, 'Bash', { command }).refused;
  if (refused !== null) throw new Error(refused);
  const ran = place.run('sh', ['-c', `. "$0"\n${command}`, envFile]);
  agent.after(call, 'Bash', { command });
  return ran;
}

const isLocked = ({ dir }: Scratch): boolean => existsSync(join(dir, '.git', 'index.lock'));

test('Claude Code in the mode strict: its own git stages and commits, another’s is refused by the lock, and nothing of it outlives the turn', (t) => {
  const one = hooked(t);
  const { place, agent, envFile } = one;
  place.write('made', 'by the agent\n');
  place.write('other', 'of a person\n');
  agent.prompt('commit it', 'p1');
  t.true(isLocked(place));
  const ran = shell(one, 'c1', 'git add made && git commit -qm made && printf %s "$OF_ANOTHER"');
  t.deepEqual([ran.code, ran.stdout, ran.stderr], [0, '1', '']);
  t.is(place.git('log', '-1', '--format=%s'), 'made');
  t.is(place.git('status', '--porcelain'), '?? other');
  t.is(place.run('git', ['add', 'other']).code, 128);
  const { fence } = document(place, ['status']);
  t.deepEqual([at(fence, 'mode'), at(fence, 'reason'), at(fence, 'problems')], ['strict', null, []]);
  agent.fire('Stop');
  t.false(isLocked(place));
  const after = place.run('sh', ['-c', '. "$0"; env', envFile]);
  t.is(after.code, 0);
  t.notRegex(after.stdout, /DURABLE_|git\/shim/);
  t.is(durable(place, ['verify']).code, 0);
  t.is(events(place, '--type', 'git.observed').length, 0);
});

test('its session starts again inside a turn: the same line is told once, and the turn’s environment stays', (t) => {
  const one = hooked(t);
  one.agent.prompt('stage it', 'p1');
  one.agent.fire('SessionStart', { source: 'compact' }, { CLAUDE_ENV_FILE: one.envFile });
  t.is(
    readFileSync(one.envFile, 'utf8')
      .split('\n')
      .filter((line) => line.includes('own-git')).length,
    1,
  );
  one.place.write('made', '');
  t.is(shell(one, 'c1', 'git add made').code, 0);
  one.agent.fire('Stop');
});

test('the turn’s secret is its user’s alone to read, and another agent’s shells do not take it for their own', (t) => {
  const one = hooked(t);
  one.agent.prompt('hold it', 'p1');
  const second = AgentSession.start(t, one.place, { agent: 'claude-code', session: 'second' });
  const envFile = join(one.place.top, 'second');
  second.fire('SessionStart', { source: 'startup' }, { CLAUDE_ENV_FILE: envFile });
  const folder = join(one.place.dir, '.git', 'durable', 'own-git');
  t.deepEqual(
    [...new Set(readdirSync(folder).map((name) => statSync(join(folder, name)).mode & 0o777))],
    [0o600],
  );
  t.is(statSync(folder).mode & 0o777, 0o700);
  t.notRegex(one.place.run('sh', ['-c', '. "$0"; env', envFile]).stdout, /DURABLE_MARKER/);
  one.agent.fire('Stop');
});

test('an agent that was killed leaves no environment to the one after it', async (t) => {
  const one = hooked(t);
  one.agent.prompt('die', 'p1');
  await one.agent.kill();
  const next = AgentSession.start(t, one.place, { agent: 'claude-code', session: 'next' });
  const envFile = join(one.place.top, 'next');
  next.fire('SessionStart', { source: 'startup' }, { CLAUDE_ENV_FILE: envFile });
  next.prompt('go on', 'p2');
  t.is(readdirSync(join(one.place.dir, '.git', 'durable', 'own-git')).length, 1);
  one.place.write('made', '');
  t.is(shell({ place: one.place, agent: next, envFile }, 'c1', 'git add made').code, 0);
  next.fire('Stop');
});

test('an agent whose git can have no shim is fenced by hooks alone, and status says why', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['init']).code, 0);
  place.write('made', 'by the agent\n');
  const agent = AgentSession.start(t, place, { agent: 'codex', session: 's1' });
  agent.prompt('stage it', 'p1');
  t.false(isLocked(place));
  t.is(place.run('git', ['add', 'made']).code, 0);
  t.is(place.run('git', ['commit', '-m', 'of another']).code, 1);
  const { fence } = document(place, ['status']);
  t.deepEqual([at(fence, 'mode'), at(fence, 'healthy')], ['hooks', true]);
  t.regex(String(at(fence, 'reason')), /codex.*no shim/);
  t.regex(durable(place, ['status']).stdout, /fence +hooks: the git of codex/);
  agent.fire('Stop');
  t.is(at(document(place, ['status'])['fence'], 'mode'), 'strict');
});

test('a lock that is missing is no fault, and is not put there, where a turn has none', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['init']).code, 0);
  const agent = AgentSession.start(t, place, { agent: 'codex', session: 's1' });
  agent.prompt('wait', 'p1');
  t.is(agent.before('c1', 'Bash', { command: 'true' }).refused, null);
  t.deepEqual(at(document(place, ['doctor']), 'problems') ?? [], []);
  t.false(isLocked(place));
  agent.after('c1', 'Bash', { command: 'true' });
  agent.fire('Stop');
  t.false(isLocked(place));
});
