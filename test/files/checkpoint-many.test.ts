import { rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { checkpointPlace, settle } from '../helpers/checkpoint-place.js';
import type { Scratch } from '../helpers/scratch.js';

const MANY_FILES = 6000;

/** What may have become of tracked files since they were committed, and which names are then not in the checkpoint. */
const ODDITIES: readonly [string, (place: Scratch) => unknown, readonly string[], readonly string[]][] = [
  ['nothing', () => undefined, [], []],
  [
    'one is gone',
    ({ dir }) => {
      rmSync(join(dir, 'many/7/7'));
    },
    ['many/7/7'],
    [],
  ],
  [
    'one is a folder now',
    ({ dir, write }) => {
      rmSync(join(dir, 'many/7/7'));
      write('many/7/7/below', 'new\n');
    },
    ['many/7/7'],
    ['many/7/7/below'],
  ],
  [
    'one is a repository now',
    ({ dir, run }) => {
      rmSync(join(dir, 'many/7/7'));
      run('git', ['init', '-q', 'many/7/7']);
      run('git', ['-C', 'many/7/7', 'commit', '-q', '--allow-empty', '-m', 'nested']);
    },
    ['many/7/7'],
    [],
  ],
  [
    'one is a fifo now',
    ({ dir, run }) => {
      rmSync(join(dir, 'many/7/7'));
      run('mkfifo', ['many/7/7']);
    },
    ['many/7/7'],
    [],
  ],
  [
    'a folder of them is a link now',
    ({ dir, run }) => {
      rmSync(join(dir, 'many/7'), { recursive: true });
      run('ln', ['-s', '8', 'many/7']);
    },
    Array.from({ length: MANY_FILES / 60 }, (_, at) => `many/7/${String(7 + 60 * at)}`),
    ['many/7'],
  ],
  [
    'one is over the limit',
    ({ write }) => {
      write('many/7/7', 'x'.repeat(5000));
    },
    ['many/7/7'],
    [],
  ],
  [
    'one is a link now',
    ({ dir, run }) => (rmSync(join(dir, 'many/7/7')), run('ln', ['-s', 'gone', 'many/7/7'])),
    [],
    [],
  ],
  ['many are new a moment ago', manyAnew, [], []],
];

function manyAnew({ write }: Scratch): void {
  for (let file = 0; file < 1500; file += 1)
    write(`many/${String(file % 60)}/${String(file)}`, `other bytes ${String(file)}\n`);
}

for (const [what, happen, without, withMore] of ODDITIES) {
  test(`a first checkpoint of many files has exactly what is on disk: ${what}`, async (t) => {
    const place = await checkpointPlace(t, {
      prepare: (made) => {
        for (let file = 0; file < MANY_FILES; file += 1)
          made.write(`many/${String(file % 60)}/${String(file)}`, `bytes of ${String(file % 500)}\n`);
        made.git('config', 'durable.maxFileSize', '4k');
        made.git('add', '-A');
        made.git('commit', '-q', '-m', 'many');
      },
    });
    await settle();
    happen(place);
    if (what !== 'many are new a moment ago') await settle();
    const taken = await place.checkpoint();
    const names = place
      .git('ls-files')
      .split('\n')
      .filter((name) => !without.includes(name));
    const listed = place.git('ls-tree', '-r', '--name-only', taken.tree).split('\n');
    t.deepEqual(listed.sort(), [...names, ...withMore].sort());
    t.is(taken.files, listed.length);
    const kept = `${taken.checkpoint}:worktree`;
    const ids = place
      .git('ls-tree', '-r', kept)
      .split('\n')
      .filter((line) => !line.startsWith('120000'));
    const files = ids.map((line) => line.slice(line.indexOf('\t') + 1));
    const input = `${files.join('\n')}\n`;
    const hashed = place.run('git', ['hash-object', '--no-filters', '--stdin-paths'], { input }).stdout;
    t.deepEqual(
      ids.map((line) => line.split(/\s/)[2]),
      hashed.trim().split('\n'),
    );
    const next = await place.checkpoint();
    t.deepEqual([next.tree, next.changed], [taken.tree, 0]);
  });
}
