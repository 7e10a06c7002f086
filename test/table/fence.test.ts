/**
 * About 140 git commands, each in four places: beside a turn in mode strict and in mode hooks, as the turn's own, and where there
 * is no fence. What a row of rows.ts promises is what git does.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { aspects, build, changed, copyOf, DATES, type Tree } from '../helpers/fence-fixture.js';
import { until } from '../helpers/processes.js';
import { durable, startDurable } from '../helpers/program.js';
import { scratch, type Ran, type Scratch } from '../helpers/scratch.js';
import { READING, ROWS, UNSEEN, type Row } from './rows.js';

type Mode = 'strict' | 'hooks' | 'none';
interface Ground {
  readonly place: Scratch;
  /** Of the turn's processes. */
  readonly env: Readonly<Record<string, string>>;
}

const grounds = new Map<string, Promise<Ground>>();
const endings: (() => void)[] = [];
const lasting = { teardown: (ending: () => void) => endings.push(ending) } as unknown as ExecutionContext;

test.after.always(() => {
  for (const ending of endings.reverse()) ending();
});

function ground(mode: Mode, tree: Tree): Promise<Ground> {
  const key = `${mode} ${tree}`;
  const made = grounds.get(key) ?? prepare(mode, tree);
  grounds.set(key, made);
  return made;
}

async function prepare(mode: Mode, tree: Tree): Promise<Ground> {
  const place = scratch(lasting, { commit: false });
  build(place, tree);
  if (mode === 'none') return { place, env: {} };
  durable(place, ['init', '--fence', mode]);
  // A renewal drops the record before it, and a copy made just then would have a ref without its object.
  place.git('config', 'durable.ttl', '36000');
  const running = startDurable(lasting, place, [
    'run',
    '--',
    'sh',
    '-c',
    'env -0 | tr "\\n\\0" " \\n"; echo; cat',
  ]);
  const env: Record<string, string> = {};
  for (let line = await running.line(); line !== undefined && line !== ''; line = await running.line()) {
    const at = line.indexOf('=');
    if (/^(?:DURABLE_|PATH$)/.test(line.slice(0, at))) env[line.slice(0, at)] = line.slice(at + 1);
  }
  await until('the keeper has recorded itself', () =>
    /"keeper":\{/.test(place.git('for-each-ref', '--format=%(contents)', 'refs/durable/leases')),
  );
  return { place, env };
}

let copies = 0;

interface Outcome {
  readonly ran: Ran;
  readonly changed: readonly string[];
  readonly after: Readonly<Record<string, string>>;
  /** A hook of ours told the observer which process it was. */
  readonly isWitnessed: boolean;
}

async function runIn(
  mode: Mode,
  { words, tree }: Pick<Row, 'words' | 'tree'>,
  own: boolean,
): Promise<Outcome> {
  const { place, env } = await ground(mode, tree);
  copies += 1;
  const dir = copyOf(place, `row ${String(copies)}`);
  const before = aspects(place, dir);
  const more = own
    ? { ...env, DURABLE_GIT_DIR: join(dir, '.git'), DURABLE_STAGE: join(dir, '.git/durable/stage/1') }
    : {};
  const ran = place.run('git', words.split(' '), { cwd: dir, env: { ...DATES, ...more } });
  const after = aspects(place, dir);
  return {
    ran,
    changed: changed(before, after),
    after,
    isWitnessed: existsSync(join(dir, '.git/durable/moves')),
  };
}

/** As rows.ts says it; the name of the aspect alone counts of what changed. */
function said({ ran, changed: names }: Outcome): string {
  if (ran.code === 0) return names.length === 0 ? 'R0' : '-';
  return names.length === 0 ? 'R' : `P:${names.join('+')}`;
}

function holds(expected: string, outcome: Outcome): boolean {
  const found = said(outcome);
  if (expected === '-') return outcome.ran.code === 0;
  if (expected === 'R') return found === 'R' || found === 'R0';
  if (!expected.startsWith('P:')) return found === expected;
  return found === 'R' || (found.startsWith('P:') && outcome.changed.includes(expected.slice(2)));
}

/** `init` writes settings, and a turn has objects of its own. */
const compared = (after: Outcome['after']): Outcome['after'] => ({ ...after, cfg: '', packs: '' });

for (const row of ROWS) {
  test(`beside a turn, strict ${row.strict}, hooks ${row.hooks}: git ${row.words}`, async (t) => {
    const strict = await runIn('strict', row, false);
    t.true(holds(row.strict, strict), `strict: ${said(strict)} ${strict.ran.stderr}`);
    const hooks = await runIn('hooks', row, false);
    t.true(holds(row.hooks, hooks), `hooks: ${said(hooks)} ${hooks.ran.stderr}`);
    const isUnseen = hooks.changed.length > 0 && !hooks.isWitnessed && hooks.ran.code === 0;
    t.is(isUnseen, UNSEEN.has(row.words), 'whether no hook saw which process it was');
  });

  test(`as the turn's own: git ${row.words}`, async (t) => {
    const [free, strict, hooks] = [
      await runIn('none', row, false),
      await runIn('strict', row, true),
      await runIn('hooks', row, true),
    ];
    if (row.agent !== undefined) {
      t.true(holds(row.agent, strict), `${said(strict)} ${strict.ran.stderr}`);
      return;
    }
    for (const fenced of [strict, hooks]) {
      t.is(fenced.ran.code, free.ran.code, fenced.ran.stderr);
      t.deepEqual(compared(fenced.after), compared(free.after));
    }
  });
}

for (const words of READING) {
  test(`the same with a turn, without one, and as the turn's own: git ${words}`, async (t) => {
    const row = { words, tree: 'dirty' } as const;
    const free = await runIn('none', row, false);
    for (const fenced of [
      await runIn('strict', row, false),
      await runIn('hooks', row, false),
      await runIn('strict', row, true),
    ]) {
      t.is(fenced.ran.code, free.ran.code, fenced.ran.stderr);
      t.is(fenced.ran.stdout.replaceAll(/row \d+/g, 'row'), free.ran.stdout.replaceAll(/row \d+/g, 'row'));
    }
  });
}
