import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { AgentSession } from '../helpers/agent-session.js';
import { events, type Line } from '../helpers/events.js';
import { report } from '../helpers/interrupted-run.js';
import { isRecord } from '../helpers/json.js';
import { durable, startDurable, type Running } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const HOST = fileURLToPath(new URL('../helpers/hook-host.js', import.meta.url));

interface Started {
  readonly place: Scratch;
  readonly running: Running;
  /** Ends the agent. */
  readonly hangUp: () => void;
  readonly fire: (event: string, more?: object) => Promise<Line>;
  readonly write: (path: string, content: string) => Promise<Line>;
}

/** `git durable run -- AGENT`, of an agent that has our hooks. */
function started(t: ExecutionContext, { isBare = false } = {}): Started {
  const place = scratch(t);
  t.is(durable(place, ['init']).code, 0);
  // Its standard input is its own: that of `run` is closed when `run` ends.
  place.run('mkfifo', ['../lines']);
  const lines = openSync(join(place.top, 'lines'), 'r+');
  const words = [
    'sh',
    '-c',
    'exec "$0" "$@" < ../lines',
    process.execPath,
    HOST,
    'claude-code',
    ...(isBare ? ['bare'] : []),
  ];
  let isOpen = true;
  const hangUp = (): void => {
    if (isOpen) closeSync(lines);
    isOpen = false;
  };
  t.teardown(hangUp);
  const running = startDurable(t, place, ['run', '--objective', 'an agent', '--', ...words]);
  const say = async (line: object): Promise<Line> => {
    writeSync(lines, `${JSON.stringify(line)}\n`);
    const said: unknown = JSON.parse((await running.line()) ?? '');
    if (!isRecord(said) || said['stderr'] !== '') throw new Error(`${running.said}${JSON.stringify(said)}`);
    const text = String(said['stdout']);
    return text === '' ? {} : (JSON.parse(text) as { hookSpecificOutput: Line }).hookSpecificOutput;
  };
  return {
    place,
    running,
    hangUp,
    fire: (event, more = {}) => say({ session_id: 's1', cwd: place.dir, hook_event_name: event, ...more }),
    write: (path, content) => say({ write: [join(place.dir, path), content] }),
  };
}

const WRITE = { tool_name: 'Write', tool_use_id: 'c1' };
const input = ({ dir }: Scratch): object => ({ file_path: join(dir, 'made'), content: 'made\n' });

for (const isBare of [false, true])
  test(`an agent with our hooks that run has started${isBare ? ', and that has lost its environment' : ''}, records its calls in the turn of run, which alone ends it`, async (t) => {
    const { place, running, hangUp, fire, write } = started(t, { isBare });
    t.deepEqual(await fire('SessionStart', { source: 'startup' }), {});
    for (const id of ['p1', 'p2']) {
      t.deepEqual(await fire('UserPromptSubmit', { prompt: `do ${id}`, prompt_id: id }), {});
      if (id === 'p1') {
        t.deepEqual(await fire('PreToolUse', { ...WRITE, tool_input: input(place) }), {});
        await write('made', 'made\n');
        await fire('PostToolUse', { ...WRITE, tool_input: input(place), tool_response: 'done' });
      }
      await fire('Stop');
    }
    await fire('SessionEnd', { reason: 'other' });
    hangUp();
    t.is((await running.ended).code, 7);
    const all = events(place);
    const of = (type: string): Line[] => all.filter((event) => event['type'] === type);
    t.deepEqual(
      of('invocation.proposed').map(({ tool }) => tool),
      ['run', 'Write'],
    );
    t.deepEqual(
      of('invocation.finished').map(({ state }) => state),
      ['finished', 'failed'],
    );
    t.is(of('turn.started').length, 1);
    t.deepEqual(
      of('steering.received').map(({ text }) => text),
      ['do p1', 'do p2'],
    );
    t.deepEqual(
      of('turn.finished').map(({ exit }) => exit),
      [7],
    );
    t.is(durable(place, ['verify']).code, 0);
  });

test('killed with everything, the call of such an agent is in doubt, with the file that it had begun', async (t) => {
  const { place, running, fire, write } = started(t);
  await fire('UserPromptSubmit', { prompt: 'do it', prompt_id: 'p1' });
  await fire('PreToolUse', { ...WRITE, tool_input: input(place) });
  await write('made', 'ma');
  running.child.kill('SIGKILL');
  await running.ended;
  const [found] = report(place).interrupted;
  t.deepEqual(
    found?.invocations.map(({ tool, state }) => [tool, state]),
    [
      ['run', 'in-doubt'],
      ['Write', 'in-doubt'],
    ],
  );
  t.deepEqual(
    found?.files.map(({ path, state }) => [path, state]),
    [['made', 'partial']],
  );
});

