/** The judge of the drill with a real agent: each thing that is not so makes the question fail that is about it. */
import test from 'ava';
import { AGENT_CHECKS, judge, type AgentCheck, type AgentFacts } from '../../../../cli/drill/agents/judge.js';
import { DEPLOYMENT } from '../../../../cli/drill/agents/task.js';
import { blobId, leaf } from '../../../../cli/drill/tree.js';

const BYTES = Buffer.from('new\n');
const TURN = {
  ...{
    turn: 'turn-1',
    task: 'task-1',
    objective: 'rename it',
    agent: 'codex',
    startedAt: '',
    lastEventAt: '',
  },
  ...{ detectedBy: 'keeper', invocations: [], approvals: [], orphans: [], gitStatusMatches: true, drift: [] },
  files: [{ path: 'a.ts', state: 'changed', before: null, expected: null, now: blobId('sha1', BYTES) }],
};
const PENDING = [
  {
    ...{ id: 'p', task: 'task-1', turn: 'turn-1', cwd: '', fingerprint: '', requestedAt: '' },
    ...{ tool: DEPLOYMENT.tool, args: JSON.parse(DEPLOYMENT.args) as unknown },
  },
];
const SAID = `earlier work was interrupted: turn-1 rename it\nfile a.ts: changed\npending: ${DEPLOYMENT.args}`;

const said = (text: string): Pick<AgentFacts, 'request'> => ({
  request: {
    key: '#second',
    step: 0,
    heard: [
      { from: 'system', text: 'it may be interrupted at any time' },
      { from: 'person', text },
    ],
  },
});

const RIGHT: AgentFacts = {
  name: 'codex',
  objective: 'rename it',
  changed: ['a.ts'],
  byKilledCall: ['a.ts'],
  killed: new Map([['a.ts', leaf('100644', BYTES)]]),
  dirtyBefore: new Set(['notes.md']),
  dirtyNow: new Set(['notes.md', 'a.ts']),
  heardBefore: [
    { key: '#first', step: 0, heard: [{ from: 'system', text: 'it may be interrupted at any time' }] },
  ],
  ...said(SAID),
  asked: { recover: { interrupted: [TURN] }, pending: PENDING },
  pendingAfter: PENDING,
};

const BARE = { asked: null, pendingAfter: null };

const failing = (facts: AgentFacts): AgentCheck[] => {
  const checks = judge(facts);
  return AGENT_CHECKS.filter((check) => checks[check].length > 0);
};

test('where all is so, no question fails', (t) => {
  t.deepEqual(failing(RIGHT), []);
});

const recovered = (turn: object): Partial<AgentFacts> => ({
  asked: { recover: { interrupted: [{ ...TURN, ...turn }] }, pending: PENDING },
});

const CASES: readonly [string, Partial<AgentFacts>, readonly AgentCheck[]][] = [
  ['nothing is said', said('go on'), ['knowsInterrupted', 'reportsFiles', 'approvalIntact']],
  ['the turn is not named', said(SAID.replace('turn-1', 'a turn')), ['knowsInterrupted']],
  ['the file of the killed call is not named', said(SAID.replace('a.ts', 'it')), ['reportsFiles']],
  ['the arguments are another text', said(SAID.replace('1.50', '1.5')), ['approvalIntact']],
  ['the request is told as a call', said(SAID.replace('pending', 'call deploy')), ['approvalIntact']],
  ['the turn is of another agent', recovered({ agent: 'kilo' }), ['knowsInterrupted']],
  ['a file is not reported', recovered({ files: [] }), ['reportsFiles', 'gitStatusMatches']],
  [
    'a file has other bytes',
    { killed: new Map([['a.ts', leaf('100644', Buffer.from('x'))]]) },
    ['reportsFiles'],
  ],
  ['a file is changed that is not known', { changed: ['a.ts', 'b.ts'] }, ['reportsFiles']],
  ['git status shows one more', { dirtyNow: new Set(['notes.md', 'a.ts', 'b.ts']) }, ['gitStatusMatches']],
  ['drift is reported', recovered({ gitStatusMatches: false }), ['gitStatusMatches']],
  ['the request has gone by the end', { pendingAfter: [] }, ['approvalIntact']],
  [
    'the request has other arguments',
    { pendingAfter: PENDING.map((one) => ({ ...one, args: { to: 'staging' } })) },
    ['approvalIntact'],
  ],
  ['an agent alone is told nothing', { ...BARE, ...said('go on') }, AGENT_CHECKS],
  [
    'an agent alone is told of the interruption and of every file',
    { ...BARE, ...said('aborted; git status: notes.md a.ts') },
    ['approvalIntact'],
  ],
];

for (const [what, change, questions] of CASES) {
  test(`${what}: fails ${questions.join(', ')} and no other question`, (t) => {
    t.deepEqual(failing({ ...RIGHT, ...change }), questions);
  });
}

test('what was in a request before the kill is no news of an interruption', (t) => {
  t.true(judge({ ...RIGHT, ...BARE, ...said('go on') }).knowsInterrupted.length > 0);
});

test('what the model said itself is no news', (t) => {
  const { request } = said('go on');
  const heard = [...request.heard, { from: 'model' as const, text: SAID }];
  t.true(judge({ ...RIGHT, request: { ...request, heard } }).approvalIntact.length > 0);
});
