import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import { effectOf, insideTree, type Effect } from '../../lib/agents/tools.js';
import { AGENTS, type AgentName, type Reply, type Step } from '../../lib/agents/step.js';
import { TRANSLATIONS } from '../../lib/agents/translate.js';

const FIXTURES = new URL('../../../test/fixtures/agents/', import.meta.url);

/** A recorded payload as the entry gets it; what OpenCode and Kilo record is put into the plugin's envelope. */
function recorded(agent: AgentName, name: string): unknown {
  const payload = JSON.parse(readFileSync(new URL(`${agent}/${name}.json`, FIXTURES), 'utf8')) as {
    input?: unknown;
    output?: unknown;
  };
  if (agent === 'claude-code' || agent === 'codex') return payload;
  const hook = name.replace(/__.*$/, '').replace(/^event_/, 'event:');
  return { hook, directory: '/srv/dev/w', input: payload.input, output: payload.output };
}

const decoded = (agent: AgentName, name: string): Step | null =>
  TRANSLATIONS[agent].decode(recorded(agent, name));

const KINDS: Readonly<Record<AgentName, Readonly<Record<string, Step['kind'] | null>>>> = {
  'claude-code': {
    SessionStart: 'session-start',
    UserPromptSubmit: 'prompt',
    'PreToolUse.Write': 'before-tool',
    PreToolUse: 'before-tool',
    'PostToolUse.Write': 'after-tool',
    PostToolUse: 'after-tool',
    PostToolUseFailure: 'after-tool',
    PermissionRequest: 'permission',
    Stop: 'stop',
    StopFailure: 'stop',
    SessionEnd: 'session-end',
    Notification: null,
    PostToolBatch: null,
    SubagentStart: null,
  },
  codex: {
    SessionStart: 'session-start',
    UserPromptSubmit: 'prompt',
    PreToolUse: 'before-tool',
    'PreToolUse.apply_patch': 'before-tool',
    PostToolUse: 'after-tool',
    'PostToolUse.apply_patch': 'after-tool',
    PermissionRequest: 'permission',
    Stop: 'stop',
    Interrupt: 'stop',
    SessionEnd: 'session-end',
    SubagentStart: null,
  },
  opencode: plugin(),
  kilo: plugin(),
};

function plugin(): Readonly<Record<string, Step['kind'] | null>> {
  return {
    'chat.message': 'prompt',
    'event_session.created': 'session-start',
    'event_session.idle': 'stop',
    'event_session.status': null,
    'event_permission.asked': 'permission',
    'event_permission.replied': 'answer',
    'tool.execute.before__write': 'before-tool',
    'tool.execute.before__bash': 'before-tool',
    'tool.execute.after__write': 'after-tool',
    'tool.execute.after__bash': 'after-tool',
    dispose: null,
  };
}