for (const isBare of [false, true])
  test(`an agent${isBare ? ' that has lost its environment and' : ''} whose run was killed is refused changes with what to type; its next prompt keeps what is there, begins a turn of its own, and tells the model`, async (t) => {
    const { place, running, hangUp, fire, write } = started(t, { isBare });
    await fire('UserPromptSubmit', { prompt: 'do it', prompt_id: 'p1' });
    await fire('PreToolUse', { ...WRITE, tool_input: input(place) });
    await write('made', 'made\n');
    running.child.kill('SIGKILL');
    await running.ended;
    const again = { ...WRITE, tool_use_id: 'c2', tool_input: input(place) };
    const refused = String((await fire('PreToolUse', again))['permissionDecisionReason']);
    t.regex(refused, /nothing ran.*interrupted.*git durable recover/);
    const told = String(
      (await fire('UserPromptSubmit', { prompt: 'go on', prompt_id: 'p2' }))['additionalContext'],
    );
    t.regex(told, /interrupted before it ended[^]*call Write \(in-doubt\)/);
    t.is(readFileSync(join(place.dir, 'made'), 'utf8'), 'made\n');
    t.deepEqual(await fire('PreToolUse', { ...again, tool_use_id: 'c3' }), {});
    await fire('PostToolUse', { ...again, tool_use_id: 'c3', tool_response: 'done' });
    await fire('Stop');
    const all = events(place);
    const of = (type: string): Line[] => all.filter((event) => event['type'] === type);
    t.deepEqual(
      of('turn.started').map(({ agent, objective }) => [agent, objective]),
      [
        ['sh', 'an agent'],
        ['claude-code', 'go on'],
      ],
    );
    t.deepEqual(
      of('turn.finished').map(({ outcome }) => outcome),
      ['completed'],
    );
    t.is(durable(place, ['verify']).code, 0);
    hangUp();
  });

test('an agent that a person starts beside the turn of run is no part of it', async (t) => {
  const { place, running, hangUp, fire } = started(t);
  await fire('SessionStart', { source: 'startup' });
  const ran = place.run(process.execPath, [HOST, 'claude-code'], {
    input: `${JSON.stringify({ session_id: 's2', cwd: place.dir, hook_event_name: 'PreToolUse', ...WRITE, tool_input: input(place) })}\n`,
  });
  t.regex(ran.stdout, /nothing ran/);
  hangUp();
  await running.ended;
});

test('an agent that another agent’s shell starts is part of that agent’s turn, which it does not end', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['init']).code, 0);
  const outer = AgentSession.start(t, place, { agent: 'claude-code', session: 'outer' });
  const envFile = join(place.top, 'env');
  outer.fire('SessionStart', { source: 'startup' }, { CLAUDE_ENV_FILE: envFile });
  outer.prompt('call another agent', 'p1');
  t.is(outer.before('c1', 'Bash', { command: 'codex exec' }).refused, null);
  const inner = { session_id: 'inner', cwd: place.dir, ...WRITE, tool_input: input(place) };
  const payloads = [
    { ...inner, hook_event_name: 'UserPromptSubmit', prompt: 'do a part', turn_id: 't1' },
    { ...inner, hook_event_name: 'PreToolUse' },
    { ...inner, hook_event_name: 'PostToolUse', tool_response: 'done' },
    { ...inner, hook_event_name: 'Stop' },
  ];
  const script = '. "$0"; exec "$@"';
  const ran = place.run('sh', ['-c', script, envFile, process.execPath, HOST, 'codex'], {
    input: payloads.map((one) => `${JSON.stringify(one)}\n`).join(''),
  });
  t.notRegex(ran.stdout, /nothing ran|"stderr":"[^"]/);
  outer.after('c1', 'Bash', { command: 'codex exec' });
  outer.fire('Stop');
  const all = events(place);
  t.deepEqual(
    all.filter(({ type }) => type === 'invocation.proposed').map(({ tool }) => tool),
    ['Bash', 'Write'],
  );
  t.is(all.filter(({ type }) => type === 'turn.started').length, 1);
  t.is(all.filter(({ type }) => type === 'turn.finished').length, 1);
});
