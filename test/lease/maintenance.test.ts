import { existsSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { killTurn } from '../helpers/keeper.js';
import { durable, startDurable } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';

for (const mode of ['strict', 'hooks']) {
  test(`a gc.pid that a turn killed with its keeper has left goes with the next verb, recover and uninstall, and another git's stays, in the mode ${mode}`, async (t) => {
    const place = scratch(t);
    place.git('config', 'durable.fence', mode);
    const running = startDurable(t, place, ['run', '--', 'sh', '-c', 'echo open; cat']);
    t.is(await running.line(), 'open', running.said);
    const file = join(place.dir, '.git/gc.pid');
    await killTurn(place, running);
    const left = readFileSync(file, 'utf8');
    const foreign = `4194303 ${hostname()}`;
    for (const words of [['status'], ['recover', '--keep'], ['uninstall', '--purge']]) {
      for (const [text, isLeft] of [
        [left, false],
        [foreign, true],
      ] as const) {
        place.write('.git/gc.pid', text);
        const ran = durable(place, words);
        t.is(ran.code, 0, ran.stdout + ran.stderr);
        t.is(existsSync(file), isLeft, words.join(' '));
      }
      t.is(readFileSync(file, 'utf8'), foreign);
    }
  });
}
