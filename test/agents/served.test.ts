/** Steps that the keeper of a turn takes from its hooks, and what happens where it does not. */
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { BUILD } from '../../lib/agents/wire.js';
import { packageFile, PROGRAMS } from '../../lib/package.js';
import { AgentSession } from '../helpers/agent-session.js';
import {
  askKeeper,
  buildOfPrograms,
  keeperFolder,
  keeperSocket,
  requestFor,
} from '../helpers/keeper-client.js';
import { keeperOf, killKeeper } from '../helpers/keeper.js';
import { stateOf, until } from '../helpers/processes.js';
import { durable } from '../helpers/program.js';
import { gitEvents } from '../helpers/git-events.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Logged {
  readonly type: string;
  readonly state?: string;
  readonly nonce?: string;
}

const events = (place: Scratch): Logged[] => gitEvents(place);

const calls = (place: Scratch): string[] =>
  events(place).flatMap(({ type }) => (type.startsWith('invocation.') ? [type] : []));

const ONCE = ['invocation.proposed', 'invocation.started', 'invocation.finished'];

/** A turn of Claude Code whose keeper listens. */
async function served(
  t: ExecutionContext,
  { place = scratch(t), faults = '' }: { place?: Scratch; faults?: string } = {},
): Promise<{ place: Scratch; agent: AgentSession; keeper: number }> {
  if (faults !== '') place.env['DURABLE_KEEPER_FAULTS'] = faults;
  const agent = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  agent.prompt('work', 'p1');
  await until('the keeper listens', () => existsSync(keeperSocket(place.dir)));
  return { place, agent, keeper: await keeperOf(place) };
}

/** The hook's program without the rest of the package. `edit` changes its text. */
function bareHook(place: Scratch, edit = (text: string): string => text): string {
  const folder = join(place.top, 'bare');
  mkdirSync(folder, { recursive: true });
  copyFileSync(join(dirname(PROGRAMS.hook), 'package.json'), join(folder, 'package.json'));
  const hook = join(folder, basename(PROGRAMS.hook));
  writeFileSync(hook, edit(readFileSync(PROGRAMS.hook, 'utf8')));
  return hook;
}

const payloadOf = (place: Scratch, event: string, call = 'c1'): Record<string, unknown> => ({
  session_id: 's1',
  cwd: place.dir,
  hook_event_name: event,
  tool_name: 'Write',
  tool_use_id: call,
  tool_input: { file_path: join(place.dir, `of ${call}`), content: 'x' },
  ...(event === 'PostToolUse' ? { tool_response: 'done' } : {}),
});

function fireBare(place: Scratch, agent: AgentSession, hook: string, event: string): number | null {
  const ran = place.run(process.execPath, [hook, 'claude-code'], {
    env: { DURABLE_AGENT_PID: String(agent.pid) },
    input: JSON.stringify(payloadOf(place, event)),
  });
  if (ran.code === 0 && ran.stdout + ran.stderr !== '') throw new Error(ran.stdout + ran.stderr);
  return ran.code;
}

test.serial(
  'inside a turn a hook without the library behind it is answered by the keeper, at however long a path',
  async (t) => {
    const parent = join(
      scratch(t, { repository: false }).dir,
      ...Array.from({ length: 12 }, () => 'a long name'),
    );
    mkdirSync(parent, { recursive: true });
    const { place, agent } = await served(t, { place: scratch(t, { parent }) });
    t.true(keeperSocket(place.dir).length > 108);
    const hook = bareHook(place);
    t.is(fireBare(place, agent, hook, 'PreToolUse'), 0);
    t.is(fireBare(place, agent, hook, 'PostToolUse'), 0);
    t.deepEqual(calls(place), ONCE);
    await killKeeper(place);
    t.not(fireBare(place, agent, hook, 'PostToolUse'), 0);
    t.is(durable(place, ['verify']).code, 0);
  },
);

