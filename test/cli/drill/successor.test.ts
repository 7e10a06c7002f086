import test from 'ava';
import type { Answers, Compared } from '../../../cli/drill/answers.js';
import { conflictIntact } from '../../../cli/drill/contested.js';
import { foldRecord } from '../../../cli/drill/expectation.js';
import type { Line } from '../../../cli/drill/record.js';
import { CONTESTED } from '../../../cli/drill/scratch.js';
import {
  answerHonoured,
  conflictHeld,
  type Answered,
  type Sequel,
  type Told,
} from '../../../cli/drill/successor.js';
import { sha256 } from '../../../cli/drill/tree.js';
import { FREE_PATH, REFUSAL } from '../../../cli/drill/wording.js';

const ARGS = '{"a":" é"}';
const DIGEST = sha256(Buffer.from(ARGS));
const LINES: readonly Line[] = [
  {
    act: 1,
    kind: 'approval',
    phase: 'before',
    detail: 'act 1',
    facts: { tool: 'shell', args: ARGS, cwd: '/src' },
  },
  { act: 1, kind: 'approval', phase: 'after', detail: 'act 1', facts: { approval: 'first' } },
  { act: 2, kind: 'conflict', phase: 'before', detail: 'act 2' },
  { act: 2, kind: 'conflict', phase: 'after', detail: 'act 2', facts: { conflict: 'met' } },
];
const acts = foldRecord(LINES);

const said = <T>(document: T) => ({ code: 0, stderr: '', document });
const open = (...ids: string[]): Answers['conflicts'] =>
  said({ open: ids.map((id) => ({ id, path: CONTESTED.path, state: 'open' })) });
const SIDES: Compared = {
  id: 'met',
  base: { text: CONTESTED.base },
  theirs: { text: CONTESTED.theirs },
  mine: { text: CONTESTED.mine },
  now: { text: CONTESTED.theirs },
};

/** Only what these checks look at. */
function answers(more: Partial<Answers> = {}, counted = 1): Answers {
  const status = { interrupted: [], approvals: 0, conflicts: counted, orphans: 0 };
  return {
    recover: said({ interrupted: [] }),
    status: said(status),
    approvals: said({ pending: [] }),
    started: said({ turn: 'turn', instructions: [] }),
    conflicts: open('met'),
    compared: [said(SIDES)],
    ...more,
  };
}

const asked = (state: string, approval: string, feedback: string | null = null): Told => {
  return { what: 'asked', state, approval, feedback };
};
const wrote = (path: string, refused: string | null): Told => ({ what: 'wrote', path, refused });
const WRITES = [wrote(CONTESTED.path, 'conflict-open'), wrote(FREE_PATH, null)];

const USED = [
  { type: 'approval.requested', approval: 'first', args: { oid: 'blob' } },
  { type: 'invocation.proposed', invocation: 'call', argsDigest: DIGEST },
  { type: 'approval.consumed', approval: 'first', invocation: 'call' },
];

function sequel(told: readonly Told[], more: Partial<Sequel> = {}): Sequel {
  return {
    told: [...told, ...WRITES],
    failure: null,
    events: USED,
    bytesOf: () => Buffer.from(ARGS),
    open: open('met'),
    ...more,
  };
}

const APPROVED: Answered = { id: 'first', decision: 'approved', code: 0 };
const REJECTED: Answered = { id: 'first', decision: 'rejected', code: 0 };
const PENDING: Answered = { id: 'first', decision: 'pending', code: 0 };
const ONCE = [asked('approved', 'first'), asked('pending', 'second')];

test('an answer that counted once, and a request that still waits, pass', (t) => {
  t.deepEqual(answerHonoured(acts, APPROVED, sequel(ONCE)), []);
  const refused = [asked('rejected', 'first', REFUSAL), asked('pending', 'second')];
  t.deepEqual(answerHonoured(acts, REJECTED, sequel(refused)), []);
  const waiting = sequel([asked('pending', 'first'), asked('pending', 'first')], { events: [] });
  t.deepEqual(answerHonoured(acts, PENDING, waiting), []);
  t.deepEqual(answerHonoured([], { id: null, decision: 'pending', code: 0 }, waiting), []);
});

