/**
 * What the fence costs a person's git: with no turn open, and beside one. Both sides run the same command in two repositories
 * that differ by `init` (and a turn) alone, in turns.
 */
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { durable, startDurable } from '../helpers/program.js';
import { removeTree, scratchAt, type Scratch } from '../helpers/scratch.js';
import { median, ratioRow, timed, type Row } from './row.js';

const REFS = 1000;
const FILES = 300;

interface Command {
  readonly run: (place: Scratch) => unknown;
  /** Before each run, not measured. */
  readonly prepare?: (place: Scratch) => unknown;
  readonly rounds: number;
}

interface Sides {
  readonly ours: Scratch;
  readonly base: Scratch;
}

export async function measure(): Promise<readonly Row[]> {
  const top = mkdtempSync(join(tmpdir(), 'durable bench '));
  const cleanups: (() => unknown)[] = [];
  try {
    const sides = { ours: placeAt(top, 'ours'), base: placeAt(top, 'base') };
    durable(sides.ours, ['init']);
    const rows = [
      ratioRow('git commit after init, no turn', await measured(sides, COMMIT), 1.2),
      ratioRow('git fetch of 1,000 refs after init, no turn', await measured(sides, FETCH), 1.2),
    ];
    const teardown = (clean: () => unknown): number => cleanups.push(clean);
    const turn = startDurable({ teardown }, sides.ours, ['run', '--', 'sh', '-c', 'echo open; cat']);
    await turn.line();
    rows.push(
      ratioRow('git add, refused beside a turn, by one that is not', await measured(sides, ADD), 1.2),
      ratioRow('git status beside a turn', await measured(sides, STATUS), 1.2),
      ...(await fetchesBeside(sides)),
    );
    turn.child.stdin.end();
    await turn.ended;
    return rows;
  } finally {
    for (const clean of cleanups) clean();
    await removeTree(top);
  }
}

/** Old git starts a hook twice for each ref: one that does nothing but end tells how much of the cost is git's own. */
async function fetchesBeside(sides: Sides): Promise<Row[]> {
  const without = await measured(sides, FETCH);
  const hook = join(sides.base.dir, '.git/hooks/reference-transaction');
  mkdirSync(join(hook, '..'), { recursive: true });
  writeFileSync(hook, '#!/bin/sh\nexit 0\n');
  chmodSync(hook, 0o755);
  const empty = await measured(sides, FETCH);
  const told: Row = {
    ...ratioRow('git fetch of 1,000 refs beside a turn', without, 0),
    limit: Number.NaN,
    rule: null,
  };
  return [told, ratioRow('the same, by one with a hook that does nothing', empty, 1.5)];
}

const COMMIT: Command = {
  run: (place) => place.git('commit', '-q', '-m', 'x'),
  prepare: (place) => {
    place.write('one', `${String(performance.now())}\n`);
    place.git('add', 'one');
  },
  rounds: 41,
};

const ADD: Command = {
  run: (place) => place.run('git', ['add', 'two']),
  prepare: (place) => {
    place.write('two', `${String(performance.now())}\n`);
  },
  rounds: 41,
};

const STATUS: Command = { run: (place) => place.git('status', '--short'), rounds: 41 };

const FETCH: Command = {
  run: (place) => place.git('fetch', '-q'),
  prepare: (place) => {
    const input = place.git('for-each-ref', '--format=delete %(refname)', 'refs/remotes');
    place.run('git', ['-c', 'core.hooksPath=/dev/null', 'update-ref', '--stdin'], { input: `${input}\n` });
  },
  rounds: 5,
};

async function measured(sides: Sides, command: Command): Promise<{ ours: number; base: number }> {
  const times: { ours: number[]; base: number[] } = { ours: [], base: [] };
  for (let round = 0; round <= command.rounds; round += 1) {
    for (const side of ['ours', 'base'] as const) {
      command.prepare?.(sides[side]);
      const time = await timed(() => command.run(sides[side]));
      // The first round warms up.
      if (round > 0) times[side].push(time);
    }
  }
  return { ours: median(times.ours), base: median(times.base) };
}

function placeAt(top: string, name: string): Scratch {
  mkdirSync(join(top, name));
  const place = scratchAt(join(top, name));
  for (let file = 0; file < FILES; file += 1) place.write(`src/${String(file)}`, `${String(file)}\n`);
  place.git('add', '-A');
  place.git('commit', '-q', '-m', 'files');
  place.run('git', ['clone', '-q', '--bare', place.dir, join(place.top, 'up')]);
  const refs = Array.from({ length: REFS }, (_, at) => `create refs/heads/b${String(at)} HEAD\n`);
  place.run('git', ['update-ref', '--stdin'], { cwd: join(place.top, 'up'), input: refs.join('') });
  place.git('remote', 'add', 'origin', '../up');
  return place;
}
