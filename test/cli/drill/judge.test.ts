/** The judge must notice each lie: a true answer passes, and the same answer with one thing wrong does not. */
import test from 'ava';
import type { Answers, Interrupted } from '../../../cli/drill/answers.js';
import { foldRecord, mustBeKnown, storiesOf } from '../../../cli/drill/expectation.js';
import {
  approvalIntact,
  gitStatusMatches,
  knowsInterrupted,
  orphanFound,
  reportsFiles,
  type Complaints,
  type Facts,
} from '../../../cli/drill/judge.js';
import type { Line } from '../../../cli/drill/record.js';
import { blobId, leaf, sha256, type Leaf, type Tree } from '../../../cli/drill/tree.js';
import { APPROVAL, OBJECTIVE } from '../../../cli/drill/wording.js';

const file = (text: string): Leaf => leaf('100644', Buffer.from(text));
const name = (text: string): string => blobId('sha1', Buffer.from(text));

const BEFORE: Tree = new Map([
  ['done.ts', file('old done')],
  ['flight.ts', file('old flight')],
  ['dirty.ts', file('edited by the user')],
  ['keep.ts', file('keep')],
]);
const NOW: Tree = new Map([
  ...BEFORE,
  ['done.ts', file('new done')],
  ['flight.ts', file('new')],
  ['else.ts', file('drift')],
]);
const HEAD: Tree = new Map([...BEFORE, ['dirty.ts', file('committed')]]);

const rewrite = (act: number, path: string, after: string, phases: readonly Line['phase'][]): Line[] =>
  phases.map((phase) => ({
    act,
    kind: 'rewrite',
    phase,
    detail: `act ${String(act)}`,
    ...(phase === 'before'
      ? {
          paths: [
            {
              path,
              before: BEFORE.get(path)?.sha256 ?? null,
              after: sha256(Buffer.from(after)),
              mode: '100644' as const,
              bytes: Buffer.from(after).toString('base64'),
            },
          ],
        }
      : {}),
  }));

const asked = { tool: APPROVAL.tool, args: JSON.stringify(APPROVAL.args), cwd: '/src' };
const receipt = { ...asked, approval: 'approval1', fingerprint: 'f'.repeat(64) };

const LINES: readonly Line[] = [
  { act: 0, kind: 'turn', phase: 'before', detail: OBJECTIVE },
  { act: 0, kind: 'turn', phase: 'after', detail: OBJECTIVE, facts: { turn: 'turn1', task: 'task1' } },
  { act: 1, kind: 'approval', phase: 'before', detail: 'act 1', facts: asked },
  { act: 1, kind: 'approval', phase: 'after', detail: 'act 1', facts: receipt },
  ...rewrite(2, 'done.ts', 'new done', ['before', 'entered', 'piece', 'wrote', 'after']),
  ...rewrite(3, 'flight.ts', 'new flight', ['before', 'entered', 'piece']),
];

const acts = foldRecord(LINES);
const stories = storiesOf(acts, { before: BEFORE, killed: NOW, now: NOW });
const FACTS: Facts = {
  format: 'sha1',
  acts,
  stories,
  certain: mustBeKnown(stories, acts, NOW),
  head: HEAD,
  instructions: new Map([['AGENTS.md', 'a'.repeat(64)]]),
  dirtyBefore: new Set(['dirty.ts']),
  dirtyNow: new Set(['dirty.ts', 'done.ts', 'flight.ts', 'else.ts']),
  alive: [{ pid: 42, parent: 1, group: 42, start: '7', command: 'sleep 1' }],
  keeper: 'killed',
};

const REPORT: Interrupted = {
  turn: 'turn1',
  task: 'task1',
  objective: OBJECTIVE,
  agent: 'scripted',
  startedAt: '',
  lastEventAt: '',
  detectedBy: 'recover',
  invocations: [
    { id: 'a', tool: 'shell', state: 'not-started', summary: 'act 1' },
    { id: 'b', tool: 'edit', state: 'finished', summary: 'act 2' },
    { id: 'c', tool: 'edit', state: 'in-doubt', summary: 'act 3' },
  ],
  files: [
    {
      path: 'done.ts',
      state: 'written',
      before: name('old done'),
      expected: name('new done'),
      now: name('new done'),
    },
    {
      path: 'flight.ts',
      state: 'partial',
      before: name('old flight'),
      expected: name('new flight'),
      now: name('new'),
    },
  ],
  approvals: [
    {
      id: 'approval1',
      tool: APPROVAL.tool,
      args: APPROVAL.args,
      fingerprint: 'f'.repeat(64),
      requestedAt: '',
    },
  ],
  orphans: [{ pid: 42, command: 'sleep 1', startedAt: '' }],
  gitStatusMatches: false,
  drift: ['else.ts'],
};

