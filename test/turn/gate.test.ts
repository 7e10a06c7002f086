import test from 'ava';
import { openRepository, systemHost, type Repository } from '../../lib/index.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const open = (place: Scratch): Promise<Repository> =>
  openRepository(place.dir, { ...systemHost(), env: place.env });
const ODD = '{"command":"rm -rf \\"a b\\"\\n","note":"ärger ✓ \u0001"}';

test('a request keeps its arguments byte for byte and waits', async (t) => {
  const repository = await open(scratch(t));
  const turn = await repository.startTurn({ objective: 'ask', keeper: false });
  const asked = await turn.requestApproval({ tool: 'shell', args: ODD });
  const [listed] = await repository.approvals();
  t.is(listed?.approval.id, asked.approval);
  t.is(listed?.approval.state, 'pending');
  const kept = listed?.approval.requested.event.args.oid ?? '';
  t.is((await repository.storage.objects.read(kept))?.body.toString('utf8'), ODD);
  await turn.finish({ outcome: 'completed' });
  await repository.close();
});

const CYCLE: Record<string, unknown> = {};
CYCLE['self'] = { again: CYCLE };
const hostile = {
  toJSON: (): never => {
    throw new Error('not today');
  },
};
let deep: unknown = 1;
for (let depth = 0; depth < 100_000; depth += 1) deep = [deep];

/** What nobody could decide on; some only from programs without types. */
const VAGUE: readonly (readonly [string, Readonly<Record<string, unknown>>, RegExp])[] = [
  ['a BigInt', { args: 1n }, /bigint/],
  ['a BigInt inside', { args: { a: [1, 2n] } }, /'\.a\[1\]'/],
  ['undefined', { args: undefined }, /'args'/],
  ['undefined in a list', { args: [undefined] }, /'\[0\]'/],
  ['a function', { args: () => 1 }, /function/],
  ['a function inside', { args: { run: () => 1 } }, /'\.run'/],
  ['a symbol', { args: Symbol('x') }, /symbol/],
  ['a number that is none', { args: { n: Number.NaN } }, /NaN at '\.n'/],
  ['what is inside itself', { args: CYCLE }, /inside itself/],
  ['a Map', { args: new Map([['a', 1]]) }, /Map/],
  ['what throws', { args: hostile }, /not today/],
  ['what is nested beyond the stack', { args: deep }, /cannot be read/],
  ['no tool', { tool: '' }, /'tool'/],
  ['a tool that is no text', { tool: 7 }, /'tool'/],
  ['a command of no word', { command: [] }, /command/],
  ['a command of an empty word', { command: [''] }, /command/],
  ['a command that is a text', { command: 'rm -rf x' }, /command/],
];

test('a question that leaves open what is decided is refused as usage with what is wrong, and nothing is recorded of it', async (t) => {
  const repository = await open(scratch(t));
  const turn = await repository.startTurn({ objective: 'ask', keeper: false });
  const { head } = await repository.state(turn.task);
  for (const [what, wrong, message] of VAGUE) {
    const ask = { tool: 'shell', args: 'x', ...wrong };
    await t.throwsAsync(turn.requestApproval(ask), { code: 'usage', message }, what);
    await t.throwsAsync(turn.gate(ask), { code: 'usage', message }, what);
  }
  t.deepEqual(await repository.approvals(), []);
  t.is((await repository.state(turn.task)).head?.commit, head?.commit);
  await turn.finish({ outcome: 'completed' });
  await repository.close();
});

test('a call with arguments that JSON cannot say is refused as usage before it runs; members without a value are left out', async (t) => {
  const repository = await open(scratch(t));
  const turn = await repository.startTurn({ objective: 'call', keeper: false });
  for (const args of [1n, [undefined], CYCLE, new Set([1])]) {
    const call = { tool: 'edit', args, paths: [] };
    await t.throwsAsync(
      turn.invoke(call, () => t.fail('it ran')),
      { code: 'usage' },
    );
  }
  const said = { tool: 'shell', args: { at: new Date(0), bytes: Buffer.from('a'), none: undefined } };
  const [asked, again] = [await turn.requestApproval(said), await turn.requestApproval(said)];
  t.is(asked.approval, again.approval);
  const text = JSON.stringify(said.args);
  t.is((await turn.requestApproval({ tool: 'shell', args: text })).approval, asked.approval);
  await turn.finish({ outcome: 'completed' });
  await repository.close();
});

