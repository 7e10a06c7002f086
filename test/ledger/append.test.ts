import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { DurableError, hasCode } from '../../lib/errors.js';
import type { EventDraft } from '../../lib/event.js';
import { acquire } from '../../lib/lease/acquire.js';
import { Ledger, listTasks, openTask } from '../../lib/ledger/ledger.js';
import { mixedTurn } from '../helpers/event-mix.js';
import {
  answer,
  anyone,
  finish,
  leaseRequest,
  newTask,
  observed,
  openRepository,
  openTurn,
  proposal,
  request,
  startOf,
  steering,
} from '../helpers/turn.js';

const code = (expected: string) => ({ instanceOf: DurableError, code: expected });

test('every append is one commit after the one before, and git log tells a person the story', async (t) => {
  const { scratch, ledger, append } = await openTurn(t);
  await append(proposal('inv-1', 0), steering('Keep\u0007 the old\nname \u202eas an alias'));
  await append(finish());
  const subjects = scratch.git('log', '--reverse', '--format=%s', ledger.ref).split('\n');
  t.deepEqual(subjects, [
    'task.opened: Rename the parser',
    'lease.acquired: epoch 1 by test',
    'turn.started: Rename the parser (test)',
    'invocation.proposed: Edit lib/parse.ts',
    'steering.received: Keep the old name as an alias',
    'turn.finished: completed, done',
  ]);
  t.is(scratch.git('fsck', '--strict', '--no-dangling'), '');
});

test('a whole turn of events of all kinds is appended and folds to what happened', async (t) => {
  const { ledger, append, held } = await openTurn(t);
  await append(finish());
  const options = { seed: 1, lease: held.token.lease, runtime: held.token.runtime };
  for (const draft of mixedTurn(1, options)) {
    const fixed = draft.type === 'turn.started' ? { ...draft, holder: held.record.holder } : draft;
    await append(fixed.type === 'lease.acquired' ? { ...fixed, holder: held.record.holder } : fixed);
  }
  const state = await ledger.state();
  t.is(state.turn?.state, 'finished');
  t.is(state.turn?.invocations.length, 12);
  t.true(state.turn?.invocations.every((call) => call.state === 'finished'));
  t.like(await ledger.verify(), { ok: true, findings: [] });
});

test('several drafts of one append are several commits and one move of the ref', async (t) => {
  const { storage, ledger, by } = await openTurn(t);
  const moves: string[] = [];
  const update = storage.refs.update.bind(storage.refs);
  storage.refs.update = (change, budget) => {
    moves.push(change.move.ref);
    return update(change, budget);
  };
  const recorded = await ledger.append(() => [steering('a'), steering('b'), steering('c')], by);
  t.is(recorded.length, 3);
  t.deepEqual(moves, [ledger.ref]);
  t.is((await ledger.head())?.commit, recorded[2]?.commit);
});

test('the same key is the same event: in one append, in the next, and from another process', async (t) => {
  const { scratch, ledger, by, append } = await openTurn(t);
  const [first, again] = await append(steering('hello', 'm1'), steering('hello twice', 'm1'));
  t.is(again?.commit, first?.commit);
  const [later] = await append(steering('hello', 'm1'));
  t.is(later?.commit, first?.commit);
  const other = Ledger.open(await openRepository(t, scratch), ledger.task);
  const [elsewhere] = await other.append(() => [steering('hello', 'm1')], by);
  t.is(elsewhere?.commit, first?.commit);
  t.is(scratch.git('rev-list', '--count', ledger.ref), '4');
});

test('the key of a turn holds in the whole task: a finished turn is never started twice', async (t) => {
  const { scratch, ledger, held, by, append } = await openTurn(t);
  await append(finish());
  const [second] = await append(startOf('turn-2', held, { key: 'prompt-2' }));
  await append(finish());
  await append(startOf('turn-3', held, { key: 'prompt-3' }), finish());
  const [found] = await append(startOf('turn-9', held, { key: 'prompt-2' }));
  t.is(found?.commit, second?.commit);
  const other = Ledger.open(await openRepository(t, scratch), ledger.task);
  const [cold] = await other.append(() => [startOf('turn-9', held, { key: 'prompt-2' })], by);
  t.is(cold?.event.turn, 'turn-2');
});

test('opening a task twice opens it once', async (t) => {
  const { storage, ledger } = await newTask(t);
  const again = await openTask(storage, {
    task: ledger.task,
    objective: 'Another',
    agent: 'x',
    workspace: null,
  });
  t.is((await again.state()).objective, 'Rename the parser');
  t.is((await again.head())?.seq, 1);
  t.deepEqual(listTasks(storage), [ledger.task]);
});

