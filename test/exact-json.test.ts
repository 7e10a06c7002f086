import test from 'ava';
import fc from 'fast-check';
import { ExactJson, exactJson, jsonFault } from '../lib/exact-json.js';
import { Output } from '../cli/output.js';
import { PassThrough } from 'node:stream';

const SEED = 20261130;

test('a text that is JSON keeps its tokens, on one line; any other text stays what it is', (t) => {
  const text = ' { "a" : [ 1.10 , 9007199254740993 ] ,\n "b c" : " \\" } \\n" } ';
  const exact = exactJson(text);
  t.true(exact instanceof ExactJson);
  t.is(exact instanceof ExactJson ? exact.line : '', '{"a":[1.10,9007199254740993],"b c":" \\" } \\n"}');
  t.is(exactJson('rm -rf {'), 'rm -rf {');
});

test('any JSON on one line is the same value, and has no fault when it was made from one', (t) => {
  t.log(`seed ${String(SEED)}`);
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(0, 2), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      const exact = new ExactJson(text);
      t.deepEqual(JSON.parse(exact.line), JSON.parse(text));
      t.notRegex(exact.line, /\n/);
      t.is(jsonFault(text), null);
    }),
    { seed: SEED, numRuns: 500 },
  );
});

test('names may stand again in another object, never twice in one', (t) => {
  t.is(jsonFault('{"a":{"a":1},"b":[{"a":1},{"a":2}],"c":"a","d":["a","a"]}'), null);
  t.regex(jsonFault('{"a":{"b":1,"c":{},"b":2}}') ?? '', /"b" stands twice/);
});

test('no text inside a document can pass for the place of an exact one', (t) => {
  const stdout = new PassThrough();
  const output = new Output(stdout, new PassThrough(), { json: true, env: {} });
  output.document({ a: '"\\ud8000"', b: '\\ud8000', c: new ExactJson('1.0'), d: '\ud8000' });
  const text = String(stdout.read());
  t.true(text.includes('"c":1.0'));
  const parsed: unknown = JSON.parse(text);
  t.like(parsed, { a: '"\\ud8000"', b: '\\ud8000', c: 1 });
});