test.serial(
  'a keeper that listens needs nothing of its package any more: it may be replaced or removed under it',
  async (t) => {
    const place = scratch(t);
    const agent = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
    const copy = join(place.top, 'package');
    const program = dirname(dirname(PROGRAMS.hook));
    cpSync(program, join(copy, 'dist/program'), { recursive: true });
    copyFileSync(packageFile('package.json'), join(copy, 'package.json'));
    const begun = place.run(
      process.execPath,
      [join(copy, 'dist/program/hooks/hook-entry.js'), 'claude-code'],
      {
        env: { DURABLE_AGENT_PID: String(agent.pid) },
        input: JSON.stringify({ ...payloadOf(place, 'UserPromptSubmit'), prompt: 'work', prompt_id: 'p1' }),
      },
    );
    t.deepEqual([begun.code, begun.stderr], [0, '']);
    await until('the keeper listens', () => existsSync(keeperSocket(place.dir)));
    rmSync(copy, { recursive: true });
    const hook = bareHook(place);
    t.is(fireBare(place, agent, hook, 'PreToolUse'), 0);
    t.is(fireBare(place, agent, hook, 'PostToolUse'), 0);
    t.deepEqual(calls(place), ONCE);
  },
);

test.serial('a keeper answers no hook of another build', async (t) => {
  const { place, agent } = await served(t);
  const other = bareHook(place, (text) => text.replace(buildOfPrograms(), '0'.repeat(32)));
  t.not(fireBare(place, agent, other, 'PreToolUse'), 0);
  t.deepEqual(calls(place), []);
  t.is(fireBare(place, agent, bareHook(place), 'PreToolUse'), 0);
});

for (const [when, hit] of [
  ['before it recorded the step', 'before'],
  ['after it recorded the step, before it answered', 'after'],
] as const) {
  for (const [nth, event] of ['PreToolUse', 'PostToolUse'].entries()) {
    test.serial(`a keeper that dies ${when}: ${event} is on record once, with the same answer`, async (t) => {
      const faults = `keeper.serve:take:${hit}#${String(nth + 1)}=kill`;
      const { place, agent, keeper } = await served(t, { faults });
      const input = { file_path: join(place.dir, 'a'), content: 'x' };
      const said = [agent.before('c1', 'Write', input), agent.after('c1', 'Write', input)];
      await until('the keeper is dead', () => ['', 'Z'].includes(stateOf(keeper)));
      for (const { refused, context, stderr } of said)
        t.deepEqual([refused, context, stderr], [null, '', '']);
      t.deepEqual(calls(place), ONCE);
      t.true(existsSync(keeperSocket(place.dir)), 'what it left behind is in nobody’s way');
      t.is(durable(place, ['verify']).code, 0);
    });
  }
}

test.serial(
  'a keeper that is stopped in a step holds up no hook, and adds nothing when it goes on',
  async (t) => {
    const { place, agent, keeper } = await served(t, { faults: 'keeper.serve:take:before=stop' });
    t.is(agent.before('c1', 'Bash', { command: 'true' }).refused, null);
    t.is(stateOf(keeper), 'T');
    agent.after('c1', 'Bash', { command: 'true' });
    process.kill(keeper, 'SIGCONT');
    // Its answer to the next one comes after what it was stopped in.
    t.is(agent.before('c2', 'Bash', { command: 'true' }).refused, null);
    agent.after('c2', 'Bash', { command: 'true' });
    t.deepEqual(calls(place), [...ONCE, ...ONCE]);
  },
);

test.serial(
  'the socket is its user’s alone, goes with the turn, and is not used where others could enter its folder',
  async (t) => {
    const { place, agent, keeper } = await served(t);
    const bits = (path: string): number => statSync(path).mode & 0o777;
    t.deepEqual([bits(keeperFolder(place.dir)), bits(keeperSocket(place.dir))], [0o700, 0o600]);
    chmodSync(keeperFolder(place.dir), 0o711);
    t.not(fireBare(place, agent, bareHook(place), 'PreToolUse'), 0);
    chmodSync(keeperFolder(place.dir), 0o700);
    agent.fire('Stop');
    await until('the keeper has ended', () => ['', 'Z'].includes(stateOf(keeper)));
    t.false(existsSync(keeperSocket(place.dir)));
  },
);