test('a lost swap is decided again on the newer state, and leaves no commit behind', async (t) => {
  const { scratch, storage, ledger, by } = await openTurn(t);
  const rival = Ledger.open(await openRepository(t, scratch), ledger.task);
  const seen: number[] = [];
  const [recorded] = await ledger.append(async (state) => {
    seen.push(state.head?.seq ?? 0);
    if (seen.length === 1) await rival.append(() => [observed('a rival was faster')], anyone);
    return [steering(`after ${String(state.head?.seq)}`)];
  }, by);
  t.deepEqual(seen, [3, 4]);
  t.is(recorded?.event.seq, 5);
  t.is((await ledger.event(recorded?.commit ?? '')).event.seq, 5);
  t.is(scratch.git('fsck', '--unreachable', '--no-reflogs'), '');
  t.is(
    storage.loose.journalled().length,
    scratch.git('rev-list', '--objects', '--all').split('\n').length - 3,
  );
});

test('an append of a holder whose lease was given up or taken is refused, and nothing is recorded', async (t) => {
  const { storage, ledger, held, by, append } = await openTurn(t);
  await append(finish());
  await held.release();
  await t.throwsAsync(append(steering('late')), code('lease-lost'));
  const next = await acquire(storage, leaseRequest(ledger.task, 'turn-2'));
  await t.throwsAsync(append(steering('later')), code('lease-lost'));
  t.is((await ledger.head())?.seq, 4);
  t.is(next.token.epoch, by.lease === null ? 0 : by.lease.epoch + 1);
});

test('the lease is verified in the same ref transaction: lost between check and move, the append is refused', async (t) => {
  const { storage, ledger, held, by } = await openTurn(t);
  let released = false;
  const update = storage.refs.update.bind(storage.refs);
  storage.refs.update = async (change, budget) => {
    if (!released && change.move.ref === ledger.ref) {
      released = true;
      await held.release();
    }
    return update(change, budget);
  };
  await t.throwsAsync(
    ledger.append(() => [steering('stale')], by),
    code('lease-lost'),
  );
  t.is((await ledger.head())?.seq, 3);
});

test('a renewal between check and move does not refuse the append', async (t) => {
  const { storage, ledger, held, by } = await openTurn(t);
  let renewed = 0;
  const update = storage.refs.update.bind(storage.refs);
  storage.refs.update = async (change, budget) => {
    if (change.move.ref === ledger.ref && renewed < 3) {
      renewed += 1;
      await held.renew();
    }
    return update(change, budget);
  };
  const [recorded] = await ledger.append(() => [steering('still mine')], by);
  t.is(recorded?.event.seq, 4);
  t.is(renewed, 3);
});

test('tries end with the time budget and a typed error', async (t) => {
  const { storage, ledger, by } = await openTurn(t);
  storage.refs.update = (change) => Promise.resolve({ moved: false, ref: change.move.ref, was: null });
  await t.throwsAsync(
    ledger.append(() => [steering('x')], { ...by, budgetMs: 20 }),
    code('ref-moved'),
  );
});

test('a lease-bound event without a token is refused as wrong use', async (t) => {
  const { ledger } = await openTurn(t);
  await t.throwsAsync(
    ledger.append(() => [steering('x')], anyone),
    code('usage'),
  );
});

test('an event is refused when its turn is over, is another one, or there is none', async (t) => {
  const { storage, held, append } = await openTurn(t);
  await t.throwsAsync(append({ ...steering('x'), turn: 'turn-0' }), code('turn-closed'));
  await t.throwsAsync(append(startOf('turn-2', held, { key: 'k' })), code('turn-claimed'));
  await append({ type: 'turn.interrupted', detectedBy: 'keeper', reason: 'killed', survivors: [] });
  await t.throwsAsync(append(steering('x')), code('turn-closed'));
  await t.throwsAsync(append(startOf('turn-2', held)), code('recovery-needed'));
  const none = await openTask(storage, {
    objective: 'Other',
    agent: 'test',
    workspace: null,
  });
  await t.throwsAsync(
    none.append(() => [steering('x')], { lease: held.token, agent: 'test', workspace: null }),
    code('no-turn'),
  );
});

