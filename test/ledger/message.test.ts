import test from 'ava';
import fc from 'fast-check';
import { canonicalJson, chainStart } from '../../lib/canonical.js';
import { DurableError, isDurableError } from '../../lib/errors.js';
import { FORMAT_VERSION, type Event } from '../../lib/event.js';
import { decodeEvent, disagreement, encodeEvent } from '../../lib/ledger/message.js';
import { cut, subjectOf } from '../../lib/ledger/subject.js';
import { anyEvent, EVENT_TYPES, eventOf, seed } from '../helpers/arbitrary-event.js';

const COMMIT = 'c'.repeat(40);
const START = chainStart('task');
const sampled = (type: (typeof EVENT_TYPES)[number]): Event =>
  fc.sample(eventOf(type), { seed: seed(), numRuns: 1 })[0] as Event;
const code = (expected: string) => ({ instanceOf: DurableError, code: expected });

for (const type of EVENT_TYPES) {
  test(`${type} comes back from its commit message exactly as it went in`, (t) => {
    fc.assert(
      fc.property(eventOf(type), (event) => {
        const { message, chain } = encodeEvent(event, START);
        const back = decodeEvent(message, COMMIT);
        t.deepEqual(back.event, event);
        t.is(back.chain, chain);
        t.is(disagreement(message, back.event, START), null);
      }),
      { seed: seed(), numRuns: 40 },
    );
  });
}

test('a message survives the way through UTF-8 bytes', (t) => {
  fc.assert(
    fc.property(anyEvent(), (event) => {
      const { message } = encodeEvent(event, START);
      t.is(Buffer.from(message, 'utf8').toString('utf8'), message);
    }),
    { seed: seed() },
  );
});

test('a subject is one printable line of at most 100 characters that begins with the type', (t) => {
  fc.assert(
    fc.property(anyEvent(), (event) => {
      const subject = subjectOf(event);
      t.true(subject.startsWith(event.type));
      t.true(subject.length <= 100);
      t.notRegex(subject, /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u);
      t.true(subject.isWellFormed());
    }),
    { seed: seed(), numRuns: 500 },
  );
});

test('text is cut by an ellipsis and never within a character', (t) => {
  t.is(cut('short', 10), 'short');
  t.is(cut('exactly 10', 10), 'exactly 10');
  t.is(cut('eleven chars', 11), 'eleven cha…');
  t.is(cut('ab😀😀', 4), 'ab…');
});

test('the version is read before anything else: an event of a newer program is named as such', (t) => {
  const line = canonicalJson({ v: FORMAT_VERSION + 1, type: 'turn.dreamt', other: true });
  const message = `turn.dreamt\n\n${line}\n\nDurable-Seq: 1\nDurable-Chain: sha256:${'0'.repeat(64)}\n`;
  const error = t.throws(() => decodeEvent(message, COMMIT), code('version-unsupported'));
  t.true(error.message.includes(`version ${String(FORMAT_VERSION + 1)}`));
});

const damaged: readonly [string, (message: string) => string][] = [
  ['no event line', () => 'Merge branch main\n'],
  ['an empty message', () => ''],
  ['a line that is not JSON', (message) => message.replace('"type"', 'type"')],
  ['a line that is no object', () => `x\n\n[1]\n\nDurable-Seq: 1\nDurable-Chain: sha256:${'0'.repeat(64)}\n`],
  ['an unknown type', (message) => message.replace('"git.observed"', '"git.dreamt"')],
  ['a type from the prototype', (message) => message.replace('"git.observed"', '"constructor"')],
  ['a member that is missing', (message) => message.replace(/"what":"[^"]*",/, '')],
  ['a member too many', (message) => message.replace('"v":1', '"v":1,"x":2')],
  ['a version that is no number', (message) => message.replace('"v":1', '"v":"1"')],
  ['a version of nought', (message) => message.replace('"v":1', '"v":0')],
  ['no chain', (message) => message.replace(/\nDurable-Chain.*/, '')],
  ['a chain that is no SHA-256', (message) => message.replace(/sha256:..../, 'sha256:ZZZZ')],
];

for (const [what, damage] of damaged) {
  test(`${what} is refused as no event of ours`, (t) => {
    const event = { ...sampled('git.observed'), what: 'seen' } as Event;
    const { message } = encodeEvent(event, START);
    t.throws(() => decodeEvent(damage(message), COMMIT), code('event-invalid'));
  });
}

test('whatever bytes a message has, decoding gives an event or an error of ours', (t) => {
  const edits = fc.array(fc.tuple(fc.nat(), fc.string({ unit: 'binary', maxLength: 3 }), fc.nat(40)), {
    minLength: 1,
    maxLength: 4,
  });
  fc.assert(
    fc.property(anyEvent(), edits, (event, changes) => {
      let { message } = encodeEvent(event, START);
      for (const [at, text, drop] of changes) {
        const place = at % (message.length + 1);
        message = message.slice(0, place) + text + message.slice(place + drop);
      }
      try {
        decodeEvent(message, COMMIT);
      } catch (error) {
        t.true(isDurableError(error), String(error));
      }
    }),
    { seed: seed(), numRuns: 2000 },
  );
  t.pass();
});

const disagreeing: readonly [string, (message: string) => string, RegExp][] = [
  ['another subject', (message) => `x${message}`, /subject/],
  [
    'another number in its trailer',
    (message) => message.replace('Durable-Seq: ', 'Durable-Seq: 9'),
    /Durable-Seq/,
  ],
  ['white space in its line', (message) => message.replace('"v":1', '"v": 1'), /canonical/],
  ['another chain', (message) => message.replace(/sha256:./, 'sha256:_'), /chain/],
  ['a line after its trailers', (message) => `${message}Signed-off-by: x\n`, /added/],
];

for (const [what, change, expected] of disagreeing) {
  test(`a message with ${what} does not follow from its event`, (t) => {
    const event = sampled('git.observed');
    const { message } = encodeEvent(event, START);
    t.regex(disagreement(change(message), event, START) ?? '', expected);
  });
}