function answers(report: Partial<Interrupted> = {}, more: Partial<Answers> = {}): Answers {
  const told = { ...REPORT, ...report };
  return {
    recover: { code: 3, stderr: '', document: { interrupted: [told] } },
    status: {
      code: 0,
      stderr: '',
      document: { interrupted: [{ id: told.turn, task: told.task }], approvals: 1, conflicts: 0, orphans: 1 },
    },
    approvals: {
      code: 0,
      stderr: '',
      document: {
        pending: told.approvals.map((one) => ({ ...one, task: 'task1', turn: 'turn1', cwd: '/src' })),
      },
    },
    started: {
      code: 0,
      stderr: '',
      document: { turn: 'turn1', instructions: [{ path: 'AGENTS.md', digest: 'a'.repeat(64) }] },
    },
    conflicts: { code: 0, stderr: '', document: { open: [] } },
    compared: [],
    ...more,
  };
}

const CHECKS = { knowsInterrupted, reportsFiles, approvalIntact, gitStatusMatches, orphanFound };

test('true answers pass every check', (t) => {
  for (const check of Object.values(CHECKS)) t.deepEqual(check(FACTS, answers()), []);
});

const [first, second] = REPORT.files;
const [approval] = REPORT.approvals;
const withFile = (change: object): Partial<Interrupted> =>
  first === undefined || second === undefined ? {} : { files: [first, { ...second, ...change }] };
const withApproval = (change: object): Partial<Interrupted> =>
  approval === undefined ? {} : { approvals: [{ ...approval, ...change }] };
const withCall = (index: number, change: object): Partial<Interrupted> => ({
  invocations: REPORT.invocations.map((call, at) => (at === index ? { ...call, ...change } : call)),
});

const LIES: readonly [string, keyof typeof CHECKS, Answers][] = [
  [
    'no interrupted turn',
    'knowsInterrupted',
    answers({}, { recover: { code: 0, stderr: '', document: { interrupted: [] } } }),
  ],
  ['another turn', 'knowsInterrupted', answers({ turn: 'turn2' })],
  ['a keeper that had been killed', 'knowsInterrupted', answers({ detectedBy: 'keeper' })],
  [
    'no instructions',
    'knowsInterrupted',
    answers({}, { started: { code: 0, stderr: '', document: { turn: 'turn1', instructions: [] } } }),
  ],
  ['another objective', 'knowsInterrupted', answers({ objective: OBJECTIVE.slice(1) })],
  [
    'the exit code of nothing to do',
    'knowsInterrupted',
    answers({}, { recover: { code: 0, stderr: '', document: { interrupted: [REPORT] } } }),
  ],
  ['a call in doubt as finished', 'knowsInterrupted', answers(withCall(2, { state: 'finished' }))],
  ['a finished call as in doubt', 'knowsInterrupted', answers(withCall(1, { state: 'in-doubt' }))],
  ['a call that waits as denied', 'knowsInterrupted', answers(withCall(0, { state: 'denied' }))],
  ['a call less', 'knowsInterrupted', answers({ invocations: REPORT.invocations.slice(0, 2) })],
  [
    'a call more',
    'knowsInterrupted',
    answers({
      invocations: [...REPORT.invocations, { id: 'd', tool: 'x', state: 'failed', summary: 'act 4' }],
    }),
  ],
  ['calls in another order', 'knowsInterrupted', answers({ invocations: REPORT.invocations.toReversed() })],
  ['a file in part as whole', 'reportsFiles', answers(withFile({ state: 'written' }))],
  ['a file in part as untouched', 'reportsFiles', answers(withFile({ state: 'untouched' }))],
  ['another object before', 'reportsFiles', answers(withFile({ before: name('x') }))],
  ['another object expected', 'reportsFiles', answers(withFile({ expected: null }))],
  ['another object now', 'reportsFiles', answers(withFile({ now: name('new flight') }))],
  ['a file less', 'reportsFiles', answers({ files: REPORT.files.slice(0, 1) })],
  [
    'a file more',
    'reportsFiles',
    answers({
      files: [
        ...REPORT.files,
        {
          path: 'keep.ts',
          state: 'untouched',
          before: name('keep'),
          expected: name('keep'),
          now: name('keep'),
        },
      ],
    }),
  ],
  ['no approval', 'approvalIntact', answers({ approvals: [] })],
  [
    'an argument without its last space',
    'approvalIntact',
    answers(withApproval({ args: { ...APPROVAL.args, zeta: [...APPROVAL.args.zeta.slice(0, -1), ''] } })),
  ],
  [
    'composed letters for decomposed ones',
    'approvalIntact',
    answers(withApproval({ args: { ...APPROVAL.args, command: APPROVAL.args.command.normalize('NFD') } })),
  ],
  ['another fingerprint', 'approvalIntact', answers(withApproval({ fingerprint: '0'.repeat(64) }))],
  ['a match where something drifted', 'gitStatusMatches', answers({ gitStatusMatches: true, drift: [] })],
  ['another drift', 'gitStatusMatches', answers({ drift: ['dirty.ts'] })],
  ['no orphan', 'orphanFound', answers({ orphans: [] })],
  [
    'another process as orphan',
    'orphanFound',
    answers({ orphans: [{ pid: 43, command: 'sleep 1', startedAt: '' }] }),
  ],
];

for (const [lie, check, told] of LIES) {
  test(`${check} fails on ${lie}`, (t) => {
    const complaints: Complaints = CHECKS[check](FACTS, told);
    t.not(complaints.length, 0);
  });
}
