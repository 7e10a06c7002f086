import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { inboxFiles, keepPayload, type KeptPayload } from '../../lib/agents/inbox.js';
import { openStorage } from '../../lib/git/storage.js';
import { systemHost } from '../../lib/host.js';
import { AgentSession } from '../helpers/agent-session.js';
import { document } from '../helpers/events.js';
import { until } from '../helpers/processes.js';
import { durable } from '../helpers/program.js';
import { gitEvents, ledgers } from '../helpers/git-events.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const FIXTURES = new URL('../../../test/fixtures/agents/', import.meta.url);
/** The second try is that of what already lies in the inbox, or of the report itself. */
const FULL = { DURABLE_FAULTS: 'object.temp:write:before=enospc,object.temp:write:before#2=enospc' };

interface Logged {
  readonly type: string;
  readonly turn: string | null;
  readonly what?: string;
}

const events = (place: Scratch): Logged[] => gitEvents(place);

const calls = (place: Scratch): string[] =>
  events(place)
    .map(({ type }) => type)
    .filter((type) => /^(?:turn|invocation)\./.test(type));

const CALL = ['invocation.proposed', 'invocation.started', 'invocation.finished'];

const inboxOf = (place: Scratch): string => join(place.dir, '.git', 'durable', 'inbox');

function kept(place: Scratch): string[] {
  return readdirSync(inboxOf(place)).sort();
}

const statusOf = (place: Scratch): { count: number; since: string | null } =>
  document<{ inbox: { count: number; since: string | null } }>(place, ['status']).inbox;

const problems = (place: Scratch): { code: string; detail: string }[] =>
  document<{ problems: { code: string; detail: string }[] }>(place, ['doctor'], {
    codes: [0, 3],
  }).problems.filter(({ code }) => code === 'inbox');

/** Recorded from the agents, of the session and the folder of this test. */
function recorded(place: Scratch, agent: string, name: string): Record<string, unknown> {
  const payload = JSON.parse(readFileSync(new URL(`${agent}/${name}.json`, FIXTURES), 'utf8')) as object;
  if (agent === 'claude-code' || agent === 'codex') return { ...payload, session_id: 's1', cwd: place.dir };
  const { input, output } = payload as { input: object; output: unknown };
  return {
    hook: name.replace(/__.*$/, '').replace(/^event_/, 'event:'),
    directory: place.dir,
    input: { ...input, sessionID: 's1', properties: { sessionID: 's1' } },
    output,
  };
}

const REPORTS = {
  'claude-code': ['PreToolUse', 'PostToolUse', 'Stop'],
  codex: ['PreToolUse', 'PostToolUse', 'Stop'],
  opencode: ['tool.execute.before__bash', 'tool.execute.after__bash', 'event_session.idle'],
  kilo: ['tool.execute.before__bash', 'tool.execute.after__bash', 'event_session.idle'],
} as const;

for (const agent of ['claude-code', 'codex', 'opencode', 'kilo'] as const) {
  const [before, after, stop] = REPORTS[agent];
  test(`what ${agent} told of a tool when the disk was full is kept whole and private, and is on record at its next step`, (t) => {
    const place = scratch(t);
    const session = AgentSession.start(t, place, { agent, session: 's1' });
    t.is(session.run(recorded(place, agent, before)).stdout, '');
    const payload = recorded(place, agent, after);
    for (const again of [1, 2]) {
      const ran = session.run(payload, FULL);
      t.deepEqual([ran.code, ran.stdout], [0, ''], String(again));
      t.regex(ran.stderr, /kept in the inbox .*no space left/, String(again));
    }
    t.is(kept(place).length, 2);
    for (const name of kept(place)) {
      const path = join(inboxOf(place), name);
      t.is(statSync(path).mode & 0o777, 0o600);
      const file = JSON.parse(readFileSync(path, 'utf8')) as KeptPayload;
      t.is(file.payload, JSON.stringify(payload));
    }
    t.is(statusOf(place).count, 2);
    t.regex(problems(place)[0]?.detail ?? '', /^2 reports of agents, the oldest of \d{4}-/);
    t.is(session.run(recorded(place, agent, stop)).stderr, '');
    t.deepEqual(calls(place), ['turn.started', ...CALL, 'turn.finished']);
    t.deepEqual([kept(place), statusOf(place), problems(place)], [[], { count: 0, since: null }, []]);
    t.is(durable(place, ['verify']).code, 0);
  });
}

test("a turn's end that a damaged ledger refuses is kept, and 'doctor --fix' records it once the ledger is whole", (t) => {
  const place = scratch(t);
  const agent = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  agent.prompt('go', 'p1');
  const ref = join(place.dir, '.git', ledgers(place)[0] ?? '');
  const whole = readFileSync(ref);
  writeFileSync(ref, 'no object id\n');
  t.regex(agent.fire('Stop', { last_assistant_message: 'all done' }).stderr, /kept in the inbox/);
  writeFileSync(ref, whole);
  t.deepEqual(calls(place), ['turn.started']);
  t.regex(durable(place, ['doctor', '--fix']).stderr, /recorded 1 report of agents/);
  t.deepEqual(calls(place), ['turn.started', 'turn.finished']);
  t.is(statusOf(place).count, 0);
});

