import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import { AgentSession } from '../helpers/agent-session.js';
import { isRecord } from '../helpers/json.js';
import { durable } from '../helpers/program.js';
import { gitEvents } from '../helpers/git-events.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Logged {
  readonly type: string;
  readonly by?: string;
  readonly decision?: string;
  readonly state?: string;
  readonly args?: { readonly oid: string };
}

const events = (place: Scratch): Logged[] => gitEvents(place);

const asked = (place: Scratch): Logged[] => events(place).filter(({ type }) => type.startsWith('approval.'));
const ends = (place: Scratch): (string | undefined)[] =>
  events(place)
    .filter(({ type }) => type === 'invocation.finished')
    .map(({ state }) => state);

/** By git alone: the bytes that were kept as the arguments of the first request. */
const argsOf = (place: Scratch): string => place.git('cat-file', 'blob', asked(place)[0]?.args?.oid ?? '');

interface Listed {
  readonly pending: readonly { readonly id: string }[];
}

function pending(place: Scratch): string[] {
  const listed = JSON.parse(durable(place, ['approvals', '--json']).stdout) as Listed;
  return listed.pending.map(({ id }) => id);
}

/** Lets what was started get on meanwhile. */
async function nextPending(place: Scratch): Promise<string[]> {
  await setImmediate();
  return pending(place);
}

const verified = (place: Scratch): number | null => durable(place, ['verify']).code;

function recorded(agent: string, name: string): Record<string, unknown> {
  const file = new URL(`../../../test/fixtures/agents/${agent}/${name}.json`, import.meta.url);
  const payload: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (!isRecord(payload)) throw new TypeError(name);
  return payload;
}

for (const agent of ['claude-code', 'codex'] as const) {
  test(`a question of ${agent} is on record with the exact arguments of its call, and answered once the call has run`, (t) => {
    const place = scratch(t);
    const session = AgentSession.start(t, place, { agent, session: 's1' });
    const { tool_name: tool, tool_input: input } = recorded(agent, 'PermissionRequest');
    if (!isRecord(input)) return t.fail();
    // Codex puts the reason that the model gave beside the arguments that it told before.
    const told = agent === 'codex' ? { command: input['command'] } : input;
    session.prompt('write it', 'p1');
    session.before('c1', String(tool), told);
    for (const again of [1, 2])
      t.is(
        session.fire('PermissionRequest', { tool_name: tool, tool_input: input }).decision,
        null,
        String(again),
      );
    t.is(argsOf(place), JSON.stringify(told));
    t.is(pending(place).length, 1);
    session.after('c1', String(tool), told);
    t.deepEqual(
      asked(place).map(({ type, by }) => [type, by]),
      [
        ['approval.requested', undefined],
        ['approval.resolved', agent],
        ['approval.consumed', undefined],
      ],
    );
    // That answer was for one call.
    session.before('c2', String(tool), told);
    t.is(session.fire('PermissionRequest', { tool_name: tool, tool_input: input }).decision, null);
    t.is(pending(place).length, 1);
    session.fire('Stop');
    t.is(pending(place).length, 1);
    t.is(verified(place), 0);
    return undefined;
  });
}

for (const agent of ['opencode', 'kilo'] as const) {
  for (const reply of ['once', 'reject'] as const) {
    test(`a question of ${agent} that its person answers with '${reply}' is on record as that`, (t) => {
      const place = scratch(t);
      const sessionID = 'ses_1';
      const session = AgentSession.start(t, place, { agent, session: sessionID });
      const call = { sessionID, tool: 'bash', callID: 'c1' };
      const args = { command: 'echo "a b"', description: 'say it' };
      const said = recorded(agent, 'event_permission.asked')['input'];
      if (!isRecord(said) || !isRecord(said['properties'])) return t.fail();
      const tool = { messageID: 'm1', callID: 'c1' };
      session.plugin('chat.message', { sessionID }, { message: { id: 'm1' }, parts: [] });
      session.plugin('tool.execute.before', call, { args });
      const question = { ...said['properties'], sessionID, tool };
      t.deepEqual(session.plugin('event:permission.asked', { ...said, properties: question }), {});
      t.is(argsOf(place), JSON.stringify(args));
      t.is(pending(place).length, 1);
      session.plugin('event:permission.replied', {
        properties: { sessionID, requestID: question['id' as never], reply },
      });
      if (reply === 'once')
        session.plugin('tool.execute.after', { ...call, args }, { output: 'a b\n', metadata: { exit: 0 } });
      t.deepEqual(pending(place), []);
      t.is(asked(place)[1]?.decision, reply === 'once' ? 'approved' : 'rejected');
      t.deepEqual(ends(place), [reply === 'once' ? 'finished' : 'denied']);
      t.is(verified(place), 0);
      return undefined;
    });
  }
}

