import { createHash } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import { canonicalJson, chainNext, chainStart, digest } from '../lib/canonical.js';
import { seed } from './helpers/arbitrary-event.js';

const VECTORS: readonly [string, unknown, string][] = [
  [
    'members are sorted by UTF-16 code units',
    { '\u20ac': 1, '\r': 2, '\ufb33': 3, 1: 4, '\ud83d\ude00': 5, '\u0080': 6, ö: 7 },
    '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}',
  ],
  [
    'numbers are printed as ECMAScript does',
    [333333333.33333329, 1e30, 4.5, 2e-3, 1e-27, -0],
    '[333333333.3333333,1e+30,4.5,0.002,1e-27,0]',
  ],
  [
    'strings are escaped as little as JSON allows',
    '\u20ac$\u000f\nA\'B"\\\\"/',
    '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"',
  ],
  [
    'no white space, nested',
    { b: [{}, [], null, true], a: { d: false, c: 'x' } },
    '{"a":{"c":"x","d":false},"b":[{},[],null,true]}',
  ],
  ['members that are undefined are left out', { a: undefined, b: 1 }, '{"b":1}'],
  ['half a character stays an escape', { path: 'a\udc80' }, '{"path":"a\\udc80"}'],
];

for (const [title, value, expected] of VECTORS) {
  test(`RFC 8785: ${title}`, (t) => {
    t.is(canonicalJson(value), expected);
  });
}

test('canonical JSON is one line, parses back, and does not depend on the order of members', (t) => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = canonicalJson(value);
      t.false(text.includes('\n'));
      t.is(canonicalJson(JSON.parse(text)), text);
      t.is(canonicalJson(reversed(value)), text);
    }),
    { seed: seed(), numRuns: 300 },
  );
});

test('what has no canonical JSON is refused', (t) => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY])
    t.throws(() => canonicalJson(value), { instanceOf: RangeError });
  for (const value of [1n, Symbol('x'), () => 1])
    t.throws(() => canonicalJson(value), { instanceOf: TypeError });
});

test('the chain is SHA-256 over the hex before, a newline and the line', (t) => {
  const sha = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');
  t.is(chainStart('task'), sha('task'));
  t.is(chainNext(chainStart('task'), '{"a":"ö"}'), sha(`${sha('task')}\n{"a":"ö"}`));
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      t.is(digest(bytes), createHash('sha256').update(bytes).digest('hex'));
    }),
    { seed: seed() },
  );
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => reversed(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]: [string, unknown]) => [key, reversed(member)]),
  );
}
