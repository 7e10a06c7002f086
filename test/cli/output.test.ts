import { Writable } from 'node:stream';
import test from 'ava';
import { clean, Output } from '../../cli/output.js';
import { width } from '../../cli/width.js';

class Sink extends Writable {
  text = '';
  isTTY = false;
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

interface Setting {
  readonly json?: boolean;
  readonly terminal?: boolean;
  readonly env?: Record<string, string>;
}

function output(setting: Setting = {}): { output: Output; out: Sink; err: Sink } {
  const out = new Sink();
  const err = new Sink();
  out.isTTY = setting.terminal ?? false;
  return { output: new Output(out, err, { json: setting.json ?? false, env: setting.env ?? {} }), out, err };
}

test('columns line up, whatever the script and the colour', (t) => {
  const { output: o, out } = output({ terminal: true });
  o.table([
    [{ text: 'aé', style: 'red' }, '1'],
    ['日本', '2'],
    ['abcdef', '3'],
  ]);
  const bare = out.text.replaceAll(/\u001b\[\d+m/g, '');
  t.is(bare, 'aé      1\n日本    2\nabcdef  3\n');
  t.regex(out.text, /\u001b\[31maé\u001b\[0m/);
});

const COLOURLESS: readonly (readonly [why: string, setting: Setting])[] = [
  ['no terminal', { terminal: false }],
  ['NO_COLOR', { terminal: true, env: { NO_COLOR: '1' } }],
  ['a dumb terminal', { terminal: true, env: { TERM: 'dumb' } }],
  ['--json', { terminal: true, json: true }],
];

for (const [why, setting] of COLOURLESS) {
  test(`no colour with ${why}`, (t) => {
    t.is(output(setting).output.paint('red', 'x'), 'x');
  });
}

test('an empty NO_COLOR counts as none (no-color.org)', (t) => {
  t.not(output({ terminal: true, env: { NO_COLOR: '' } }).output.paint('red', 'x'), 'x');
});

test('a text from a ledger cannot send the terminal an escape sequence', (t) => {
  const { output: o, out } = output();
  o.table([['\u001b]0;owned\u0007\u001b[2J', 'a\nb\u202e']]);
  t.is(out.text, '\\u001b]0;owned\\u0007\\u001b[2J  a\\nb\\u202e\n');
  t.is(clean('plain ünïcode'), 'plain ünïcode');
});

test('with --json only the document is on standard output, messages on standard error', (t) => {
  const { output: o, out, err } = output({ json: true });
  o.result({ a: 1 }, () => {
    o.line('for people');
  });
  o.note('a message');
  t.is(out.text, '{"a":1}\n');
  t.is(err.text, 'git-durable: a message\n');
});

test('a path that is not UTF-8 is printed as git quotes it', (t) => {
  const { output: o, out } = output({ json: true });
  o.document({ path: 'na\udcefve "x"', other: 'naïve "x"' });
  t.deepEqual(JSON.parse(out.text), { path: '"na\\357ve \\"x\\""', other: 'naïve "x"' });
});

test('width counts columns, not characters', (t) => {
  t.deepEqual([width('abc'), width('日本'), width('e\u0301'), width('👍'), width('')], [3, 4, 1, 2, 0]);
});
