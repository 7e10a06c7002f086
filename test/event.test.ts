import { readFileSync } from 'node:fs';
import test from 'ava';
import fc from 'fast-check';
import { EVENT_TABLE, SCHEMAS } from '../lib/event.js';
import { fitted } from '../lib/ledger/fit.js';
import { validated } from '../lib/ledger/message.js';
import { EVENT_TYPES, eventOf, seed } from './helpers/arbitrary-event.js';
import { eventTable, marked, README } from './helpers/event-table.js';

test('the table over all event types has a row for each schema, and none without', (t) => {
  t.deepEqual(Object.keys(EVENT_TABLE), Object.keys(SCHEMAS));
});

test('the README shows the table that the schemas and the rules give', (t) => {
  t.is(
    marked(readFileSync(README, 'utf8'), 'events'),
    eventTable(),
    'run: node dist/test/helpers/event-table.js',
  );
});

test('a key made of fields names fields that the event has', (t) => {
  for (const type of EVENT_TYPES) {
    const known = new Set([...Object.keys(SCHEMAS[type].entries), 'pid', 'start', 'lost epoch', ...GIVEN]);
    for (const part of EVENT_TABLE[type].key.split(', ')) t.true(known.has(part), `${type}: ${part}`);
  }
});

/** What the caller gives as `key`, or what stands for none. */
const GIVEN = ['turn key', 'call id', 'message id', '-'];

for (const type of EVENT_TYPES) {
  test(`${type} with texts of any length fits its schema once it is cut`, (t) => {
    fc.assert(
      fc.property(eventOf(type), (event) => {
        const long = Object.fromEntries(
          Object.entries(event).map(([name, value]) => [
            name,
            isText(type, name) ? `${String(value)}${'x😀'.repeat(1500)}` : value,
          ]),
        );
        const cut = fitted(long as typeof event, (text) => text);
        t.notThrows(() => validated(type, cut, null));
      }),
      { seed: seed(), numRuns: 5 },
    );
  });
}

function isText(type: keyof typeof SCHEMAS, name: string): boolean {
  const entry: unknown = Object.entries(SCHEMAS[type].entries).find(([key]) => key === name)?.[1];
  const pipe = typeof entry === 'object' && entry !== null && 'pipe' in entry ? entry.pipe : [];
  return (
    Array.isArray(pipe) &&
    pipe.some((step: { readonly type: string; readonly requirement?: unknown }) => {
      return step.type === 'max_length' && (step.requirement === 200 || step.requirement === 2000);
    })
  );
}
