import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import test from 'ava';
import { scratch } from './helpers/scratch.js';

const ROOT = resolve(import.meta.dirname, '../..');

test("the README's library example runs, and what it did is in the ledger", (t) => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const example = /^```js\n(.*?)^```$/ms.exec(readme)?.[1] ?? '';
  const place = scratch(t);
  place.write('a.txt', 'old name\n');
  const program = example.replace("'git-durable'", JSON.stringify(join(ROOT, 'dist/lib/index.js')));
  const ran = place.run('node', ['--input-type=module', '-e', program]);
  t.is(ran.code, 0, ran.stderr);
  t.is(readFileSync(join(place.dir, 'a.txt'), 'utf8'), 'new name\n');
  const ref = place.git('for-each-ref', '--format=%(refname)', 'refs/durable/tasks');
  t.regex(place.git('log', '--format=%s', ref), /invocation\.proposed: edit .*a\.txt/);
});