test('of many answers at once exactly one counts, and the others learn whose', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const turn = await repository.startTurn({ objective: 'ask', keeper: false });
  const { approval } = await turn.requestApproval({ tool: 'shell', args: 'x' });
  const clients = await Promise.all(Array.from({ length: 6 }, () => open(place)));
  const answers = await Promise.allSettled(
    clients.map((client, n) =>
      client.resolveApproval(approval, {
        decision: n % 2 === 0 ? 'approved' : 'rejected',
        by: `client-${String(n)}`,
      }),
    ),
  );
  const won = answers.filter((answer) => answer.status === 'fulfilled');
  t.is(won.length, 1);
  const winner = won[0]?.value.event.by;
  for (const answer of answers) {
    if (answer.status === 'rejected')
      t.like(answer.reason, { code: 'approval-settled', fields: { by: winner } });
  }
  await turn.finish({ outcome: 'completed' });
  await Promise.all([repository, ...clients].map((one) => one.close()));
});

test('an answer is consumed in the same ref move as the start it allows, once', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const turn = await repository.startTurn({ objective: 'ask', keeper: false });
  const asked = await turn.requestApproval({ tool: 'shell', args: 'x' });
  await repository.resolveApproval(asked.approval, { decision: 'approved', by: 'someone' });
  const gated = await turn.gate({ tool: 'shell', args: 'x', mutates: false });
  t.is(gated.state, 'approved');
  if (gated.state === 'approved') await gated.call.end({ state: 'finished' });
  const again = await turn.gate({ tool: 'shell', args: 'x', mutates: false });
  t.is(again.state, 'pending');
  await turn.finish({ outcome: 'completed' });
  await repository.close();
});

test('a rejection comes back verbatim, once', async (t) => {
  const repository = await open(scratch(t));
  const feedback = 'No.\nUse `git mv` instead — ✗\n';
  const turn = await repository.startTurn({ objective: 'ask', keeper: false });
  const asked = await turn.requestApproval({ tool: 'shell', args: 'x' });
  await repository.resolveApproval(asked.approval.slice(0, 8), {
    decision: 'rejected',
    by: 'someone',
    feedback,
  });
  const gated = await turn.gate({ tool: 'shell', args: 'x', mutates: false });
  t.like(gated, { state: 'rejected', feedback });
  t.is((await turn.gate({ tool: 'shell', args: 'x', mutates: false })).state, 'pending');
  await turn.finish({ outcome: 'completed' });
  await repository.close();
});

test('an answer given in a later life of the task is honoured for the same action', async (t) => {
  const repository = await open(scratch(t));
  const first = await repository.startTurn({ objective: 'ask', keeper: false });
  const asked = await first.requestApproval({ tool: 'shell', args: 'x' });
  await first.finish({ outcome: 'completed' });
  await repository.resolveApproval(asked.approval, { decision: 'approved', by: 'someone' });
  const second = await repository.startTurn({ objective: 'go on', keeper: false, task: first.task });
  t.is((await second.gate({ tool: 'shell', args: 'y', mutates: false })).state, 'pending');
  t.is((await second.gate({ tool: 'shell', args: 'x', mutates: false })).state, 'approved');
  await second.finish({ outcome: 'completed' });
  await repository.close();
});

test('a waiting caller wakes by the answer of another process', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const turn = await repository.startTurn({ objective: 'ask', keeper: false });
  const waiting = turn.gate({ tool: 'shell', args: 'x', mutates: false, waitMs: 30_000 });
  const other = await open(place);
  const end = performance.now() + 20_000;
  for (;;) {
    const [pending] = await other.approvals();
    // The asking one has flushes under way, which end between two turns of the event loop.
    await new Promise(setImmediate);
    if (pending === undefined && performance.now() < end) continue;
    await other.resolveApproval(pending?.approval.id ?? 'none', { decision: 'approved', by: 'someone' });
    break;
  }
  t.is((await waiting).state, 'approved');
  await turn.finish({ outcome: 'completed' });
  await Promise.all([repository.close(), other.close()]);
});