const WRONG: readonly (readonly [string, Answered, Sequel])[] = [
  ['a successor that fails', APPROVED, sequel([], { failure: 'it ended with 1' })],
  ['a successor that does not ask', APPROVED, sequel([])],
  ['an answer that was refused', { ...APPROVED, code: 4 }, sequel(ONCE)],
  ['an answer that is forgotten', APPROVED, sequel([asked('pending', 'first'), asked('pending', 'first')])],
  [
    'an answer to another request',
    APPROVED,
    sequel([asked('approved', 'other'), asked('pending', 'second')]),
  ],
  ['an answer that nobody gave', PENDING, sequel(ONCE)],
  ['an answer that counts twice', APPROVED, sequel([asked('approved', 'first'), asked('approved', 'first')])],
  [
    'other feedback',
    REJECTED,
    sequel([asked('rejected', 'first', REFUSAL.trim()), asked('pending', 'second')]),
  ],
  ['a use that is not recorded', APPROVED, sequel(ONCE, { events: USED.slice(0, 2) })],
  ['two uses', APPROVED, sequel(ONCE, { events: [...USED, ...USED.slice(2)] })],
  [
    'a call with other arguments',
    APPROVED,
    sequel(ONCE, {
      events: USED.map((event) => ('argsDigest' in event ? { ...event, argsDigest: '0' } : event)),
    }),
  ],
  [
    'other arguments that are kept',
    APPROVED,
    sequel(ONCE, { bytesOf: () => Buffer.from(ARGS.normalize('NFD')) }),
  ],
];

for (const [what, answered, after] of WRONG) {
  test(`${what} is a complaint`, (t) => {
    t.not(answerHonoured(acts, answered, after).length, 0);
  });
}

test('a conflict that is open with both sides, and blocks its path alone, passes', (t) => {
  t.deepEqual(conflictIntact({ acts }, answers()), []);
  t.deepEqual(conflictHeld(answers(), sequel(ONCE)), []);
  const none = answers({ conflicts: open(), compared: [] }, 0);
  t.deepEqual(conflictIntact({ acts: acts.slice(0, 1) }, none), []);
  const free = sequel([], { open: open(), told: [wrote(CONTESTED.path, null), wrote(FREE_PATH, null)] });
  t.deepEqual(conflictHeld(none, free), []);
});

const LIES: readonly (readonly [string, Answers])[] = [
  ['no conflict', answers({ conflicts: open(), compared: [] }, 0)],
  ['two conflicts', answers({ conflicts: open('met', 'other') }, 2)],
  ['another conflict', answers({ conflicts: open('other') })],
  ['another count', answers({}, 0)],
  ['another exit code', answers({ conflicts: { ...open('met'), code: 1 } })],
  ['another path', answers({ conflicts: said({ open: [{ id: 'met', path: 'x', state: 'open' }] }) })],
  ...(['base', 'theirs', 'mine', 'now'] as const).map(
    (side) =>
      [`another ${side}`, answers({ compared: [said({ ...SIDES, [side]: { text: 'x' } })] })] as const,
  ),
];

for (const [lie, told] of LIES) {
  test(`${lie} where one was met is a complaint`, (t) => {
    t.not(conflictIntact({ acts }, told).length, 0);
  });
}

const LEFT: readonly (readonly [string, Sequel])[] = [
  ['a conflict that went with the repairs', sequel([], { open: open() })],
  [
    'a path that is written over its conflict',
    sequel([], { told: [wrote(CONTESTED.path, null), wrote(FREE_PATH, null)] }),
  ],
  [
    'a free path that is refused',
    sequel([], { told: [WRITES[0] ?? wrote('', null), wrote(FREE_PATH, 'conflict-open')] }),
  ],
  ['a successor that wrote nothing', sequel([], { told: [] })],
];

for (const [what, after] of LEFT) {
  test(`${what} is a complaint`, (t) => {
    t.not(conflictHeld(answers(), after).length, 0);
  });
}