const INPUT = { command: 'npm publish', description: 'publish it' };
const QUESTION = { tool_name: 'Bash', tool_input: INPUT };

for (const decision of ['approve', 'reject'] as const) {
  test(`a question that a crash left unanswered is shown, and the next same call goes by the answer given meanwhile: ${decision}`, async (t) => {
    const place = scratch(t);
    const first = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
    first.prompt('publish', 'p1');
    first.before('c1', 'Bash', INPUT);
    first.fire('PermissionRequest', QUESTION);
    await first.kill();
    const [id] = pending(place);
    if (id === undefined) return t.fail();
    const words = 'not today: ärger\nsecond line';
    const answer = decision === 'approve' ? [decision, id] : [decision, id, '--feedback', words];
    t.is(durable(place, answer).code, 0);
    const next = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
    next.prompt('go on', 'p2');
    const said = next.before('c2', 'Bash', INPUT);
    t.is(said.refused, decision === 'approve' ? null : words);
    t.is(next.before('c2', 'Bash', INPUT).refused, said.refused);
    if (decision === 'approve') {
      t.deepEqual(next.fire('PermissionRequest', QUESTION).decision, { behavior: 'allow' });
      next.after('c2', 'Bash', INPUT);
    }
    t.deepEqual(ends(place), [decision === 'approve' ? 'finished' : 'denied']);
    // The answer was used: the same call again is a new question.
    t.is(next.before('c3', 'Bash', INPUT).refused, null);
    t.is(next.fire('PermissionRequest', QUESTION).decision, null);
    t.is(pending(place).length, 1);
    t.is(verified(place), 0);
    return undefined;
  });

  test(`with durable.wait an answer from another terminal comes in place of the host's question: ${decision}`, async (t) => {
    const place = scratch(t);
    place.git('config', 'durable.wait', '300');
    const session = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
    session.prompt('publish', 'p1');
    session.before('c1', 'Bash', INPUT);
    const waiting = session.firing('PermissionRequest', QUESTION);
    let id: string | undefined;
    while (id === undefined) [id] = await nextPending(place);
    const answer = decision === 'approve' ? [decision, id] : [decision, id, '--feedback', 'no\n'];
    t.is(durable(place, answer).code, 0);
    const expected = decision === 'approve' ? { behavior: 'allow' } : { behavior: 'deny', message: 'no\n' };
    t.deepEqual((await waiting).decision, expected);
    session.after('c1', 'Bash', INPUT);
    t.deepEqual(
      asked(place).map(({ type }) => type),
      ['approval.requested', 'approval.resolved', 'approval.consumed'],
    );
    t.deepEqual(ends(place), [decision === 'approve' ? 'finished' : 'denied']);
    t.is(verified(place), 0);
  });
}

test('with durable.wait an answer that does not come leaves the question to the host', (t) => {
  const place = scratch(t);
  place.git('config', 'durable.wait', '1');
  const session = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  session.prompt('publish', 'p1');
  session.before('c1', 'Bash', INPUT);
  t.is(session.fire('PermissionRequest', QUESTION).decision, null);
  t.is(pending(place).length, 1);
});

test('a question about a call that no hook told of is on record by itself', (t) => {
  const place = scratch(t);
  const session = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  session.prompt('publish', 'p1');
  session.before('c1', 'Bash', { ...INPUT, command: 'npm pack' });
  t.is(session.fire('PermissionRequest', QUESTION).decision, null);
  t.is(argsOf(place), JSON.stringify(INPUT));
  session.after('c1', 'Bash', { ...INPUT, command: 'npm pack' });
  t.is(pending(place).length, 1);
});

test('who holds no turn asks without a record, as before', (t) => {
  const place = scratch(t);
  const session = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  const said = session.fire('PermissionRequest', QUESTION);
  t.deepEqual([said.decision, said.stderr], [null, '']);
  t.deepEqual(pending(place), []);
});
