import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { Chance } from '../../../cli/drill/chance.js';
import { makeScratch, OLD_SYMBOL, SYMBOL_FILES } from '../../../cli/drill/scratch.js';
import { chooseKill, PIECES, writeScript } from '../../../cli/drill/script.js';
import { newSymbol } from '../../../cli/drill/wording.js';
import { rmSync } from 'node:fs';

const SEEDS = Array.from({ length: 300 }, (_, seed) => String(seed));

test('the same seed gives the same script and the same kill, another seed another one', (t) => {
  const plan = (seed: string): string => {
    const chance = new Chance(seed);
    const script = writeScript(chance.split('script'));
    return JSON.stringify([script, chooseKill(chance.split('kill'), script)]);
  };
  t.is(plan('7'), plan('7'));
  t.is(new Set(SEEDS.map(plan)).size, SEEDS.length);
});

test('each script renames the symbol in nineteen files, each of them once', (t) => {
  for (const seed of SEEDS) {
    const acts = writeScript(new Chance(seed));
    const paths = acts.flatMap((act) =>
      act.kind === 'transaction' ? act.paths : act.kind === 'rewrite' ? [act.path] : [],
    );
    t.deepEqual([...paths].sort(), [...SYMBOL_FILES].sort());
    t.is(new Set(paths).size, 19);
    t.is(acts.filter((act) => act.kind === 'rewrite').length, 9);
  }
});

test('kills fall on every act after the start of the turn', (t) => {
  const kinds = new Set<string>();
  for (const seed of SEEDS) {
    const script = writeScript(new Chance(seed));
    const moment = chooseKill(new Chance(seed).split('kill'), script);
    t.true(moment.lines > 2);
    let lines = 0;
    for (const act of script) {
      const length = act.kind === 'rewrite' || act.kind === 'create' ? PIECES + 4 : 2;
      lines += length;
      if (lines >= moment.lines) {
        kinds.add(act.kind);
        break;
      }
    }
  }
  t.true(kinds.size >= 8, [...kinds].join());
});

test('every file that is rewritten in place takes at least twenty writes', (t) => {
  for (const seed of SEEDS.slice(0, 5)) {
    const { repository } = makeScratch(new Chance(seed), 'sha1');
    t.teardown(() => {
      rmSync(repository.top, { recursive: true });
    });
    for (const path of SYMBOL_FILES) {
      const before = readFileSync(join(repository.dir, path), 'latin1');
      t.true(before.includes(OLD_SYMBOL), path);
      const { length } = before.replaceAll(OLD_SYMBOL, newSymbol(seed));
      t.true(Math.ceil(length / Math.ceil(length / PIECES)) >= 20, path);
    }
  }
});

test('the new symbol is longer, shorter and of the same length', (t) => {
  const lengths = new Set(SEEDS.map((seed) => Math.sign(newSymbol(seed).length - OLD_SYMBOL.length)));
  t.deepEqual([...lengths].sort(), [-1, 0, 1]);
});
