import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { AgentSession } from '../helpers/agent-session.js';
import { PROGRAMS } from '../../lib/package.js';
import { durable } from '../helpers/program.js';
import { gitEvents, ledgers } from '../helpers/git-events.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Logged {
  readonly type: string;
  readonly task: string;
  readonly turn: string | null;
}

/** Of the first ledger. */
const events = (place: Scratch): Logged[] => gitEvents(place, ledgers(place).slice(0, 1));

const typesIn = (all: readonly Logged[]): string[] => all.map(({ type }) => type);

const writeOf = (place: Scratch, path: string, content: string): Record<string, string> => ({
  file_path: join(place.dir, path),
  content,
});

test('a clean turn of an agent is recorded call by call, and gives its lease back', (t) => {
  const place = scratch(t);
  const agent = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  t.is(agent.fire('SessionStart', { source: 'startup' }).context, '');
  t.is(agent.prompt('write a file', 'p1').context, '');
  const input = writeOf(place, 'new.txt', 'unknown');
  t.is(agent.before('c1', 'Write', input).refused, null);
  place.write('new.txt', 'unknown');
  agent.after('c1', 'Write', input);
  t.is(agent.before('c2', 'Bash', { command: 'true' }).refused, null);
  agent.after('c2', 'Bash', { command: 'true' });
  agent.fire('Stop', { last_assistant_message: 'done' });
  agent.fire('SessionEnd', { reason: 'other' });
  const kinds = typesIn(events(place)).filter((type) => /^(?:turn|invocation)\./.test(type));
  const call = ['invocation.proposed', 'invocation.started', 'invocation.finished'];
  t.deepEqual(kinds, ['turn.started', ...call, ...call, 'turn.finished']);
  const status = JSON.parse(durable(place, ['status', '--json']).stdout) as { lease: unknown };
  t.is(status.lease, null);
  t.is(durable(place, ['verify']).code, 0);
  t.is(place.git('status', '--porcelain'), '?? new.txt');
});

test('the same prompt, call or end reported twice is one event', (t) => {
  const place = scratch(t);
  const agent = AgentSession.start(t, place, { agent: 'codex', session: 's1' });
  const patch = { command: '*** Begin Patch\n*** Add File: a.txt\n+a\n*** End Patch\n' };
  for (const again of [1, 2]) {
    agent.fire('UserPromptSubmit', { prompt: 'go', turn_id: 'p1' });
    t.is(agent.before('c1', 'apply_patch', patch).refused, null, String(again));
  }
  for (const again of [1, 2]) t.is(agent.after('c1', 'apply_patch', patch).stderr, '', String(again));
  const counted = typesIn(events(place)).filter((type) => /^(?:turn|invocation)\./.test(type));
  t.deepEqual(counted, ['turn.started', 'invocation.proposed', 'invocation.started', 'invocation.finished']);
});

test('a second session is told who holds the work tree, may read, and is refused its first change', (t) => {
  const place = scratch(t);
  const first = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  const second = AgentSession.start(t, place, { agent: 'codex', session: 's2' });
  first.prompt('rename the symbol', 'p1');
  const told = second.prompt('something else', 'p2').context;
  for (const word of ['read-only', 'claude-code', String(first.pid), 'rename the symbol'])
    t.true(told.includes(word), `${word} in: ${told}`);
  t.is(second.before('c1', 'view_image', { path: 'README' }).refused, null);
  const refused = second.before('c2', 'Bash', { command: 'touch x' }).refused ?? '';
  t.regex(refused, /nothing ran/);
  t.true(refused.includes('claude-code') && refused.includes('rename the symbol'), refused);
  first.fire('Stop');
  t.is(second.before('c3', 'Bash', { command: 'touch x' }).refused, null);
});

test('the turn that a refused session starts with its first tool later is for what it was asked, which is kept for its owner alone, and no longer than the session', (t) => {
  const place = scratch(t);
  const first = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  const second = AgentSession.start(t, place, { agent: 'codex', session: 's2' });
  const objectives = (): unknown[] => {
    const all: { type: string; objective?: string }[] = ledgers(place).flatMap((one) =>
      gitEvents(place, [one]),
    );
    return all.filter(({ type }) => type === 'turn.started').map(({ objective }) => objective);
  };
  const kept = (): string[] =>
    readdirSync(join(place.dir, '.git/durable/agents')).filter((name) => name.startsWith('asked-'));
  first.prompt('rename the symbol', 'p1');
  second.prompt("mend the \u00e9dit of 'README'", 'p2');
  t.deepEqual(
    kept().map((name) => statSync(join(place.dir, '.git/durable/agents', name)).mode & 0o777),
    [0o600],
  );
  first.fire('Stop');
  t.is(second.before('c1', 'Bash', { command: 'true' }).refused, null);
  t.true(objectives().includes("mend the \u00e9dit of 'README'"), JSON.stringify(objectives()));
  second.fire('Stop');
  second.prompt('another', 'p3');
  t.deepEqual(kept(), [], 'a prompt that starts a turn is in it');
  t.regex(first.prompt('x'.repeat(5000), 'p4').context, /read-only/);
  t.is(kept().length, 1);
  for (const name of kept()) t.true(statSync(join(place.dir, '.git/durable/agents', name)).size <= 2002);
  first.end();
  t.deepEqual(kept(), []);
});

