import { rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { Event } from '../../lib/event.js';
import { Ledger } from '../../lib/ledger/ledger.js';
import { encodeEvent } from '../../lib/ledger/message.js';
import { forgeCommit, forgeLedger } from '../helpers/forge.js';
import { importLedger } from '../helpers/ledger-import.js';
import { finish, newTask, observed, anyone, openRepository, openTurn, steering } from '../helpers/turn.js';

async function imported(t: Parameters<typeof newTask>[0]) {
  const { scratch, storage } = await newTask(t);
  const { task, events } = await importLedger(storage, { task: 'long', events: 100 });
  return { scratch, storage, events, ledger: Ledger.open(storage, task) };
}

test('a ledger of whole turns verifies, and verifying writes nothing', async (t) => {
  const { scratch, ledger, events } = await imported(t);
  const before = scratch.git('rev-parse', '--all');
  const { chain } = (await ledger.head()) ?? {};
  t.deepEqual(await ledger.verify(), {
    ok: true,
    events,
    head: scratch.git('rev-parse', ledger.ref),
    chain: chain ?? '',
    findings: [],
  });
  t.is(scratch.git('rev-parse', '--all'), before);
});

test('a task without a ledger is whole and empty', async (t) => {
  const { storage } = await newTask(t);
  const none = Ledger.open(storage, 'none');
  t.deepEqual(await none.verify(), { ok: true, events: 0, head: null, chain: null, findings: [] });
});

test('a ledger written anew by the same rules verifies: what the tests below change is what is found', async (t) => {
  const { storage, ledger, events } = await imported(t);
  await forgeLedger(storage, ledger, (event) => event);
  t.like(await ledger.verify(), { ok: true, events });
});

type Change = (event: Event) => Event | null;

const at = (seq: number, change: (event: Event) => Event | null): Change => {
  return (event) => (event.seq === seq ? change(event) : event);
};

/** In the imported ledger: 1 task.opened, 2 lease.acquired, 3 turn.started, 4 and on its calls; the next turn has epoch 2. */
const tampered: readonly [string, Change, number, string][] = [
  ['an epoch that goes down', at(60, (event) => ({ ...event, epoch: 1 })), 60, 'epoch-went-down'],
  ['an epoch that nobody acquired', at(70, (event) => ({ ...event, epoch: 3 })), 70, 'epoch-not-acquired'],
  [
    'a lease whose acquisition was left out',
    (event) => (event.type === 'lease.acquired' && event.epoch === 1 ? null : event),
    2,
    'epoch-not-acquired',
  ],
  [
    'an epoch with two holders',
    at(3, (event) =>
      event.type === 'turn.started' ? { ...event, holder: { ...event.holder, runtime: 'other' } } : event,
    ),
    3,
    'epoch-shared',
  ],
  [
    'a number left out',
    (event) => (event.seq >= 10 ? { ...event, seq: event.seq + 1 } : event),
    10,
    'seq-gap',
  ],
  ['an event of another task', at(10, (event) => ({ ...event, task: 'other' })), 10, 'other-task'],
  [
    'an event that names another turn start',
    at(10, (event) => ({ ...event, turnStart: 'a'.repeat(40) })),
    10,
    'turn-start-wrong',
  ],
  [
    'a turn that hides the one before it',
    (event) => (event.type === 'turn.started' && event.seq > 10 ? { ...event, previousTurn: null } : event),
    51,
    'turn-start-wrong',
  ],
  [
    'a turn that carries over what was never asked',
    at(3, (event) =>
      event.type === 'turn.started'
        ? { ...event, carried: [{ kind: 'approval', id: 'x', commit: 'a'.repeat(40), answer: null }] }
        : event,
    ),
    3,
    'carried-wrong',
  ],
  [
    'an event after the end of its turn',
    (event) => (event.type === 'usage.recorded' && event.seq < 20 ? { ...event, turn: 'gone' } : event),
    7,
    'not-allowed',
  ],
];

for (const [what, change, seq, code] of tampered) {
  test(`${what} is found, and the first bad event is named`, async (t) => {
    const { storage, ledger } = await imported(t);
    await forgeLedger(storage, ledger, change);
    const { ok, findings } = await ledger.verify();
    t.false(ok);
    t.like(findings[0], { seq, code, task: 'long' });
  });
}

const next = (state: { readonly seq: number; readonly chain: string }, task: string): string => {
  const event: Event = {
    ...{ v: 1, seq: state.seq + 1, at: '2026-01-01T00:00:00.000Z', task, workspace: null, turn: null },
    ...{ turnStart: null, agent: 'x', lease: null, epoch: null, key: null },
    ...{ type: 'git.observed', what: 'x', ref: null, before: null, after: null, process: null },
  };
  return encodeEvent(event, state.chain).message;
};

const raw: readonly [string, (message: string) => string, string][] = [
  [
    'a line changed without its chain',
    (message) => message.replace('"what":"x"', '"what":"y"'),
    'chain-broken',
  ],
  [
    'a chain changed without its line',
    (message) => message.replace(/sha256:.{8}/, 'sha256:00000000'),
    'chain-broken',
  ],
  [
    'a subject that says something else',
    (message) => message.replace('observed: x', 'observed: nothing'),
    'chain-broken',
  ],
  ['a trailer added', (message) => `${message}Signed-off-by: x\n`, 'chain-broken'],
  ['a message that is no event', () => 'Merge branch main\n', 'event-invalid'],
  [
    'a newer version',
    (message) => message.replace('"v":1}', '"v":7}').replace('"v":1,', '"v":7,'),
    'version-unsupported',
  ],
];

for (const [what, change, code] of raw) {
  test(`${what} is found at its event`, async (t) => {
    const { storage, ledger } = await newTask(t);
    await ledger.append(() => [observed('a'), observed('b')], anyone);
    const head = await ledger.head();
    t.not(head, null);
    const message = next(head ?? { seq: 0, chain: '' }, ledger.task);
    await forgeCommit(storage, ledger, { message: change(message) });
    const { events, findings } = await ledger.verify();
    t.is(events, 3);
    t.like(findings, { 0: { seq: 4, code }, length: 1 });
  });
}

test('a second parent, no parent, and a tree with files are found', async (t) => {
  const { scratch, storage, ledger } = await newTask(t);
  await ledger.append(() => [observed('a')], anyone);
  const first = storage.refs.read(ledger.ref) ?? '';
  const head = await ledger.head();
  const message = next(head ?? { seq: 0, chain: '' }, ledger.task);
  const findings = async (forged: { readonly parents?: string[]; readonly tree?: string }) => {
    const made = await forgeCommit(storage, ledger, { message, ...forged });
    const found = (await ledger.verify()).findings.map(({ seq, code }) => `${String(seq)} ${code}`);
    await storage.refs.update({ move: { ref: ledger.ref, from: made, to: first } });
    return found;
  };
  const user = scratch.git('rev-parse', 'HEAD');
  t.deepEqual(await findings({ parents: [first, user] }), ['3 not-linear']);
  t.deepEqual(await findings({ parents: [user] }), ['1 event-invalid']);
  t.deepEqual(await findings({ parents: [] }), ['1 seq-gap']);
  t.deepEqual(await findings({ tree: scratch.git('rev-parse', 'HEAD^{tree}') }), ['3 chain-broken']);
  t.deepEqual(await findings({}), []);
});

test('contents that are gone or are not what was kept are found at the event that names them', async (t) => {
  const { scratch, storage, ledger, append } = await openTurn(t);
  const [good, gone] = await ledger.contents.keep([Buffer.from('good'), Buffer.from('gone')]);
  if (good === undefined || gone === undefined) throw new Error('nothing was kept');
  await append({ ...steering('a'), content: good } as never, { ...steering('b'), content: gone } as never);
  await append({ ...steering('c'), content: { ...good, digest: '0'.repeat(64) } } as never, finish());
  const objects = join(scratch.dir, '.git/objects', gone.oid.slice(0, 2), gone.oid.slice(2));
  rmSync(objects);
  rmSync(join(scratch.dir, '.git/durable/journal', gone.oid));
  const cold = Ledger.open(await openRepository(t, scratch), ledger.task);
  const found = (await cold.verify()).findings.map(({ seq, code }) => `${String(seq)} ${code}`);
  t.deepEqual(found, ['3 contents-missing', '5 contents-missing', '6 contents-damaged']);
  t.is(storage.refs.read(ledger.contents.ref) === null, false);
});

test('a ledger that travelled without its contents verifies', async (t) => {
  const { storage, ledger, append } = await openTurn(t);
  await append(steering('x'), finish());
  t.is(storage.refs.read(ledger.contents.ref), null);
  t.like(await ledger.verify(), { ok: true });
});
