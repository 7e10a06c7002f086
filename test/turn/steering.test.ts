import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import test from 'ava';
import { openRepository, systemHost, type Repository } from '../../lib/index.js';
import { document, events, type Line } from '../helpers/events.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { endedProcess } from '../helpers/turn-place.js';

const open = (place: Scratch): Promise<Repository> =>
  openRepository(place.dir, { ...systemHost(), env: place.env });
const TYPED = 'no, the *other* file\n\u2014 and quickly \u{1f64f}\n';

async function typed(repository: Repository, task: string): Promise<[turn: string, text: string][]> {
  const { turns } = await repository.conversation(task);
  return turns.flatMap(({ objective, items }) =>
    items.filter(({ kind }) => kind === 'typed').map(({ text }): [string, string] => [objective, text]),
  );
}

test('text typed while a turn runs is an event of it, whole among the contents and in show, told in its place by the task', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const long = 'x'.repeat(100_000) + TYPED;
  for (const objective of ['first', 'second']) {
    const turn = await repository.startTurn({ objective, task: 'steered', keeper: false });
    await turn.invoke({ tool: 'think', args: 1, mutates: false }, () => undefined);
    await turn.steer(`${objective}: ${TYPED}`);
    await turn.steer(long);
    await turn.invoke({ tool: 'think', args: 2, mutates: false }, () => undefined);
    await turn.finish({ outcome: 'completed' });
    await t.throwsAsync(turn.steer('too late'), { code: 'lease-lost' });
  }
  const recorded: Line[] = [];
  const commits: string[] = [];
  for await (const { event, commit } of repository.events('steered')) {
    if (event.type !== 'steering.received') continue;
    recorded.push(event);
    commits.push(commit);
  }
  t.is(recorded.length, 4);
  const content = recorded[1]?.['content'] as { oid: string; digest: string };
  t.is(content.digest, createHash('sha256').update(long).digest('hex'));
  const blob = spawnSync('git', ['cat-file', 'blob', content.oid], {
    cwd: place.dir,
    env: place.env,
    maxBuffer: 1 << 20,
  });
  t.is(blob.stdout.toString('utf8'), long);
  t.is(document(place, ['show', String(commits[1])])['text'], long);
  const kinds = (await repository.conversation('steered')).turns.map(({ items }) =>
    items.map(({ kind }) => kind),
  );
  t.deepEqual(kinds, Array<string[]>(2).fill(['call', 'typed', 'typed', 'call']));
  const told = await typed(repository, 'steered');
  t.deepEqual(told[0], ['first', `first: ${TYPED}`]);
  t.true(told.every(([, text]) => text.length <= 2000));
  t.deepEqual(
    await typed(repository, (await repository.startTurn({ objective: 'other', keeper: false })).task),
    [],
  );
  await repository.close();
});

test('the same message reported twice is one event, and it stands when the agent is killed', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const dead = { keeper: false, holder: endedProcess() };
  const turn = await repository.startTurn({ objective: 'first', task: 'steered', ...dead });
  await turn.steer(TYPED, 'message 1');
  await turn.steer(TYPED, 'message 1');
  await turn.steer(TYPED, 'message 2');
  await repository.close();
  const again = await open(place);
  await again.recover({ action: 'keep' });
  t.deepEqual(await typed(again, 'steered'), [
    ['first', TYPED],
    ['first', TYPED],
  ]);
  await again.rewind({ target: turn.id });
  const { turns } = await again.conversation('steered');
  t.true(turns[0]?.items.every(({ rewound }) => rewound));
  t.is(document(place, ['verify'])['ok'], true);
  await again.close();
});

test('text that no bytes stand for is refused, and so is another text under one key: nothing of it is recorded', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const turn = await repository.startTurn({ objective: 'first', task: 'steered', keeper: false });
  const half = 'half a \ud83d character';
  await t.throwsAsync(turn.steer(half), { code: 'usage', message: /lone surrogate/ });
  const call = { tool: 'think', mutates: false } as const;
  await t.throwsAsync(
    turn.invoke({ ...call, args: half }, () => undefined),
    { code: 'usage' },
  );
  await t.throwsAsync(turn.deny({ ...call, args: 1 }, half), { code: 'usage' });
  await turn.steer(TYPED, 'message 1');
  const { message } = await t.throwsAsync(turn.steer('another', 'message 1'), { code: 'usage' });
  t.regex(message, /'message 1'/);
  t.deepEqual(await typed(repository, 'steered'), [['first', TYPED]]);
  t.deepEqual(events(place, '--type', 'invocation.proposed'), []);
  await repository.close();
});

test('a process of the turn records what was typed into it', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const turn = await repository.startTurn({ objective: 'first', task: 'steered', keeper: false });
  const env = { ...place.env, ...turn.environment() };
  const other = await openRepository(place.dir, { ...systemHost(), env });
  const joined = await other.attachTurn();
  t.is(joined.id, turn.id);
  await joined.steer(TYPED);
  t.deepEqual(await typed(repository, 'steered'), [['first', TYPED]]);
  await turn.finish({ outcome: 'completed' });
  await Promise.all([repository.close(), other.close()]);
});