test('after a kill the next agent is told what was interrupted, and goes on in the same task', async (t) => {
  const place = scratch(t);
  const first = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  first.prompt('change the README', 'p1');
  t.is(first.before('c1', 'Write', writeOf(place, 'README', 'new text\n')).refused, null);
  place.write('README', 'new te');
  await first.kill();
  const next = AgentSession.start(t, place, { agent: 'codex', session: 's2' });
  const told = next.fire('SessionStart', { source: 'startup' }).context;
  t.regex(told, /interrupted/);
  t.regex(told, /change the README/);
  t.regex(told, /file README: partial/);
  t.regex(told, /call Write \(in-doubt\)/);
  t.is(readFileSync(join(place.dir, 'README'), 'utf8'), 'new te');
  t.is(next.prompt('go on', 'p2').context, '');
  next.fire('Stop');
  t.is(ledgers(place).length, 1);
  t.is(durable(place, ['verify']).code, 0);
});

test('a session that comes back under its own id after a kill is another process, and is told as any other', async (t) => {
  const place = scratch(t);
  const first = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  first.prompt('run it', 'p1');
  first.before('c1', 'Bash', { command: 'npm test' });
  await first.kill();
  const again = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  const told = again.prompt('go on', 'p2').context;
  t.regex(told, /call Bash \(in-doubt\): .*npm test/);
  t.is(again.before('c2', 'Bash', { command: 'true' }).refused, null);
});

test('a turn that nobody ended is abandoned by the next prompt; with a call under way that prompt steers it', (t) => {
  const place = scratch(t);
  const agent = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  agent.prompt('first', 'p1');
  agent.prompt('second', 'p2');
  agent.before('c1', 'Bash', { command: 'sleep 1' });
  agent.prompt('hurry', 'p3');
  const kinds = typesIn(events(place)).filter((type) => /^turn\.|^steering/.test(type));
  t.deepEqual(kinds, ['turn.started', 'turn.finished', 'turn.started', 'steering.received']);
});

test('a tool that changes files is refused when its payload is not understood; nothing else is', (t) => {
  const place = scratch(t);
  const agent = AgentSession.start(t, place, { agent: 'claude-code', session: '' });
  t.regex(agent.before('c1', 'Write', {}).refused ?? '', /does not understand/);
  t.is(agent.after('c1', 'Write', {}).refused, null);
  t.regex(agent.fire('Stop').stderr, /not understood/);
});

test('what tells of something done and is not understood is kept whole and private, and is on record as that once its turn is over', (t) => {
  const place = scratch(t);
  const agent = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  agent.prompt('write', 'p1');
  const input = { command: 'true', secret: 'of the payload' };
  t.is(agent.before('c1', 'Bash', input).refused, null);
  const said = agent.fire('PostToolUse', { tool_use_id: 7, tool_name: 'Bash', tool_input: input });
  t.regex(said.stderr, /kept in the inbox[^]*not understood/);
  for (const line of ['{"hook_event_name":"Stop"', ''])
    t.is(place.run(process.execPath, [PROGRAMS.hook, 'claude-code'], { input: line }).code, 0);
  const folder = join(place.dir, '.git', 'durable', 'inbox');
  const kept = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
  t.is(kept.length, 2);
  t.is(kept.filter((text) => text.includes('of the payload')).length, 1);
  t.deepEqual(
    [...new Set(readdirSync(folder).map((name) => statSync(join(folder, name)).mode & 0o777))],
    [0o600],
  );
  agent.fire('Stop');
  const next = AgentSession.start(t, place, { agent: 'claude-code', session: 's2' });
  next.fire('SessionStart', { source: 'startup' });
  t.is(readdirSync(folder).filter((name) => name.endsWith('.late.json')).length, 2);
  const observed = events(place).filter(({ type }) => type === 'git.observed');
  t.regex(JSON.stringify(observed), /claude-code said what is not understood/);
  t.notRegex(JSON.stringify(observed), /of the payload/);
});

test('a hook outside of any repository lets the agent be', (t) => {
  const place = scratch(t, { repository: false });
  const agent = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  const said = agent.before('c1', 'Bash', { command: 'true' });
  t.deepEqual([said.refused, said.stderr], [null, '']);
});