test('of two answers to one request the second is told who answered', async (t) => {
  const { scratch, ledger, append } = await openTurn(t);
  await append(request('app-1'));
  const other = Ledger.open(await openRepository(t, scratch), ledger.task);
  await other.append(() => [answer('app-1', 'rejected', 'ann')], anyone);
  const error = await t.throwsAsync(
    ledger.append(() => [answer('app-1', 'approved', 'bob')], anyone),
    code('approval-settled'),
  );
  t.true(hasCode(error, 'approval-settled') && error.fields.by === 'ann');
});

test('an approval lets one call run once, and a rewind takes it away', async (t) => {
  const { ledger, append } = await openTurn(t);
  await append(proposal('inv-1', 0), proposal('inv-2', 1), request('app-1', 'inv-1'));
  const consume = (approval: string, invocation: string) =>
    ({ type: 'approval.consumed', approval, invocation, use: 'run' }) as const;
  await t.throwsAsync(append(consume('app-1', 'inv-1')), code('approval-settled'));
  await ledger.append(() => [answer('app-1', 'approved')], anyone);
  const [used] = await append(consume('app-1', 'inv-1'));
  const [again] = await append(consume('app-1', 'inv-1'));
  t.is(again?.commit, used?.commit);
  await t.throwsAsync(append(consume('app-1', 'inv-2')), code('approval-settled'));
  const [asked] = await append(request('app-2', 'inv-2'));
  const toSeq = (asked?.event.seq ?? 0) - 1;
  const rewind: EventDraft = { type: 'conversation.rewound', toSeq, turns: [], reason: '' };
  await ledger.append(() => [answer('app-2', 'approved'), rewind], anyone);
  await t.throwsAsync(append(consume('app-2', 'inv-2')), code('approval-settled'));
});

test('an epoch that is new to a ledger begins with lease.acquired, whoever forgot it', async (t) => {
  const { ledger, append } = await openTurn(t);
  await append(finish());
  const types: string[] = [];
  for await (const { event } of ledger.forwards()) types.push(event.type);
  t.deepEqual(types, ['task.opened', 'lease.acquired', 'turn.started', 'turn.finished']);
});

test('text that is too long is redacted and cut, never refused', async (t) => {
  const { scratch, ledger, by } = await openTurn(t);
  const storage = await openRepository(t, scratch);
  const careful = Ledger.open(storage, ledger.task, {
    redact: (text) => text.replaceAll('hunter2', '[secret]'),
  });
  const [recorded] = await careful.append(() => [steering(`hunter2 ${'😀'.repeat(2000)}`)], by);
  t.true(recorded?.event.type === 'steering.received' && recorded.event.text.startsWith('[secret] 😀'));
  t.true(recorded?.event.type === 'steering.received' && recorded.event.text.length <= 2000);
  t.true(recorded?.event.type === 'steering.received' && recorded.event.text.isWellFormed());
});

test('a full disk refuses the append, and the same append works when there is room', async (t) => {
  const { scratch, ledger, by } = await openTurn(t);
  let full = true;
  const host = {
    faults: {
      hit: (point: string) => {
        if (full && point === 'object.temp:write:before')
          throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
      },
    },
  };
  const cramped = Ledger.open(await openRepository(t, scratch, host), ledger.task);
  await t.throwsAsync(
    cramped.append(() => [steering('x', 'k')], by),
    code('out-of-space'),
  );
  full = false;
  const [recorded] = await cramped.append(() => [steering('x', 'k')], by);
  t.is(recorded?.event.seq, 4);
  t.is(scratch.git('fsck', '--strict'), '');
});

test('four processes append at once: every receipt is in the ledger once, the chain holds, nothing is litter', async (t) => {
  const { scratch, ledger } = await newTask(t);
  const program = join(import.meta.dirname, '../helpers/append-child.js');
  const children = ['a', 'b', 'c', 'd'].map((name) =>
    spawn(process.execPath, [program, scratch.dir, ledger.task, name, '25'], { env: scratch.env }),
  );
  const receipts = await Promise.all(
    children.map(async (child) => {
      let out = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
      const [exit] = (await once(child, 'close')) as [number];
      t.is(exit, 0);
      return out.trim().split('\n');
    }),
  );
  const listed = scratch.git('rev-list', ledger.ref).split('\n');
  t.is(listed.length, 101);
  t.is(new Set(receipts.flat()).size, 100);
  t.true(receipts.flat().every((commit) => listed.includes(commit)));
  t.like(await ledger.verify(), { ok: true, events: 101 });
  t.is(scratch.git('fsck', '--strict', '--unreachable', '--no-reflogs'), '');
  t.deepEqual(readdirSync(join(scratch.dir, '.git/durable/tickets')).length <= 1, true);
});
