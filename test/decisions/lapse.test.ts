import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { hasCode, openRepository, systemHost, type Repository, type Turn } from '../../lib/index.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Stage {
  readonly place: Scratch;
  readonly repository: Repository;
  readonly turn: Turn;
  /** Steps the wall clock of `repository` by that many seconds. */
  readonly step: (seconds: number) => void;
}

const CALL = { tool: 'shell', args: 'x', mutates: false } as const;

async function stage(t: ExecutionContext): Promise<Stage> {
  const place = scratch(t);
  let ahead = 0;
  const now = (): Date => new Date(Date.now() + ahead);
  const repository = await openRepository(place.dir, { ...systemHost(), env: place.env, now });
  const turn = await repository.startTurn({ objective: 'ask', keeper: false });
  t.teardown(() => repository.close());
  const step = (seconds: number): void => {
    ahead += seconds * 1000;
  };
  return { place, repository, turn, step };
}

const inAMinute = (): Date => new Date(Date.now() + 60_000);
const approve = (repository: Repository, id: string) =>
  repository.resolveApproval(id, { decision: 'approved', by: 'someone' });

async function ends(repository: Repository, task: string): Promise<string[]> {
  const decisions: string[] = [];
  for await (const { event } of repository.events(task))
    if (event.type === 'approval.resolved') decisions.push(event.decision);
  return decisions;
}

async function started(repository: Repository, task: string): Promise<number> {
  let count = 0;
  for await (const { event } of repository.events(task)) if (event.type === 'invocation.started') count += 1;
  return count;
}

const stateOf = async (repository: Repository, id: string): Promise<string | undefined> =>
  (await repository.approvals()).find(({ approval }) => approval.id === id)?.approval.state;

test('after its time a request cannot be answered, and no clock revives it', async (t) => {
  const { repository, turn, step } = await stage(t);
  const { approval } = await turn.requestApproval({ ...CALL, expiresAt: inAMinute() });
  step(61);
  const refused = { code: 'approval-settled', fields: { state: 'expired', by: 'the clock' } };
  t.like(await t.throwsAsync(approve(repository, approval)), refused);
  step(-120);
  t.like(await t.throwsAsync(approve(repository, approval)), refused);
  t.is(await stateOf(repository, approval), 'expired');
  t.deepEqual(await ends(repository, turn.task), ['expired']);
  const again = await turn.requestApproval(CALL);
  t.not(again.approval, approval);
  t.is((await repository.verify(turn.task)).findings.length, 0);
});

test('whoever only looks is told that a request has expired, and records nothing', async (t) => {
  const { repository, turn, step } = await stage(t);
  const { approval } = await turn.requestApproval({ ...CALL, expiresAt: inAMinute() });
  t.is((await repository.status()).approvals, 1);
  step(61);
  const [listed] = await repository.approvals();
  t.deepEqual(
    [listed?.approval.id, listed?.approval.state, listed?.lapsed],
    [approval, 'pending', 'expired'],
  );
  t.is((await repository.status()).approvals, 0);
  t.deepEqual(await ends(repository, turn.task), []);
});

test('an approval that was not used in time lets nothing run', async (t) => {
  const { repository, turn, step } = await stage(t);
  const { approval } = await turn.requestApproval({ ...CALL, expiresAt: inAMinute() });
  await approve(repository, approval);
  step(61);
  const gated = await turn.gate(CALL);
  t.is(gated.state, 'pending');
  t.not(gated.approval, approval);
  t.deepEqual(await ends(repository, turn.task), ['approved', 'expired']);
  t.is(await started(repository, turn.task), 0);
});

test('who waits is told when the time is over', async (t) => {
  const { repository, turn } = await stage(t);
  const expiresAt = new Date(Date.now() + 300);
  const gated = await turn.gate({ ...CALL, expiresAt, waitMs: 600_000 });
  t.is(gated.state, 'expired');
  t.deepEqual(await ends(repository, turn.task), ['expired']);
});

test('a rejection is returned however late', async (t) => {
  const { repository, turn, step } = await stage(t);
  const asked = await turn.requestApproval({ ...CALL, expiresAt: inAMinute(), invalidOnChange: true });
  await repository.resolveApproval(asked.approval, { decision: 'rejected', by: 'someone', feedback: 'no' });
  step(61);
  t.like(await turn.gate(CALL), { state: 'rejected', approval: asked.approval, feedback: 'no' });
});

/** Far from now: a test may wait long for its turn. */
const SOON = { expiresAt: new Date(Date.now() + 3_600_000) };
const LATER = { expiresAt: new Date(Date.now() + 7_200_000) };

for (const [what, first, second] of [
  ['no end', SOON, {}],
  ['a later time', SOON, LATER],
  ['the same', { ...LATER, invalidOnChange: true }, { ...LATER, invalidOnChange: true }],
  ['only one of its two ends', { ...SOON, invalidOnChange: true }, LATER],
] as const) {
  test(`a request that ends no later is taken up with its own end, which is said: asked for again with ${what}`, async (t) => {
    const { repository, turn } = await stage(t);
    const made = await turn.requestApproval({ ...CALL, ...first });
    t.deepEqual(await turn.requestApproval({ ...CALL, ...second }), made);
    t.is(made.expiresAt, first.expiresAt.toISOString());
    t.is((await repository.approvals()).length, 1);
  });
}

