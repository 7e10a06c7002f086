import { appendFileSync, copyFileSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { AgentSession } from '../helpers/agent-session.js';
import { check, codes } from '../helpers/checked.js';
import { document, events, last, type Line } from '../helpers/events.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const FIXTURES = new URL('../../../test/fixtures/', import.meta.url);

/** Recorded from the agent, of the session and the folder of this test. */
const recorded = (place: Scratch, agent: string, name: string, more: object = {}): object => ({
  ...(JSON.parse(readFileSync(new URL(`agents/${agent}/${name}.json`, FIXTURES), 'utf8')) as object),
  session_id: 's1',
  cwd: place.dir,
  ...more,
});

/** Recorded from the agent as it was when it stopped. */
function transcriptOf(place: Scratch, agent: string): string {
  const path = join(place.top, `${agent}.jsonl`);
  copyFileSync(fileURLToPath(new URL(`transcripts/${agent}.jsonl`, FIXTURES)), path);
  return path;
}

const SAID = {
  'claude-code': { model: 'claude-opus-5-5', inputTokens: 30, outputTokens: 60, cacheTokens: 0 },
  codex: { model: 'gpt-5.5-codex', inputTokens: 30, outputTokens: 15, cacheTokens: 0 },
} as const;

const usages = (place: Scratch): Line[] => events(place, '--type', 'usage.recorded');

for (const agent of ['claude-code', 'codex'] as const) {
  test(`the recorded end of a turn of ${agent} puts its final text, its usage and the length of its transcript on record, once`, (t) => {
    const place = scratch(t);
    const session = AgentSession.start(t, place, { agent, session: 's1' });
    session.run(recorded(place, agent, 'UserPromptSubmit'));
    const path = transcriptOf(place, agent);
    const stop = recorded(place, agent, 'Stop', { transcript_path: path });
    for (const again of [1, 2]) t.is(session.run(stop).stderr, '', String(again));
    t.like(usages(place), [{ ...SAID[agent], costUsd: null, invocation: null }]);
    t.is(usages(place).length, 1);
    const finished = last(events(place), 'turn.finished');
    t.deepEqual(finished?.['transcript'], { path, bytes: statSync(path).size });
    t.is(finished?.['summary'], 'All finished.');
    t.is(check(place).verdict, 'nothing-claimed');
    const row = JSON.parse(durable(place, ['log', '--usage', '--json']).stdout) as Line;
    t.like(row, { inputTokens: SAID[agent].inputTokens, outputTokens: SAID[agent].outputTokens });
    t.is(durable(place, ['verify']).code, 0);
  });
}

test('an agent whose transcript is gone, cut or of another turn ends its turn without a usage that nobody knows', (t) => {
  const place = scratch(t);
  const session = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  const path = transcriptOf(place, 'claude-code');
  appendFileSync(path, '{"type":"assistant","message":{"id":"msg_cut","usage":{"input_tok');
  for (const more of [
    { transcript_path: join(place.top, 'gone.jsonl') },
    { transcript_path: path, prompt_id: 'another' },
  ]) {
    session.prompt('go', String(Object.keys(more).length));
    t.is(session.run(recorded(place, 'claude-code', 'Stop', more)).stderr, '');
    t.deepEqual(usages(place), []);
  }
  session.prompt('go', 'last');
  session.run(recorded(place, 'claude-code', 'Stop', { transcript_path: path }));
  t.like(usages(place), [SAID['claude-code']]);
  t.is(events(place, '--type', 'turn.finished').length, 3);
});

test("what an agent says at its end is judged by 'check': a recorded end with a claim that is not so", (t) => {
  const place = scratch(t);
  const session = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  session.run(recorded(place, 'claude-code', 'UserPromptSubmit'));
  const stop = { last_assistant_message: 'Updated `README`.' };
  session.run(recorded(place, 'claude-code', 'Stop', stop));
  const judged = check(place);
  t.deepEqual([judged.verdict, judged.source], ['does-not-hold', 'text']);
  t.deepEqual(codes(judged), ['claimed-not-changed README']);
});

test('the text that the plugin laid beside an idle session is the final text of the turn', (t) => {
  const place = scratch(t);
  const session = AgentSession.start(t, place, { agent: 'opencode', session: 's1' });
  const input = { properties: { sessionID: 's1' } };
  for (const [n, output] of [null, { text: 'All finished.' }].entries()) {
    const message = { message: { id: `m${String(n)}` }, parts: [{ type: 'text', text: 'go' }] };
    session.plugin('chat.message', { sessionID: 's1' }, message);
    session.plugin('event:session.idle', input, output);
  }
  t.deepEqual(
    events(place, '--type', 'turn.finished').map(({ summary }) => summary),
    ['', 'All finished.'],
  );
  t.deepEqual(usages(place), []);
});

test('what an edit left is on record: what a person changes after it is told from it, and neither repair takes it back', async (t) => {
  const place = scratch(t);
  const session = AgentSession.start(t, place, { agent: 'claude-code', session: 's1' });
  session.prompt('edit', 'p1');
  for (const [call, path] of [
    ['c1', 'README'],
    ['c2', 'other.txt'],
  ] as const) {
    const input = { file_path: join(place.dir, path), old_string: 'a', new_string: 'b' };
    t.is(session.before(call, 'Edit', input).refused, null);
    place.write(path, `${path} by the agent\n`);
    session.after(call, 'Edit', input);
  }
  const ends = events(place, '--type', 'invocation.finished');
  const oid = place.git('hash-object', 'README');
  t.deepEqual(ends[0]?.['left'], [{ path: 'README', image: { oid, mode: '100644' } }]);
  t.is(place.git('cat-file', '-p', oid), 'README by the agent');
  place.write('README', 'by a person\n');
  await session.kill();
  const next = AgentSession.start(t, place, { agent: 'codex', session: 's2' });
  const report = document<{ interrupted: { files: Line[] }[] }>(place, ['recover'], { codes: [3] });
  t.like(report.interrupted[0]?.files, [
    { path: 'README', state: 'foreign', expected: oid },
    { path: 'other.txt', state: 'written' },
  ]);
  t.is(durable(place, ['recover', '--roll-back']).code, 0);
  t.is(readFileSync(join(place.dir, 'README'), 'utf8'), 'by a person\n');
  t.is(place.git('status', '--porcelain'), ' M README');
  t.is(next.fire('SessionStart', { source: 'startup' }).context, '');
});
