import test from 'ava';
import type { Event } from '../../lib/event.js';
import { openRepository } from '../../lib/repository.js';
import { UsageFolding } from '../../lib/ledger/usage.js';
import { durable } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';

const WHEN = { day: 'day', turnMs: 0 };
const NONE = { inputTokens: null, outputTokens: null, cacheTokens: null, costUsd: null, wallMs: null };

test('usage is folded by task, agent and day, in real ledgers; what nobody recorded is null, not zero', async (t) => {
  const place = scratch(t);
  const repository = await openRepository(place.dir);
  for (const agent of ['first', 'second', 'first']) {
    const turn = await repository.startTurn({ objective: 'use', task: 'metered', agent, keeper: false });
    const used = { invocation: null, model: `model of ${agent}`, ...NONE, inputTokens: 10, costUsd: 0.1 };
    await turn.usage(used, 'one');
    await turn.usage(used, 'one');
    await turn.usage({ ...used, model: null, inputTokens: 5, costUsd: 0.2 });
    await turn.finish({ outcome: 'completed' });
  }
  const idle = await repository.startTurn({ objective: 'idle', task: 'idle', agent: 'first', keeper: false });
  await idle.finish({ outcome: 'completed' });
  await repository.close();
  const ran = durable(place, ['log', '--usage', '--json']);
  t.is(ran.code, 0, ran.stderr);
  const rows = ran.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  t.deepEqual(
    rows.map((row) => ({ ...row, day: 'day', turnMs: 0 })),
    [
      { ...WHEN, task: 'idle', agent: 'first', turns: 1, models: [], ...NONE },
      {
        ...WHEN,
        task: 'metered',
        agent: 'first',
        turns: 2,
        models: ['model of first'],
        ...NONE,
        inputTokens: 30,
        costUsd: 0.6,
      },
      {
        ...WHEN,
        task: 'metered',
        agent: 'second',
        turns: 1,
        models: ['model of second'],
        ...NONE,
        inputTokens: 15,
        costUsd: 0.3,
      },
    ],
  );
  t.true(rows.every(({ turnMs }) => typeof turnMs === 'number' && turnMs > 0));
  const table = durable(place, ['log', '--usage', 'metered']).stdout.split('\n');
  t.regex(table[0] ?? '', /^day +task +agent +turns +time +in +out +cache +cost +models$/);
  t.regex(table[1] ?? '', /^\d{4}-\d\d-\d\d +metere +first +2 +\d+s +30 +- +- +\$0\.6000 +model of first$/);
  t.is(durable(place, ['log', '--usage', '--type', 'turn.started']).code, 2);
});

test('usage is told by turn and by call: tokens, cost, models, and the time each took', async (t) => {
  const place = scratch(t);
  const repository = await openRepository(place.dir);
  const invocations: string[] = [];
  const used = { model: 'large', ...NONE, inputTokens: 10, costUsd: 0.1, wallMs: 7 };
  for (const objective of ['first', 'second']) {
    const turn = await repository.startTurn({ objective, task: 'metered', agent: 'meter', keeper: false });
    for (const tool of ['think', 'write']) {
      await turn.invoke({ tool, args: {}, mutates: false }, async ({ invocation }) => {
        invocations.push(invocation);
        await turn.usage({ ...used, invocation });
        await turn.usage({ ...used, invocation, model: 'small', outputTokens: 3 });
      });
    }
    await turn.usage({ ...used, invocation: null, model: 'other' });
    await turn.finish({ outcome: 'completed' });
  }
  const cut = await repository.startTurn({
    objective: 'cut',
    task: 'metered',
    agent: 'meter',
    keeper: false,
  });
  const { invocation: open } = await cut.begin({ tool: 'hang', args: {}, mutates: false });
  await repository.close();
  const rows = (...words: string[]): Record<string, unknown>[] =>
    durable(place, ['log', '--usage', '--json', ...words])
      .stdout.trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const turns = rows('--by', 'turn');
  const models = ['large', 'other', 'small'];
  const whole = { calls: 2, models, ...NONE, inputTokens: 50, outputTokens: 6, costUsd: 0.5, wallMs: 35 };
  const cutShort = { calls: 1, models: [], ...NONE };
  for (const [at, wanted] of [whole, whole, cutShort].entries())
    t.like(turns[at], { task: 'metered', agent: 'meter', ...wanted });
  t.true(turns.every(({ turnMs }) => typeof turnMs === 'number' && turnMs >= 0));
  const calls = rows('--by', 'call', 'metered');
  t.deepEqual(
    calls.map(({ invocation }) => invocation),
    [...invocations, open],
  );
  const each = {
    models: ['large', 'small'],
    ...NONE,
    inputTokens: 20,
    outputTokens: 3,
    costUsd: 0.2,
    wallMs: 14,
  };
  for (const call of calls.slice(0, 4)) t.like(call, each);
  t.true(calls.slice(0, 4).every(({ durationMs }) => typeof durationMs === 'number'));
  t.like(calls[4], { tool: 'hang', durationMs: null, models: [], ...NONE });
  t.is(rows('--by', 'call', '--turn', String(turns[1]?.['turn'])).length, 2);
  t.is(durable(place, ['log', '--by', 'turn']).code, 2);
  t.regex(
    durable(place, ['log', '--usage', '--by', 'turn']).stdout,
    /^started +task +turn +agent +calls +time +in /,
  );
});

test('a record counts on the day it was made, a turn on the day it began, and a clock that goes back takes nothing away', (t) => {
  const common = { task: 'task', turn: 'turn', agent: 'agent' };
  const used = { type: 'usage.recorded', ...common, invocation: null, model: null, ...NONE, wallMs: 7 };
  const events = [
    { type: 'turn.started', ...common, at: '2026-03-01T23:59:59.000Z' },
    { ...used, at: '2026-03-02T00:00:01.500Z' },
    { ...used, at: '2026-03-01T23:00:00.000Z' },
    { type: 'turn.finished', ...common, at: '2026-03-02T00:00:01.000Z' },
  ];
  const folding = new UsageFolding();
  for (const event of events) folding.add(event as unknown as Event);
  t.deepEqual(
    folding.rows().map(({ day, turns, turnMs, wallMs }) => ({ day, turns, turnMs, wallMs })),
    [
      { day: '2026-03-01', turns: 1, turnMs: 2500, wallMs: 7 },
      { day: '2026-03-02', turns: 0, turnMs: 0, wallMs: 7 },
    ],
  );
});