test('what came too late for its turn stays in the inbox: said to the next agent and on record, with no word of it in the repository', async (t) => {
  const place = scratch(t);
  const first = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  first.prompt('go', 'p1');
  const call = { tool_name: 'Bash', tool_input: { command: 'cat key' }, tool_use_id: 'c1' };
  first.fire('PreToolUse', call);
  first.fire('PostToolUse', { ...call, tool_response: 'a-secret-of-the-tool' }, FULL);
  await first.kill();
  const next = AgentSession.start(t, place, { agent: 'codex', session: 's2' });
  const told = next.fire('SessionStart', { source: 'startup' }).context;
  t.regex(told, /call Bash \(in-doubt\)/);
  const [name = ''] = kept(place);
  t.regex(name, /\.late\.json$/);
  t.true(told.includes(`durable/inbox/${name}`), told);
  const said = events(place).filter(({ type, what }) => type === 'git.observed' && what?.includes(name));
  t.is(said.length, 1);
  t.regex(said[0]?.what ?? '', /Bash finished \(call c1\)/);
  t.true(readFileSync(join(inboxOf(place), name), 'utf8').includes('a-secret-of-the-tool'));
  t.false(place.git('cat-file', '--batch-all-objects', '--batch').includes('a-secret-of-the-tool'));
  next.fire('SessionStart', { source: 'startup' });
  t.deepEqual(kept(place), [name]);
  t.is(problems(place).length, 1);
});

test('a hook that outlives its agent adds nothing to the turn of whoever took the work tree over: what it tells is kept', async (t) => {
  const place = scratch(t);
  const first = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  first.prompt('go', 'p1');
  first.before('c1', 'Bash', { command: 'true' });
  await first.kill();
  const next = AgentSession.start(t, place, { agent: 'codex', session: 's2' });
  next.prompt('go on', 'p2');
  const before = calls(place);
  t.regex(first.after('c1', 'Bash', { command: 'true' }).stderr, /kept in the inbox/);
  t.is(statusOf(place).count, 1);
  next.fire('Stop');
  t.deepEqual(calls(place), [...before, 'turn.finished']);
  t.is(durable(place, ['verify']).code, 0);
});

test("'uninstall' is refused while the inbox has what is nowhere else; emptied, or with --purge, nothing stays", async (t) => {
  const place = scratch(t);
  const first = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  first.prompt('go', 'p1');
  first.before('c1', 'Bash', { command: 'true' });
  first.fire('PostToolUse', { tool_name: 'Bash', tool_input: { command: 'true' }, tool_use_id: 'c1' }, FULL);
  await first.kill();
  t.is(durable(place, ['recover', '--keep']).code, 0);
  const [name = ''] = kept(place);
  t.regex(name, /\.late\.json$/);
  const refused = durable(place, ['uninstall']);
  t.is(refused.code, 4);
  t.regex(refused.stderr, /1 report of agents/);
  t.deepEqual(kept(place), [name]);
  const copy = readFileSync(join(inboxOf(place), name));
  rmSync(join(inboxOf(place), name));
  const gone = (): boolean => !readdirSync(join(place.dir, '.git')).includes('durable');
  t.deepEqual([durable(place, ['uninstall']).code, gone()], [0, true]);
  t.is(durable(place, ['init', '--agent', 'none']).code, 0);
  const storage = await openStorage(place.dir, { ...systemHost(), env: place.env });
  keepPayload(storage, JSON.parse(copy.toString('utf8')) as KeptPayload);
  await storage.close();
  t.deepEqual([durable(place, ['uninstall', '--purge']).code, gone()], [0, true]);
});

// Alone: others block this process for seconds at a time, and the lock is to go at once.
test.serial(
  'what is not on record shortly before the agent waits no longer is kept, and is on record once when that ends well after all',
  async (t) => {
    const place = scratch(t);
    const agent = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
    agent.prompt('go', 'p1');
    agent.before('c1', 'Bash', { command: 'true' });
    const lock = join(place.dir, '.git', `${ledgers(place)[0] ?? ''}.lock`);
    // A git of a person's that holds the ref.
    writeFileSync(lock, '');
    place.git('config', 'durable.hookLimit', '1');
    const firing = agent.firing('PostToolUse', {
      tool_name: 'Bash',
      tool_input: { command: 'true' },
      tool_use_id: 'c1',
      tool_response: 'done',
    });
    await until('it lies in the inbox', () => existsSync(inboxOf(place)) && kept(place).length === 1);
    rmSync(lock);
    const { stderr } = await firing;
    t.regex(stderr, /kept in the inbox .*wait no longer/);
    t.deepEqual([kept(place), calls(place)], [[], ['turn.started', ...CALL]], stderr);
  },
);

test('the inbox is bounded: what would go over is not kept, and that is the answer', async (t) => {
  const place = scratch(t);
  const storage = await openStorage(place.dir, { ...systemHost(), env: place.env });
  t.teardown(() => storage.close());
  const one: KeptPayload = {
    v: 1,
    at: '2026-11-30T12:00:00.000Z',
    agent: 'codex',
    process: { pid: 1, start: '1' },
    workTree: place.dir,
    place: null,
    why: 'a test',
    payload: 'x'.repeat(1000),
  };
  t.truthy(keepPayload(storage, one, { files: 2, bytes: 3000 }));
  t.is(keepPayload(storage, { ...one, payload: 'x'.repeat(2000) }, { files: 2, bytes: 3000 }), null);
  t.truthy(keepPayload(storage, one, { files: 2, bytes: 3000 }));
  t.is(keepPayload(storage, one, { files: 2, bytes: 1e9 }), null);
  t.deepEqual(
    inboxFiles(storage).map(({ since }) => since),
    [one.at, one.at],
  );
});
