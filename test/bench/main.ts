/** `npm run bench [name…]`: all benchmarks as one table; exit 1 when a promise of speed does not hold. */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Row } from './row.js';

interface Benchmark {
  readonly measure: () => Promise<readonly Row[]>;
}

const here = fileURLToPath(new URL('.', import.meta.url));
const wanted = process.argv.slice(2);
const files = readdirSync(here)
  .filter((name) => name.endsWith('.bench.js'))
  .filter((name) => wanted.length === 0 || wanted.some((part) => name.includes(part)))
  .sort();

const number = (value: number | null): string => (value === null ? '' : value.toFixed(value < 10 ? 2 : 0));

function line(columns: readonly string[]): string {
  const [what = '', ...rest] = columns;
  return `${what.padEnd(72)}${rest.map((column) => column.padStart(12)).join('')}\n`;
}

function verdict({ ratio, limit, rule }: Row): string {
  if (rule === null) return '';
  return (rule === 'at most' ? ratio <= limit : ratio >= limit) ? 'holds' : 'MISSED';
}

process.stdout.write(line(['promise', 'ours', 'base', 'unit', 'ratio', 'limit', '']));
let missed = 0;
for (const file of files) {
  const { measure } = (await import(`./${file}`)) as Benchmark;
  for (const row of await measure()) {
    const limit = row.rule === null ? '' : `${row.rule === 'at most' ? '<=' : '>='} ${number(row.limit)}`;
    const said = verdict(row);
    if (said === 'MISSED') missed += 1;
    process.stdout.write(
      line([row.what, number(row.ours), number(row.base), row.unit, number(row.ratio), limit, said]),
    );
  }
}
process.exitCode = missed === 0 ? 0 : 1;