for (const [what, first, second] of [
  ['an earlier time', LATER, SOON],
  ['a time', {}, LATER],
  ['a change of the tree', {}, { invalidOnChange: true }],
  ['a change of the tree instead of a time', SOON, { invalidOnChange: true }],
] as const) {
  test(`a request that would outlive what is asked for is another one, and each is answered for itself: ${what}`, async (t) => {
    const { repository, turn } = await stage(t);
    const made = await turn.requestApproval({ ...CALL, ...first });
    const stricter = await turn.requestApproval({ ...CALL, ...second });
    t.not(stricter.approval, made.approval);
    t.is(stricter.fingerprint, made.fingerprint);
    await approve(repository, made.approval);
    t.is((await turn.awaitAnswer(stricter, 0)).state, 'pending');
    t.is((await turn.awaitAnswer(made, 0)).state, 'approved');
  });
}

test('who asks with a stricter end waits until that, and the other request goes on', async (t) => {
  const { repository, turn, step } = await stage(t);
  const made = await turn.requestApproval(CALL);
  const stricter = await turn.requestApproval({ ...CALL, ...SOON });
  step(3601);
  t.is((await turn.awaitAnswer(stricter, 0)).state, 'expired');
  t.is((await turn.awaitAnswer(made, 0)).state, 'pending');
  await approve(repository, made.approval);
  const gated = await turn.gate({ ...CALL, ...LATER });
  t.deepEqual([gated.state, gated.approval], ['approved', made.approval]);
});

for (const [what, expiresAt] of [
  ['no time', new Date(Number.NaN)],
  ['a time that no record can hold', new Date(8.64e15)],
] as const) {
  test(`an end that is ${what} is refused before anything is recorded`, async (t) => {
    const { repository, turn } = await stage(t);
    const error = await t.throwsAsync(turn.requestApproval({ ...CALL, expiresAt }));
    t.true(hasCode(error, 'usage'));
    t.deepEqual(await repository.approvals(), []);
  });
}

const CHANGES: readonly (readonly [what: string, change: (place: Scratch) => void])[] = [
  [
    'a file is changed',
    ({ dir }) => {
      writeFileSync(join(dir, 'kept'), 'other\n');
    },
  ],
  [
    'a file is new',
    ({ dir }) => {
      writeFileSync(join(dir, 'new'), '');
    },
  ],
  [
    'a file is gone',
    ({ dir }) => {
      rmSync(join(dir, 'kept'));
    },
  ],
];

for (const [what, change] of CHANGES) {
  test(`a request that ends with a change of the tree cannot be approved when ${what}`, async (t) => {
    const { place, repository, turn } = await stage(t);
    writeFileSync(join(place.dir, 'kept'), 'kept\n');
    const { approval } = await turn.requestApproval({ ...CALL, invalidOnChange: true });
    change(place);
    t.like((await repository.approvals())[0], { lapsed: 'invalidated', approval: { state: 'pending' } });
    const fields = { state: 'invalidated', by: 'a change of the work tree' };
    t.like(await t.throwsAsync(approve(repository, approval)), { code: 'approval-settled', fields });
    writeFileSync(join(place.dir, 'kept'), 'kept\n');
    rmSync(join(place.dir, 'new'), { force: true });
    t.is(await stateOf(repository, approval), 'invalidated');
    t.not((await turn.requestApproval({ ...CALL, invalidOnChange: true })).approval, approval);
  });
}

test('an approval that ends with a change of the tree is used in the tree that was asked for, and only there', async (t) => {
  const { place, repository, turn } = await stage(t);
  const kept = join(place.dir, 'kept');
  writeFileSync(kept, 'kept\n');
  writeFileSync(join(place.dir, '.gitignore'), 'ignored\n');
  for (const [text, state] of [
    ['kept\n', 'approved'],
    ['other\n', 'pending'],
  ] as const) {
    writeFileSync(kept, 'kept\n');
    const { approval } = await turn.requestApproval({ ...CALL, invalidOnChange: true });
    await approve(repository, approval);
    writeFileSync(kept, text);
    writeFileSync(join(place.dir, 'ignored'), text);
    const gated = await turn.gate(CALL);
    t.is(gated.state, state);
    if (gated.state === 'approved') await gated.call.end({ state: 'finished' });
  }
  t.deepEqual(await ends(repository, turn.task), ['approved', 'approved', 'invalidated']);
  t.is(await started(repository, turn.task), 1);
});

test('of answers and clocks that come at once one is recorded, and all others are told which', async (t) => {
  const { place, repository, turn } = await stage(t);
  const expiresAt = inAMinute();
  const { approval } = await turn.requestApproval({ ...CALL, expiresAt });
  const clients = await Promise.all(
    Array.from({ length: 12 }, (_, n) => {
      const now = (): Date => new Date(Date.now() + (n % 2) * 120_000);
      return openRepository(place.dir, { ...systemHost(), env: place.env, now });
    }),
  );
  const answers = await Promise.allSettled(clients.map((client) => approve(client, approval)));
  const [end, ...more] = await ends(repository, turn.task);
  t.deepEqual(more, []);
  t.is(answers.filter(({ status }) => status === 'fulfilled').length, end === 'approved' ? 1 : 0);
  for (const answer of answers)
    if (answer.status === 'rejected')
      t.like(answer.reason, { code: 'approval-settled', fields: { state: end } });
  await Promise.all(clients.map((client) => client.close()));
});

test('who answers from another work tree does not hold the request to the tree there', async (t) => {
  const { place, repository, turn } = await stage(t);
  writeFileSync(join(place.dir, 'kept'), 'kept\n');
  const beside = join(place.top, 'beside');
  place.git('worktree', 'add', '-q', beside);
  const { approval } = await turn.requestApproval({ ...CALL, invalidOnChange: true });
  const other = await openRepository(beside, { ...systemHost(), env: place.env });
  t.is((await other.approvals())[0]?.lapsed, null);
  await approve(other, approval);
  await other.close();
  t.is(await stateOf(repository, approval), 'approved');
});