for (const agent of AGENTS) {
  test(`every recorded payload of ${agent} is the step that it stands for, in one session of one folder`, (t) => {
    const names = readdirSync(new URL(`${agent}/`, FIXTURES)).map((name) => name.replace(/\.json$/, ''));
    t.deepEqual(names.sort(), Object.keys(KINDS[agent]).sort());
    for (const name of names) {
      const step = decoded(agent, name);
      t.is(step?.kind ?? null, KINDS[agent][name] ?? null, name);
      if (step === null) continue;
      t.regex(step.session, /^(?:[0-9a-f]{8}-|ses_)/, name);
      t.regex(step.cwd ?? '', /^\/srv\/dev\//, name);
    }
  });

  test(`before and after a call of ${agent} name the same call with the same input`, (t) => {
    const names = Object.keys(KINDS[agent]);
    const pairs = names
      .filter((name) => KINDS[agent][name] === 'before-tool')
      .map((name) => [name, name.replace('PreToolUse', 'PostToolUse').replace('before', 'after')] as const);
    t.true(pairs.length >= 2);
    for (const [before, after] of pairs) {
      const [one, other] = [decoded(agent, before), decoded(agent, after)];
      if (one?.kind !== 'before-tool' || other?.kind !== 'after-tool') return t.fail(before);
      t.truthy(one.call);
      t.deepEqual([one.call, one.tool, one.input], [other.call, other.tool, other.input]);
      t.not(other.result, '');
    }
    return undefined;
  });

  for (const payload of [null, 'text', {}, { hook_event_name: 'PreToolUse' }, { hook: 'chat.message' }]) {
    test(`what ${agent} never sent is no step but an error: ${JSON.stringify(payload)}`, (t) => {
      t.throws(() => TRANSLATIONS[agent].decode(payload));
    });
  }
}

test('a failing command of Claude Code has its exit code, a prompt its id and text', (t) => {
  const failed = decoded('claude-code', 'PostToolUseFailure');
  t.like(failed, { isFailed: true, exit: 3, result: 'Exit code 3', durationMs: 25 });
  t.like(decoded('claude-code', 'UserPromptSubmit'), {
    id: '839dca43-7f08-4941-b94c-fe4fb28a8dcb',
    text: 'write hello and show it',
  });
  t.like(decoded('codex', 'UserPromptSubmit'), { id: '01a229ad-a5dd-7042-afa6-ed2166796cb0' });
});

const WRITES: readonly (readonly [AgentName, string, Effect])[] = [
  ['claude-code', 'PreToolUse.Write', [{ path: '/srv/dev/r1/hello.txt', expected: Buffer.from('hello\n') }]],
  ['claude-code', 'PreToolUse', 'anything'],
  ['codex', 'PreToolUse.apply_patch', [{ path: 'hello.txt', expected: 'unknown' }]],
  ['codex', 'PreToolUse', 'anything'],
  ['opencode', 'tool.execute.before__write', [{ path: '/srv/dev/w/oc/hello.txt', expected: 'unknown' }]],
  ['kilo', 'tool.execute.before__bash', 'anything'],
];

for (const [agent, name, effect] of WRITES) {
  test(`what ${agent}'s call will write is read from its input: ${name}`, (t) => {
    const step = decoded(agent, name);
    if (step?.kind !== 'before-tool') return t.fail();
    t.deepEqual(effectOf(agent, step.tool, step.input), effect);
    return undefined;
  });
}

test('a patch names what it deletes and what it moves away, and an unknown tool may write anything', (t) => {
  const command = [
    '*** Begin Patch',
    '*** Update File: a b.txt',
    '*** Move to: c/d.txt',
    '@@',
    '-x',
    '+y',
    '*** Delete File: gone.txt',
    '*** End Patch',
  ].join('\n');
  t.deepEqual(effectOf('codex', 'apply_patch', { command }), [
    { path: 'a b.txt', expected: null },
    { path: 'c/d.txt', expected: 'unknown' },
    { path: 'gone.txt', expected: null },
  ]);
  t.is(effectOf('claude-code', 'mcp__other__tool', {}), 'anything');
  t.is(effectOf('claude-code', 'Write', { nothing: 1 }), 'anything');
  t.is(effectOf('claude-code', 'Read', { file_path: 'x' }), 'reads');
});

test('a path is inside the tree by where it leads, not by how it begins', (t) => {
  t.is(insideTree('/srv/tree', '/srv/tree/sub', 'a.txt'), 'sub/a.txt');
  t.is(insideTree('/srv/tree', '/srv/tree/sub', '../..a'), '..a');
  t.is(insideTree('/srv/tree', '/srv/tree', '../tree2/a'), null);
  t.is(insideTree('/srv/tree', '/srv/tree', '/srv/tree'), null);
});

const REPLIES: readonly (readonly [AgentName, Step['kind'], Reply, unknown])[] = [
  [
    'claude-code',
    'before-tool',
    { kind: 'deny', reason: 'held' },
    {
      hookSpecificOutput: {
        hookEventName: 'PreToolUse',
        permissionDecision: 'deny',
        permissionDecisionReason: 'held',
      },
    },
  ],
  [
    'codex',
    'session-start',
    { kind: 'context', text: 'know' },
    { hookSpecificOutput: { hookEventName: 'SessionStart', additionalContext: 'know' } },
  ],
  [
    'claude-code',
    'prompt',
    { kind: 'context', text: 'know' },
    { hookSpecificOutput: { hookEventName: 'UserPromptSubmit', additionalContext: 'know' } },
  ],
  [
    'codex',
    'permission',
    { kind: 'deny', reason: 'no' },
    {
      hookSpecificOutput: {
        hookEventName: 'PermissionRequest',
        decision: { behavior: 'deny', message: 'no' },
      },
    },
  ],
  [
    'claude-code',
    'permission',
    { kind: 'allow' },
    { hookSpecificOutput: { hookEventName: 'PermissionRequest', decision: { behavior: 'allow' } } },
  ],
  ['opencode', 'before-tool', { kind: 'deny', reason: 'held' }, { deny: 'held' }],
  ['kilo', 'prompt', { kind: 'context', text: 'know' }, { context: 'know' }],
  ['opencode', 'permission', { kind: 'allow' }, { reply: 'once' }],
  ['kilo', 'permission', { kind: 'deny', reason: 'no' }, { reply: 'reject', message: 'no' }],
];

for (const [agent, kind, reply, said] of REPLIES) {
  test(`${agent} is told '${reply.kind}' at '${kind}' in its own words`, (t) => {
    t.deepEqual(JSON.parse(TRANSLATIONS[agent].encode(kind, reply)), said);
  });
}

for (const agent of AGENTS) {
  test(`${agent} is told nothing where there is nothing to say, and never refused after a tool ran`, (t) => {
    const { encode } = TRANSLATIONS[agent];
    for (const kind of ['session-start', 'prompt', 'before-tool', 'permission'] as const)
      t.is(encode(kind, { kind: 'pass' }), '');
    for (const kind of ['after-tool', 'stop', 'session-end'] as const)
      t.is(encode(kind, { kind: 'deny', reason: 'x' }), '');
  });
}