test.serial('a keeper serves many at once and renews meanwhile', async (t) => {
  const place = scratch(t);
  place.git('config', 'durable.ttl', '1');
  const { agent } = await served(t, { place });
  const ledger = place.git('for-each-ref', '--format=%(refname)', 'refs/durable/tasks/');
  const lock = join(place.dir, '.git', `${ledger}.lock`);
  // A git of a person's, which every append waits for.
  writeFileSync(lock, '');
  const names = ['c1', 'c2', 'c3', 'c4'];
  const firing = names.map((call) => agent.firing('PreToolUse', payloadOf(place, 'PreToolUse', call)));
  const lease = place.git('for-each-ref', '--format=%(refname)', 'refs/durable/leases/');
  const seen = new Set<string>();
  await until('it renewed', () => seen.add(place.git('rev-parse', lease)).size > 4);
  rmSync(lock);
  for (const { refused } of await Promise.all(firing)) t.is(refused, null);
  t.is(calls(place).filter((type) => type === 'invocation.started').length, names.length);
  t.is(durable(place, ['verify']).code, 0);
});

test.serial(
  'a change that a keeper refused for being late, and that got on record all the same, ended there as denied',
  async (t) => {
    const place = scratch(t);
    place.git('config', 'durable.hookLimit', '1');
    const { agent } = await served(t, { place });
    const ledger = place.git('for-each-ref', '--format=%(refname)', 'refs/durable/tasks/');
    const lock = join(place.dir, '.git', `${ledger}.lock`);
    writeFileSync(lock, '');
    t.regex(agent.before('c1', 'Write', {}).refused ?? '', /time limit/);
    rmSync(lock);
    await until('it is on record', () => events(place).some(({ state }) => state === 'denied'));
    t.deepEqual(calls(place), ONCE);
    t.regex(agent.before('c1', 'Write', {}).refused ?? '', /too late/);
  },
);

test.serial(
  'a request is believed no more than a hook is: another session, process, place or environment is refused',
  async (t) => {
    const { place, agent } = await served(t);
    const payload = { ...payloadOf(place, 'PreToolUse') };
    const request = { ...requestFor(place.env, agent.pid), build: buildOfPrograms() };
    const wrong: readonly (readonly [Record<string, unknown>, Record<string, unknown>])[] = [
      [{ ...payload, session_id: 's2' }, request],
      [payload, { ...request, agentPid: String(process.pid) }],
      [{ ...payload, cwd: scratch(t).dir }, request],
      [payload, { ...request, pidNamespace: 'pid:[1]' }],
      [payload, { ...request, places: ['/bin', null, null, null] }],
      [payload, { ...request, build: BUILD }],
      [{ ...payload, hook_event_name: 'Stop' }, request],
      [{ ...payload, hook_event_name: 'UserPromptSubmit', prompt: 'next' }, request],
    ];
    for (const [said, asked] of wrong) {
      const answer = await askKeeper(place.dir, said, asked);
      t.true(answer === null || 'refused' in answer, JSON.stringify([said, asked, answer]));
    }
    t.deepEqual(calls(place), []);
    t.deepEqual(await askKeeper(place.dir, payload, request), { answer: '', notes: [] });
  },
);

test.serial('settings that change in a turn count from the next step on', async (t) => {
  const { place, agent } = await served(t);
  const hook = bareHook(place);
  t.is(fireBare(place, agent, hook, 'PreToolUse'), 0);
  place.git('config', '--global', 'durable.hookLimit', '100');
  t.not(fireBare(place, agent, hook, 'PostToolUse'), 0);
  place.git('config', '--global', '--unset', 'durable.hookLimit');
  t.is(fireBare(place, agent, hook, 'PostToolUse'), 0);
});
