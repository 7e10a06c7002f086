import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { PROGRAM } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const readme = readFileSync(join(root, 'README.md'), 'utf8');

/** The lines that recompute the chain have a test of their own (test/ledger/chain.test.ts). */
const blocks = [
  ...readme.replace(/<!-- chain -->[^]*<!-- \/chain -->/, '').matchAll(/^```sh\n([^]*?)^```$/gm),
].map((match) => match[1] ?? '');

/** `npm ci && npm start`: a package's script, or a command of npm's own. */
const NPM = /^npm ci && npm (\w+)\n$/;

/** `git durable` and `durable` as an installation puts them on PATH. */
function installed(place: Scratch): Record<string, string> {
  const bin = join(place.top, 'bin');
  mkdirSync(bin);
  for (const name of ['git-durable', 'durable'])
    writeFileSync(join(bin, name), `#!/bin/sh\nexec '${process.execPath}' '${PROGRAM}' "$@"\n`, {
      mode: 0o755,
    });
  return { PATH: `${bin}${delimiter}${place.env['PATH'] ?? ''}` };
}

test('every shell block of the README works, in their order, in one repository', (t) => {
  const place = scratch(t);
  const env = installed(place);
  const ours = blocks.filter((block) => !NPM.test(block));
  t.true(ours.length >= 6);
  for (const block of ours) {
    const ran = place.run('sh', ['-e', '-c', block], { env });
    t.is(ran.code, 0, `${block}${ran.stderr}`);
    t.notRegex(
      ran.stderr,
      /warning|defect|there is no verb|has no option|does not take the word|needs a value/,
      block,
    );
  }
  t.is(place.git('for-each-ref', 'refs/durable'), '');
});

test('what the README says a block does is what it does', (t) => {
  const place = scratch(t);
  const env = installed(place);
  const said = (words: string): string => {
    const block = blocks.find((one) => one.includes(words)) ?? '';
    return place.run('sh', ['-e', '-c', block], { env }).stdout;
  };
  t.regex(said('write notes'), /turn\.finished: completed/);
  t.true(existsSync(join(place.dir, 'notes.txt')));
  t.regex(said('ask --tool deploy'), /^code 3\n\S+ +pending +deploy /);
  t.regex(said('for-each-ref'), /[0-9a-f]+ turn\.started: write notes/);
});

test('the npm lines name scripts of the package, or a command of npm', (t) => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const names = blocks.flatMap((block) => NPM.exec(block)?.[1] ?? []);
  t.deepEqual(names.toSorted(), ['link', 'start', 'test']);
  for (const name of names) t.true(name in scripts || name === 'link', name);
});

test('each promise names tests that are there', (t) => {
  const named = [...readme.matchAll(/`(test\/[\w./-]+\.test\.ts)`/g)].map((match) => match[1] ?? '');
  t.true(named.length >= 13);
  for (const path of named) t.true(existsSync(join(root, path)), path);
});
