import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { openRepository, systemHost, type Conversation, type Repository } from '../../lib/index.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const open = (place: Scratch): Promise<Repository> =>
  openRepository(place.dir, { ...systemHost(), env: place.env });

/** A finished turn of the task `talk`: one call that writes a file, one line that a person typed. */
async function talk(place: Scratch, repository: Repository, word: string): Promise<string> {
  const turn = await repository.startTurn({ objective: word, task: 'talk', keeper: false });
  const bytes = Buffer.from(`${word}\n`);
  await turn.steer(`${word}, please`);
  await turn.invoke(
    { tool: 'write', args: word, summary: word, paths: [{ path: word, expected: bytes }] },
    () => {
      writeFileSync(join(place.dir, word), bytes);
    },
  );
  await turn.finish({ outcome: 'completed' });
  return turn.id;
}

const marked = ({ turns }: Conversation): string[] =>
  turns.map(({ objective, rewound }) => `${objective}${rewound ? ' rewound' : ''}`);

test('a rewound turn is marked with all that was in it, and its files stay', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  await talk(place, repository, 'one');
  const two = await talk(place, repository, 'two');
  const done = await repository.rewind({ target: two.slice(0, 12) });
  t.deepEqual(done.turns, [two]);
  const told = await repository.conversation('talk');
  t.deepEqual(marked(told), ['one', 'two rewound']);
  t.deepEqual(
    told.turns.map(({ items }) =>
      items.map(({ kind, text, state, rewound }) => [kind, text, state, rewound]),
    ),
    [
      [
        ['typed', 'one, please', 'received', false],
        ['call', 'one', 'finished', false],
      ],
      [
        ['typed', 'two, please', 'received', true],
        ['call', 'two', 'finished', true],
      ],
    ],
  );
  t.is(readFileSync(join(place.dir, 'two'), 'utf8'), 'two\n');
  await repository.close();
});

test('a rewind is undone by a rewind, and that one too, and verify stays green', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  await talk(place, repository, 'one');
  const two = await talk(place, repository, 'two');
  let { undo } = await repository.rewind({ target: two });
  for (const expected of [
    ['one', 'two'],
    ['one', 'two rewound'],
    ['one', 'two'],
  ]) {
    ({ undo } = await repository.rewind({ target: undo ?? '' }));
    t.deepEqual(marked(await repository.conversation('talk')), expected);
  }
  t.true((await repository.verify('talk')).ok);
  t.is(place.git('status', '--porcelain'), '?? one\n?? two');
  await repository.close();
});

test('what was said after a rewind is left by its undo, and both ways stay open', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  await talk(place, repository, 'one');
  const two = await talk(place, repository, 'two');
  const first = await repository.rewind({ target: two });
  await talk(place, repository, 'other');
  t.deepEqual(marked(await repository.conversation('talk')), ['one', 'two rewound', 'other']);
  const second = await repository.rewind({ target: first.undo ?? '' });
  t.deepEqual(marked(await repository.conversation('talk')), ['one', 'two', 'other rewound']);
  await repository.rewind({ target: second.undo ?? '' });
  t.deepEqual(marked(await repository.conversation('talk')), ['one', 'two rewound', 'other']);
  await repository.close();
});

test('a rewind to where the conversation stands records nothing', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const one = await talk(place, repository, 'one');
  await repository.rewind({ target: one });
  const head = place.git('rev-parse', 'refs/durable/tasks/talk');
  t.is((await repository.rewind({ target: one })).undo, null);
  t.is(place.git('rev-parse', 'refs/durable/tasks/talk'), head);
  await repository.close();
});

test('an event that is not there is no target', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  await talk(place, repository, 'one');
  for (const target of ['0', '9999', 'talk/9999', 'nowhere/1', 'no-such-turn'])
    await t.throwsAsync(repository.rewind({ target }), { code: 'not-found' }, target);
  await repository.close();
});

test('a rewind invalidates requests in its range that were not used; a used one stays used', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const turn = await repository.startTurn({ objective: 'ask', task: 'talk', keeper: false });
  const before = await turn.requestApproval({ tool: 'shell', args: 'before' });
  const [head] = await headOf(repository);
  const used = await turn.requestApproval({ tool: 'shell', args: 'used' });
  const answered = await turn.requestApproval({ tool: 'shell', args: 'answered' });
  const pending = await turn.requestApproval({ tool: 'shell', args: 'pending' });
  for (const { approval } of [used, answered])
    await repository.resolveApproval(approval, { decision: 'approved', by: 'someone' });
  const run = await turn.gate({ tool: 'shell', args: 'used', mutates: false });
  if (run.state === 'approved') await run.call.end({ state: 'finished' });
  const done = await repository.rewind({ target: `talk/${String(head)}` });
  t.deepEqual(done.invalidated, [answered.approval, pending.approval]);
  const states = new Map((await repository.approvals()).map(({ approval }) => [approval.id, approval.state]));
  t.deepEqual(
    [before, used, answered, pending].map(({ approval }) => states.get(approval)),
    ['pending', 'consumed', 'invalidated', 'invalidated'],
  );
  await t.throwsAsync(repository.resolveApproval(pending.approval, { decision: 'approved', by: 'late' }), {
    code: 'approval-settled',
    message: /invalidated, by a rewind/,
  });
  t.is((await turn.gate({ tool: 'shell', args: 'answered', mutates: false })).state, 'pending');
  await turn.finish({ outcome: 'completed' });
  await repository.close();
});

async function headOf(repository: Repository): Promise<number[]> {
  const numbers: number[] = [];
  for await (const { event } of repository.events('talk')) numbers.unshift(event.seq);
  return numbers;
}

test('a caller that waits for an answer is told of the rewind that took its request away', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const turn = await repository.startTurn({ objective: 'ask', task: 'talk', keeper: false });
  const asked = await turn.requestApproval({ tool: 'shell', args: 'x' });
  const waiting = turn.awaitAnswer(asked, 30_000);
  await repository.rewind({ target: turn.id });
  t.is((await waiting).state, 'invalidated');
  await turn.finish({ outcome: 'completed' });
  await repository.close();
});

test('a turn run again after a rewind does anew what was rewound, and answers the rest from the record', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const ran: string[] = [];
  const work = (stop: boolean) =>
    repository.turn({ key: 'work', objective: 'work', task: 'talk', keeper: false }, async (turn) => {
      for (const name of ['a', 'b', 'c']) {
        await turn.invoke({ tool: 'step', args: name, mutates: false }, () => {
          ran.push(name);
        });
      }
      if (stop) await turn.interrupt('killed');
    });
  await t.throwsAsync(work(true));
  const told = await repository.conversation('talk');
  const b = told.turns[0]?.items[1]?.seq ?? 0;
  await repository.rewind({ target: `talk/${String(b - 1)}` });
  await work(false);
  t.deepEqual(ran, ['a', 'b', 'c', 'b', 'c']);
  await repository.close();
});
