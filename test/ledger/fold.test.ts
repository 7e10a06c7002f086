import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import fc from 'fast-check';
import type { Event, EventDraft, Recorded } from '../../lib/event.js';
import { openDecisions } from '../../lib/ledger/carried.js';
import { fold, foldAll, Folding, initialState, seededState } from '../../lib/ledger/fold.js';
import { KeyIndex } from '../../lib/ledger/key-index.js';
import { loadState } from '../../lib/ledger/load.js';
import { Ledger } from '../../lib/ledger/ledger.js';
import type { TaskState } from '../../lib/ledger/state.js';
import { anyEvent, seed } from '../helpers/arbitrary-event.js';
import { importLedger } from '../helpers/ledger-import.js';
import { answer, anyone, finish, newTask, openTurn, proposal, request, startOf } from '../helpers/turn.js';

const at = (event: Event, n: number): Recorded => ({
  commit: n.toString(16).padStart(40, '0'),
  chain: n.toString(16).padStart(64, '0'),
  event,
});

test('folding is total: any events in any order give a state, and the state before stays as it was', (t) => {
  fc.assert(
    fc.property(fc.array(anyEvent(), { maxLength: 40 }), (events) => {
      let state = initialState('task');
      for (const [n, event] of events.entries()) {
        const before = plain(state);
        const next = fold(state, at(event, n));
        t.deepEqual(plain(state), before);
        t.is(next.head?.commit, at(event, n).commit);
        state = next;
      }
      const recorded = events.map((event, n) => at(event, n));
      t.deepEqual(plain(foldAll(initialState('task'), recorded)), plain(state));
    }),
    { seed: seed(), numRuns: 150 },
  );
});

test('a state folded from the newest turn is the state folded from the first event', async (t) => {
  const { storage } = await newTask(t);
  const { task, ref, state } = await importLedger(storage, { task: 'long', events: 700 });
  const head = storage.refs.read(ref) ?? '';
  t.deepEqual(plain(await loadState(storage, task, head)), plain(state));
  t.is(state.turn?.state, 'finished');
  t.is(state.objective, 'Rename the parser');
});

test('what earlier turns left undecided is carried, with its answer, and seeds the fold of the next turn', async (t) => {
  const { scratch, storage, ledger, held, append } = await openTurn(t);
  await append(
    request('app-pending'),
    request('app-approved'),
    request('app-rejected'),
    request('app-expired'),
  );
  await ledger.append(() => [answer('app-approved', 'approved'), answer('app-rejected', 'rejected')], anyone);
  await ledger.append(
    () => [answer('app-expired', 'expired'), conflict('con-open'), conflict('con-done')],
    anyone,
  );
  const choice = {
    type: 'conflict.resolved',
    conflict: 'con-done',
    choice: 'keep-mine',
    by: 'ann',
    transaction: null,
  } as const;
  await ledger.append(() => [choice], anyone);
  await append(prepared('tx-open'), prepared('tx-done'), {
    type: 'transaction.committed',
    transaction: 'tx-done',
    by: 'writer',
  });
  const before = await ledger.state();
  t.deepEqual(
    openDecisions(before).map(({ kind, id }) => `${kind} ${id}`),
    [
      'approval app-pending',
      'approval app-approved',
      'approval app-rejected',
      'conflict con-open',
      'transaction tx-open',
    ],
  );
  await append(finish(), startOf('turn-2', held));
  await append(finish(), startOf('turn-3', held));
  const state = await ledger.state();
  t.is(state.approvals.get('app-approved')?.state, 'approved');
  t.is(state.approvals.get('app-rejected')?.resolved?.event.by, 'person');
  t.is(state.approvals.get('app-pending')?.carried, true);
  t.deepEqual([...state.conflicts.keys()], ['con-open']);
  t.deepEqual([...state.transactions.keys()], ['tx-open']);
  t.is(state.turn?.transactions.length, 0);
  const cold = Ledger.open(storage, ledger.task);
  t.deepEqual(plain(await cold.state()), plain(state));
  t.deepEqual((await ledger.verify()).findings, []);
  t.is(scratch.git('rev-list', '--count', ledger.ref), String(state.head?.seq));
});

test('a turn is open, interrupted, recovered or finished, and resume opens it again', async (t) => {
  const { ledger, append } = await openTurn(t);
  const phase = async () => (await ledger.state()).turn?.state;
  t.is(await phase(), 'open');
  await append({ type: 'turn.interrupted', detectedBy: 'keeper', reason: 'killed', survivors: [] });
  t.is(await phase(), 'interrupted');
  await append(recovered('resume'));
  t.is(await phase(), 'open');
  await append(finish());
  t.is(await phase(), 'finished');
});

