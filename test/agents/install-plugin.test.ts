import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { LOCAL_FILES, pathWith, read } from '../helpers/agent-files.js';
import { events, last } from '../helpers/events.js';
import { durable, Running, startDurable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const HOST = fileURLToPath(new URL('../helpers/plugin-host.js', import.meta.url));

interface Answer {
  readonly thrown: string | null;
  readonly output: unknown;
  readonly replies: readonly unknown[];
}

const SESSION = 'ses_1';
const prompt = {
  hook: 'chat.message',
  input: { sessionID: SESSION },
  output: { message: { id: 'msg_1' }, parts: [{ type: 'text', text: 'write it' }] },
};
const system = {
  hook: 'experimental.chat.system.transform',
  input: { sessionID: SESSION },
  output: { system: ['of the agent'] },
};
const event = (type: string, properties: object = {}): object => ({
  hook: 'event',
  input: { event: { id: 'evt_1', type, properties: { sessionID: SESSION, ...properties } } },
});
const args = (place: Scratch): object => ({ filePath: join(place.dir, 'made.txt'), content: 'made\n' });
const call = { tool: 'write', sessionID: SESSION, callID: 'call_1' };
const before = (place: Scratch): object => ({
  hook: 'tool.execute.before',
  input: call,
  output: { args: args(place) },
});
const after = (place: Scratch): object => ({
  hook: 'tool.execute.after',
  input: { ...call, args: args(place) },
  output: { title: '', output: 'written', metadata: {} },
});

/** The plugin of this work tree in a process of its own, as long as the test runs. */
function host(
  t: ExecutionContext,
  place: Scratch,
  options: { readonly file: string; readonly env?: Record<string, string> },
): (said: object) => Promise<Answer> {
  const child = spawn(process.execPath, [HOST, join(place.dir, options.file), place.dir], {
    env: { ...place.env, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const running = new Running(child);
  return async (said) => {
    child.stdin.write(`${JSON.stringify(said)}\n`);
    return JSON.parse((await running.line()) ?? `{"thrown":${JSON.stringify(running.said)}}`) as Answer;
  };
}

for (const agent of ['opencode', 'kilo'] as const) {
  test(`the plugin of ${agent} brings each call on record before it runs, and its turn to an end`, async (t) => {
    const place = scratch(t);
    t.is(durable(place, ['init', '--agent', agent]).code, 0);
    const say = host(t, place, { file: LOCAL_FILES[agent] });
    for (const said of [event('session.created'), prompt, before(place)])
      t.is((await say(said)).thrown, null);
    t.is(last(events(place), 'invocation.started')?.['agent'], agent);
    place.write('made.txt', 'made\n');
    for (const said of [after(place), event('session.idle')]) t.is((await say(said)).thrown, null);
    const recorded = events(place);
    t.is(last(recorded, 'turn.started')?.['objective'], 'write it');
    t.is(last(recorded, 'invocation.finished')?.['state'], 'finished');
    t.is(last(recorded, 'turn.finished')?.['outcome'], 'completed');
    t.deepEqual((await say(system)).output, { system: ['of the agent'] });
    t.is(durable(place, ['doctor']).code, 0);
  });
}

test('the shells of an agent with the plugin have the turn’s own git, between prompt and end', async (t) => {
  const place = scratch(t);
  t.is(durable(place, ['init', '--agent', 'opencode']).code, 0);
  const say = host(t, place, { file: LOCAL_FILES.opencode });
  const shell = async (): Promise<Record<string, string>> => {
    const said = await say({
      hook: 'shell.env',
      input: { cwd: place.dir },
      output: { env: { OF_ANOTHER: '1' } },
    });
    t.is(said.thrown, null);
    return (said.output as { env: Record<string, string> }).env;
  };
  t.deepEqual(await shell(), { OF_ANOTHER: '1' });
  for (const said of [event('session.created'), prompt]) t.is((await say(said)).thrown, null);
  place.write('made', '');
  t.is(place.run('git', ['add', 'made']).code, 128);
  t.is(place.run('sh', ['-c', 'git add made && git commit -qm made'], { env: await shell() }).stderr, '');
  t.is(place.git('log', '-1', '--format=%s'), 'made');
  t.is((await say(event('session.idle'))).thrown, null);
  t.deepEqual(await shell(), { OF_ANOTHER: '1' });
});

test('beside the turn of another the plugin tells the model so in the system prompt, refuses a change before it is made, and nothing after one', async (t) => {
  const place = scratch(t);
  t.is(durable(place, ['init', '--agent', 'opencode']).code, 0);
  const other = startDurable(t, place, ['run', '--', 'sh', '-c', 'echo on; exec cat']);
  t.is(await other.line(), 'on');
  const say = host(t, place, { file: LOCAL_FILES.opencode });
  t.is((await say(prompt)).thrown, null);
  const told = (await say(system)).output as { system: string[] };
  t.deepEqual([told.system.length, told.system[0]], [2, 'of the agent']);
  t.regex(told.system[1] ?? '', /^git-durable: this turn is read-only/);
  t.regex((await say(before(place))).thrown ?? '', /^git-durable refused this call, and nothing ran: /);
  t.is((await say(after(place))).thrown, null);
  other.child.stdin.end();
  await other.ended;
});

test('a local plugin whose program is gone refuses tools, says what to type, and throws nowhere else', async (t) => {
  const place = scratch(t);
  t.is(durable(place, ['init', '--agent', 'opencode']).code, 0);
  place.write(
    LOCAL_FILES.opencode,
    read(place, LOCAL_FILES.opencode).replace(process.execPath, '/no/such/node'),
  );
  const say = host(t, place, { file: LOCAL_FILES.opencode });
  for (const said of [event('session.created'), prompt, system, after(place), event('session.idle')])
    t.is((await say(said)).thrown, null);
  t.regex(
    (await say(before(place))).thrown ?? '',
    /nothing ran: '\/no\/such\/node' cannot be run .*git durable init/,
  );
});

test('a shared plugin lets an agent without git-durable on PATH go on', async (t) => {
  const place = scratch(t);
  t.is(durable(place, ['init', '--agent', 'kilo', '--shared']).code, 0);
  const say = host(t, place, { file: LOCAL_FILES.kilo, env: { PATH: pathWith(place) } });
  for (const said of [event('session.created'), prompt, before(place), after(place), system])
    t.is((await say(said)).thrown, null);
});

test('the plugin starts no process for what nobody reads, and gives an answer of ours to the question it belongs to', async (t) => {
  const place = scratch(t);
  t.is(durable(place, ['init', '--agent', 'opencode']).code, 0);
  const stub = join(place.top, 'stub');
  place.write(
    '../stub',
    '#!/bin/sh\ncat >> "$0.log"; echo >> "$0.log"; echo "$DURABLE_AGENT_PID" >> "$0.pid"\necho \'{"reply":"once"}\'\n',
    0o755,
  );
  const text = read(place, LOCAL_FILES.opencode);
  place.write(
    LOCAL_FILES.opencode,
    text.replace(/"command":\[[^\]]*\]/, `"command":[${JSON.stringify(stub)}]`),
  );
  const say = host(t, place, { file: LOCAL_FILES.opencode });
  for (const type of ['message.part.updated', 'session.updated', 'file.edited']) await say(event(type));
  const { replies } = await say(event('permission.asked', { id: 'per_1', permission: 'bash' }));
  t.deepEqual(replies, [{ path: { id: SESSION, permissionID: 'per_1' }, body: { response: 'once' } }]);
  const lines = readFileSync(`${stub}.log`, 'utf8').trim().split('\n');
  t.deepEqual(
    lines.map((line) => (JSON.parse(line) as { hook: string }).hook),
    ['event:permission.asked'],
  );
  t.true(Number(readFileSync(`${stub}.pid`, 'utf8')) > 0);
});
