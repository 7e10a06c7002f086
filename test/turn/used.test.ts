import test from 'ava';
import { openRepository, systemHost } from '../../lib/index.js';
import type { Used } from '../../lib/turn/used.js';
import { document, events } from '../helpers/events.js';
import { durable } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';
import { endedProcess } from '../helpers/turn-place.js';

const NOTHING: Used = {
  invocation: null,
  model: null,
  inputTokens: null,
  outputTokens: null,
  cacheTokens: null,
  costUsd: null,
  wallMs: null,
};
const MOST = Number.MAX_SAFE_INTEGER;

/** Not numbers that can be summed, or not what JSON can say again; some only from programs without types. */
const REFUSED: readonly Readonly<Record<string, unknown>>[] = [
  { costUsd: -0.01 },
  { costUsd: Number.NaN },
  { costUsd: Infinity },
  { costUsd: 1e300 },
  { wallMs: -1 },
  { wallMs: Infinity },
  { inputTokens: -1 },
  { inputTokens: 1.5 },
  { outputTokens: MOST + 1 },
  { cacheTokens: '5' },
  { cacheTokens: undefined },
  { model: 'a\ud800b' },
  { model: 'm'.repeat(201) },
  { invocation: undefined },
  { invocation: '' },
];

test('usage that cannot be summed is refused with its name, before anything is recorded; the largest that can comes back as it was', async (t) => {
  const place = scratch(t);
  const repository = await openRepository(place.dir, { ...systemHost(), env: place.env });
  const turn = await repository.startTurn({ objective: 'meter', task: 'metered', keeper: false });
  for (const wrong of REFUSED) {
    const [name = ''] = Object.keys(wrong);
    const error = await t.throwsAsync(turn.usage({ ...NOTHING, ...wrong }), { code: 'usage' }, name);
    t.true(error.message.includes(`'${name}'`), error.message);
  }
  t.deepEqual(events(place, '--type', 'usage.recorded'), []);
  const largest = { inputTokens: MOST, outputTokens: 0, costUsd: 9_007_199.254740991, wallMs: 0.5 };
  await turn.usage({ ...NOTHING, ...largest });
  await repository.close();
  t.like(document(place, ['log', '--usage']), largest);
});

test('usage of a call that the turn has not made is refused with its id, and so is a process of one', async (t) => {
  const place = scratch(t);
  const repository = await openRepository(place.dir, { ...systemHost(), env: place.env });
  const first = await repository.startTurn({ objective: 'one', task: 'metered', keeper: false });
  const other = await first.begin({ tool: 'think', args: {}, mutates: false });
  await other.end({ state: 'finished' });
  await first.finish({ outcome: 'completed' });
  const turn = await repository.startTurn({ objective: 'two', task: 'metered', keeper: false });
  for (const invocation of ['nothing', other.invocation]) {
    const wanted = { code: 'not-found', message: new RegExp(`'${invocation}'`) } as const;
    await t.throwsAsync(turn.usage({ ...NOTHING, invocation }), wanted);
    const child = { pid: process.pid, start: '1', command: 'sh' };
    await t.throwsAsync(turn.spawned(child, { invocation }), wanted);
    const write = { kind: 'write', path: 'new', expected: null, bytes: Buffer.from('x') } as const;
    await t.throwsAsync(turn.transaction([write], { invocation }), wanted);
  }
  const recorded = ['usage.recorded', 'process.started', 'transaction.prepared'];
  for (const type of recorded) t.deepEqual(events(place, '--type', type), []);
  const own = await turn.begin({ tool: 'think', args: {}, mutates: false });
  await turn.usage({ ...NOTHING, invocation: own.invocation });
  t.is(events(place, '--type', 'usage.recorded').length, 1);
  await repository.close();
});

test('under one key the same usage is one event, and another one is refused with what is on record', async (t) => {
  const place = scratch(t);
  const repository = await openRepository(place.dir, { ...systemHost(), env: place.env });
  const turn = await repository.startTurn({ objective: 'meter', task: 'metered', keeper: false });
  const { invocation } = await turn.begin({ tool: 'think', args: {}, mutates: false });
  const used: Used = { ...NOTHING, invocation, model: 'a', inputTokens: 5, wallMs: 7 };
  await turn.usage(used, 'answer 1');
  await turn.usage(used, 'answer 1');
  const others: Partial<Used>[] = [{ inputTokens: 6 }, { model: null }, { wallMs: 8 }, { invocation: null }];
  for (const other of others) {
    const [name = ''] = Object.keys(other);
    const { message } = await t.throwsAsync(turn.usage({ ...used, ...other }, 'answer 1'), { code: 'usage' });
    t.regex(message, new RegExp(`'answer 1' .*'${name}'`));
  }
  await turn.usage({ ...used, inputTokens: 6 }, 'answer 2');
  t.deepEqual(
    events(place, '--type', 'usage.recorded').map((event) => event['inputTokens']),
    [5, 6],
  );
  await repository.close();
});

test('what a turn used stands, once, after its agent died in a call and after a rewind, and every table sums it alike', async (t) => {
  const place = scratch(t);
  const repository = await openRepository(place.dir, { ...systemHost(), env: place.env });
  const costs = [0.1, 0.2, 0.000000001, null, 1234.5];
  const holder = endedProcess();
  const turn = await repository.startTurn({ objective: 'meter', task: 'metered', keeper: false, holder });
  const { invocation } = await turn.begin({ tool: 'hang', args: {}, mutates: false });
  for (const [at, costUsd] of costs.entries())
    await turn.usage({ ...NOTHING, invocation, model: at % 2 === 0 ? 'b' : 'a', inputTokens: at, costUsd });
  await repository.close();
  const used = { models: ['a', 'b'], inputTokens: 10, outputTokens: null, costUsd: 1234.800000001 };
  const alike = (): void => {
    for (const by of ['day', 'turn', 'call'])
      t.like(document(place, ['log', '--usage', '--by', by]), used, by);
  };
  alike();
  t.is(durable(place, ['recover', '--keep']).code, 0);
  alike();
  t.is(durable(place, ['rewind', turn.id]).code, 0);
  alike();
  t.is(document(place, ['verify'])['ok'], true);
});