test('an invocation is proposed, started and finished, in the order of proposal', async (t) => {
  const { ledger, append } = await openTurn(t);
  await append(proposal('inv-a', 0), proposal('inv-b', 1));
  await append({ type: 'invocation.started', invocation: 'inv-b', approval: null, process: null });
  await append(ended('inv-b', 'failed'));
  const { turn } = await ledger.state();
  t.deepEqual(
    turn?.invocations.map(({ id, state }) => `${id} ${state}`),
    ['inv-a proposed', 'inv-b failed'],
  );
  t.is(turn?.invocations[1]?.finished?.event.summary, 'no');
});

test('keys are shared by all states of a chain, and a second branch does not see those of the first', (t) => {
  const base = KeyIndex.empty().with('a', '1');
  const left = base.with('b', '2');
  const right = base.with('c', '3');
  t.deepEqual(
    [...left],
    [
      ['a', '1'],
      ['b', '2'],
    ],
  );
  t.deepEqual(
    [...right],
    [
      ['a', '1'],
      ['c', '3'],
    ],
  );
  t.deepEqual([...base.keys()], ['a']);
  t.false(base.has('b'));
  t.is(left.with('a', '9').get('a'), '1');
  t.is(KeyIndex.from(new Map([['x', 'y']])).get('x'), 'y');
});

test.serial('a long turn does not keep its events: twenty thousand texts fold into a small state', (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const folding = new Folding(seededState('task', opened, []));
  const text = 'x'.repeat(1900);
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let n = 2; n < 20_002; n += 1) {
    const said: Event = {
      ...common,
      seq: n,
      key: `m${String(n)}`,
      type: 'steering.received',
      text: `${text}${String(n)}`,
      content: null,
    };
    folding.add(at(structuredClone(said), n));
  }
  collect();
  const each = (process.memoryUsage().heapUsed - before) / 20_000;
  t.is(folding.state().keys.size, 20_000);
  t.true(each < 500, `${each.toFixed(0)} bytes an event`);
});

test('a rewind takes back the requests after it, and no answer brings them back', (t) => {
  const events = fc.sample(anyEvent(), { seed: 1, numRuns: 1 });
  t.is(events.length, 1);
  const base = seededState('task', opened, []);
  const asked = fold(base, at(approvalEvent(7), 7));
  const rewound = fold(asked, at({ ...rewindTo(5), seq: 8 }, 8));
  t.is(rewound.approvals.get('app-7')?.state, 'invalidated');
  t.is(fold(asked, at({ ...rewindTo(7), seq: 8 }, 8)).approvals.get('app-7')?.state, 'pending');
});

const common = {
  v: 1,
  at: '2026-01-01T00:00:00.000Z',
  task: 'task',
  workspace: null,
  turn: null,
  turnStart: null,
  agent: 'test',
  lease: null,
  epoch: null,
  key: null,
} as const;
const opened: Recorded<'task.opened'> = {
  commit: '0'.repeat(40),
  chain: '0'.repeat(64),
  event: { ...common, seq: 1, type: 'task.opened', objective: 'x', standing: false },
};
const rewindTo = (toSeq: number): Event<'conversation.rewound'> => ({
  ...common,
  seq: 0,
  type: 'conversation.rewound',
  toSeq,
  turns: [],
  reason: '',
});

function approvalEvent(seq: number): Event {
  const draft = request(`app-${String(seq)}`);
  return { ...common, ...draft, seq } as Event;
}

function conflict(id: string): EventDraft {
  return {
    type: 'conflict.detected',
    conflict: id,
    path: 'a',
    base: null,
    theirs: null,
    mine: 'unknown',
    why: 'late-write',
  };
}

function prepared(id: string): EventDraft {
  const oid = '1'.repeat(40);
  const manifest = { oid, digest: '2'.repeat(64), bytes: 1 };
  return {
    type: 'transaction.prepared',
    transaction: id,
    invocation: null,
    purpose: 'edit',
    contents: oid,
    manifest,
    paths: 1,
  };
}

function recovered(action: 'keep' | 'resume'): EventDraft {
  return {
    type: 'turn.recovered',
    action,
    checkpoint: null,
    report: { oid: '1'.repeat(40), digest: '2'.repeat(64), bytes: 1 },
    invocations: [],
    files: { untouched: 0, written: 0, partial: 0, foreign: 0, deleted: 0, changed: 0 },
    restored: 0,
    removed: 0,
    ended: [],
  };
}

function ended(invocation: string, state: 'finished' | 'failed'): EventDraft {
  return {
    type: 'invocation.finished',
    invocation,
    state,
    summary: 'no',
    exit: 1,
    resultDigest: null,
    result: null,
    checkpoint: null,
    durationMs: null,
    settled: null,
  };
}

/** A state without its maps' identities, to compare. */
function plain(state: TaskState): unknown {
  return {
    ...state,
    keys: [...state.keys],
    approvals: [...state.approvals],
    conflicts: [...state.conflicts],
    transactions: [...state.transactions],
    epochs: [...state.epochs],
  };
}
